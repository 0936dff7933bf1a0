// SPDX-License-Identifier: Apache-2.0
//
// Functions that build values for tests of routing: each makes a matcher, an action, a route or a
// configuration in one line.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lb/route/config_selector.hpp"
#include "messages/pick.hpp"
#include "messages/xds_config.hpp"

namespace signalbox::testing {

/// Headers of a call, in the order of sending.
class TestHeaders final : public HeaderSource {
 public:
  using List = std::vector<std::pair<std::string, std::string>>;

  TestHeaders(std::initializer_list<List::value_type> headers) : headers_(headers) {}

  explicit TestHeaders(List headers) : headers_(std::move(headers)) {}

  const List& all() const { return headers_; }

  void each(absl::string_view name,
            absl::FunctionRef<void(absl::string_view)> visit) const override {
    for (const auto& [key, value] : headers_) {
      if (key == name) visit(value);
    }
  }

 private:
  List headers_;
};

inline TextMatcher exact(std::string text) {
  return {TextMatcher::Kind::kExact, std::move(text), false};
}

inline TextMatcher prefix(std::string text) {
  return {TextMatcher::Kind::kPrefix, std::move(text), false};
}

inline TextMatcher suffix(std::string text) {
  return {TextMatcher::Kind::kSuffix, std::move(text), false};
}

inline TextMatcher containing(std::string text) {
  return {TextMatcher::Kind::kContains, std::move(text), false};
}

inline TextMatcher regex(std::string text) {
  return {TextMatcher::Kind::kRegex, std::move(text), false};
}

inline TextMatcher in_any_case(TextMatcher matcher) {
  matcher.ignore_case = true;
  return matcher;
}

inline ForwardAction to(std::vector<std::pair<std::string, std::uint32_t>> clusters) {
  ForwardAction action;
  for (auto& [name, weight] : clusters)
    action.clusters.push_back({ClusterName(name), weight});
  return action;
}

inline ForwardAction to(const std::string& cluster) {
  return to({{cluster, 1}});
}

inline Route route(TextMatcher path, std::variant<ForwardAction, UnsupportedAction> action) {
  return {"", {std::move(path), {}, std::nullopt}, std::move(action)};
}

/// A configuration with one virtual host, "orders.host".
inline XdsConfig config_of(std::vector<Route> routes,
                           std::optional<Duration> max_stream_duration = std::nullopt) {
  auto route_config = std::make_shared<RouteConfig>();
  route_config->virtual_hosts.push_back({"orders.host", {"*"}, std::move(routes)});
  auto listener = std::make_shared<Listener>();
  listener->max_stream_duration = max_stream_duration;

  XdsConfig config;
  config.listener = listener;
  config.virtual_host = &route_config->virtual_hosts.front();
  config.route_config = route_config;
  return config;
}

/// Makes a reference for each cluster that the routes of `config` can choose. `counts_calls`: the
/// references have counters.
inline lb::ClusterRefs refs_for(const XdsConfig& config, bool counts_calls = true) {
  lb::ClusterRefs refs;
  for (const ClusterName& name : lb::clusters_of(config))
    refs[name] = std::make_shared<lb::ClusterRef>(
        name, counts_calls ? std::make_shared<CallStats>() : nullptr);
  return refs;
}

}  // namespace signalbox::testing
