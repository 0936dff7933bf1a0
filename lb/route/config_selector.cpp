// SPDX-License-Identifier: Apache-2.0
#include "lb/route/config_selector.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "lb/route/route_actions.hpp"
#include "lb/route/route_match.hpp"
#include "lb/trace.hpp"
#include "messages/invariant.hpp"
#include "messages/named_clusters.hpp"

namespace signalbox::lb {
namespace {

// The path for a message: escaped, and at most 256 bytes of it.
std::string shown_path(absl::string_view path) {
  constexpr std::size_t kMost = 256;
  const std::string text = absl::StrCat("\"", absl::CEscape(path.substr(0, kMost)), "\"");
  return path.size() <= kMost ? text : absl::StrCat(text, "… (", path.size(), " bytes)");
}

// Draws a cluster by weight. A cluster without a connection is drawn too (A31-9).
template <typename Sink>
const RouteCluster& choose(const Shares& shares, std::uint64_t seed, const Sink& sink) {
  const auto explained = [&](const RouteCluster& chosen, absl::FunctionRef<std::string()> why) {
    return PickStep{"route", "cluster " + chosen.cluster->name().str(), why(), "RDS"};
  };
  if (shares.size() == 1) {
    sink.tell([&] {
      return explained(shares.front(), [] { return std::string("the only one of the route"); });
    });
    return shares.front();
  }
  const std::uint64_t point = draw_below(seed, Salt::kWeightedCluster, shares.back().end);
  const auto chosen = std::ranges::upper_bound(shares, point, {}, &RouteCluster::end);
  sink.tell([&] {
    return explained(*chosen, [&] {
      const std::uint64_t begin = chosen == shares.begin() ? 0 : std::prev(chosen)->end;
      return absl::StrCat(shown_draw(point, shares.back().end),
                          "; its weight is ",
                          chosen->end - begin,
                          ", from ",
                          begin);
    });
  });
  return *chosen;
}

// The route's match for an explanation, such as "path with prefix \"/shop.\", header \"x-user\"".
std::string shown_match(const RouteMatch& match) {
  const auto kind = [&]() -> absl::string_view {
    switch (match.path.kind) {
      case TextMatcher::Kind::kExact:
        return "path ";
      case TextMatcher::Kind::kRegex:
        return "path like ";
      default:
        return "path with prefix ";
    }
  };
  std::string text = absl::StrCat(kind(), shown_path(match.path.text));
  for (const HeaderMatcher& header : match.headers)
    absl::StrAppend(&text, header.invert ? ", not header \"" : ", header \"", header.name, "\"");
  if (match.fraction_per_million)
    absl::StrAppend(&text, ", ", *match.fraction_per_million, " of a million calls");
  return text;
}

class alignas(kCacheLine) RouteSelector final : public ConfigSelector {
 public:
  RouteSelector(const VirtualHost& host,
                const Listener& listener,
                const ClusterRefs& refs,
                std::uint64_t channel_id,
                const FaultOptions& faults,
                std::shared_ptr<const RouteConfig> routes)
      : actions_(host, listener, refs, channel_id, faults),
        table_(host),
        host_name_(host.name),
        routes_(std::move(routes)) {
    if (is_in(host, routes_)) host_ = &host;
  }

  [[gnu::hot]] std::variant<Selection, absl::Status> select(const PickArgs& args) const override {
    return decide(args, Silent{});
  }

  std::variant<Selection, absl::Status> explain(const PickArgs& args,
                                                PickTrace& trace) const override {
    // Routes in a listener (without RDS) may have no name; then the listener (LDS) is the source.
    const bool has_name = routes_ != nullptr && !routes_->name.empty();
    const std::string source = has_name ? "RDS " + routes_->name : "LDS route_config";
    TimedTrace own(now_of(trace), [&](PickStep step) {
      step.source = source;
      trace.tell(std::move(step));
    });
    own.tell({"route", "virtual host \"" + host_name_ + "\"", why_host(), ""});
    auto answer = decide(args, Telling{own});
    if (const auto* failed = std::get_if<absl::Status>(&answer))
      own.tell({"route", "no cluster", std::string(failed->message()), ""});
    return answer;
  }

  std::string cookie() const override { return actions_.cookie(); }

 private:
  template <typename Sink>
  [[gnu::hot]] std::variant<Selection, absl::Status> decide(const PickArgs& args,
                                                            const Sink& sink) const {
    const std::optional<std::size_t> position = table_.find(args, sink);
    if (!position) {
      return absl::UnavailableError(absl::StrCat(
          "no route for ", shown_path(args.path), " in virtual host \"", host_name_, "\""));
    }
    sink.tell([&] { return route_step(*position); });
    const Action& action = actions_.of(*position);
    if (const auto* unsupported = std::get_if<absl::Status>(&action)) return *unsupported;
    const auto& forward = std::get<Forward>(action);
    const RouteCluster& share = choose(forward.shares, args.seed, sink);
    return Selection{share.cluster.get(),
                     share.place,
                     forward.timeout,
                     forward.hash.of(args.headers),
                     forward.auto_host_rewrite,
                     forward.retry.is_none() ? nullptr : &forward.retry,
                     share.filters.get(),
                     forward.shares};
  }

  // Whether `host` is one of the hosts in `routes`. If so, `routes` keeps it alive. host_ must not
  // point to any other host, which could be destroyed before this selector.
  static bool is_in(const VirtualHost& host, const std::shared_ptr<const RouteConfig>& routes) {
    return routes != nullptr &&
           std::ranges::any_of(routes->virtual_hosts,
                               [&](const VirtualHost& one) { return &one == &host; });
  }

  std::string why_host() const {
    if (host_ == nullptr || host_->domains.empty()) return "";
    return absl::StrCat("its domains are ", absl::StrJoin(host_->domains, ", "));
  }

  PickStep route_step(std::size_t position) const {
    PickStep step{"route", absl::StrCat("route ", position, " of ", actions_.routes()), "", "RDS"};
    if (host_ == nullptr) return step;
    const Route& route = host_->routes[position];
    if (!route.name.empty()) absl::StrAppend(&step.decision, ", \"", route.name, "\"");
    step.reason = "the first that matches: " + shown_match(route.match);
    return step;
  }

  // The members that every pick reads come first, so that they share cache lines.
  RouteActions actions_;
  RouteTable table_;
  std::string host_name_;
  // All routes, and the virtual host in use; only explanations read them. Either may be null.
  std::shared_ptr<const RouteConfig> routes_;
  const VirtualHost* host_ = nullptr;
};

const VirtualHost& virtual_host_of(const XdsConfig& config) {
  SIGNALBOX_INVARIANT(config.virtual_host != nullptr, "a configuration has its virtual host");
  return *config.virtual_host;
}

}  // namespace

std::set<ClusterName> clusters_of(const XdsConfig& config) {
  return named_clusters(virtual_host_of(config), config.listener.get());
}

ConfigSelectorPtr make_config_selector(const XdsConfig& config,
                                       const ClusterRefs& refs,
                                       std::uint64_t channel_id,
                                       const FaultOptions& faults) {
  static const Listener without_settings;
  const Listener& listener = config.listener != nullptr ? *config.listener : without_settings;
  return std::make_shared<const RouteSelector>(
      virtual_host_of(config), listener, refs, channel_id, faults, config.route_config);
}

}  // namespace signalbox::lb
