// SPDX-License-Identifier: Apache-2.0
#include "lb/route/route_actions.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "lb/route/regex.hpp"
#include "lb/route/timeout.hpp"
#include "messages/invariant.hpp"
#include "messages/named_clusters.hpp"

namespace signalbox::lb {
namespace {

// The filter chain for each cluster that a route can choose.
using Chains = absl::InlinedVector<FilterChainPtr, 1>;

// A hash by which equal actions are found. Unequal ones may have the same hash, but seldom do.
std::size_t coarse_hash(const ForwardAction& action, const Chains& chains) {
  const auto count_of = [](const std::optional<Duration>& time) {
    return time ? time->count() : -1;
  };
  const RetryPolicy retry = action.retry.value_or(RetryPolicy{});
  std::size_t hash = absl::HashOf(count_of(action.max_stream_duration),
                                  count_of(action.grpc_timeout_header_max),
                                  retry.max_attempts,
                                  retry.base_interval.count(),
                                  retry.max_interval.count());
  for (const WeightedCluster& choice : action.clusters)
    hash = absl::HashOf(hash, choice.cluster, choice.weight);
  for (const FilterChainPtr& chain : chains)
    hash = absl::HashOf(hash, chain.get());
  for (const HashPolicy& policy : action.hash_policies) {
    const auto* header = std::get_if<HeaderHash>(&policy.what);
    if (header == nullptr) continue;
    const auto rewrite = header->rewrite.value_or(HeaderHash::Rewrite{});
    hash = absl::HashOf(hash, header->header, rewrite.pattern, rewrite.substitution);
  }
  return hash;
}

// Compares the actions, but not their filter overrides: place_of() compares the filter chains that
// are made from the overrides.
bool same(const ForwardAction& left, const ForwardAction& right) {
  const auto all_but_clusters = [](const ForwardAction& action) {
    return std::tie(action.max_stream_duration,
                    action.grpc_timeout_header_max,
                    action.retry,
                    action.hash_policies,
                    action.auto_host_rewrite);
  };
  const auto same_choice = [](const WeightedCluster& a, const WeightedCluster& b) {
    return a.cluster == b.cluster && a.weight == b.weight;
  };
  return std::ranges::equal(left.clusters, right.clusters, same_choice) &&
         all_but_clusters(left) == all_but_clusters(right);
}

// How many different regular expressions the hash policies have. RegexPool compiles each of them
// once.
std::size_t count_rewrites(const VirtualHost& host) {
  absl::flat_hash_set<absl::string_view> patterns;
  for (const Route& route : host.routes) {
    const auto* action = std::get_if<ForwardAction>(&route.action);
    if (action == nullptr) continue;
    for (const HashPolicy& policy : action->hash_policies) {
      const auto* header = std::get_if<HeaderHash>(&policy.what);
      if (header != nullptr && header->rewrite) patterns.insert(header->rewrite->pattern);
    }
  }
  return patterns.size();
}

}  // namespace

class RouteActions::Builder {
 public:
  Builder(std::vector<Action>& actions,
          const VirtualHost& host,
          const Listener& listener,
          const ClusterRefs& refs,
          std::uint64_t channel_id,
          const FaultOptions& faults)
      : actions_(actions),
        host_(host),
        listener_(listener),
        has_sessions_(has_sessions(&listener)),
        channel_id_(channel_id),
        chains_(listener.filters, faults),
        pool_(count_rewrites(host)) {
    shares_.reserve(refs.size());
    for (const auto& [name, ref] : refs)
      shares_.emplace(name, RouteCluster{0, ref, shares_.size()});
  }

  std::size_t place_of(const Route& route) {
    const auto* action = std::get_if<ForwardAction>(&route.action);
    if (action == nullptr) return add(unsupported(route));
    const Chains chains = chains_of(route, *action);
    const std::size_t hash = coarse_hash(*action, chains);
    const auto [first, last] = made_.equal_range(hash);
    for (auto known = first; known != last; ++known) {
      const Made& made = known->second;
      if (same(*made.action, *action) && made.chains == chains) return made.place;
    }
    const std::size_t place = add(compile(*action, chains));
    made_.emplace(hash, Made{action, chains, place});
    return place;
  }

  std::string cookie() const { return chains_.cookie(); }

 private:
  struct Made {
    const ForwardAction* action = nullptr;
    Chains chains;
    std::size_t place = 0;
  };

  std::size_t add(Action action) {
    actions_.push_back(std::move(action));
    return actions_.size() - 1;
  }

  Chains chains_of(const Route& route, const ForwardAction& action) {
    Chains chains;
    for (const WeightedCluster& choice : action.clusters) {
      if (!is_reachable(choice, has_sessions_)) continue;
      chains.push_back(chains_.with(
          {&choice.filter_overrides, &route.filter_overrides, &host_.filter_overrides}));
    }
    return chains;
  }

  Forward compile(const ForwardAction& action, const Chains& chains) {
    Forward forward{{},
                    {},
                    RequestHash(action.hash_policies, channel_id_, &pool_),
                    action.auto_host_rewrite,
                    {}};
    if (action.retry) forward.retry = RetryRules(*action.retry);
    std::uint64_t end = 0;
    for (const WeightedCluster& choice : action.clusters) {
      if (!is_reachable(choice, has_sessions_)) continue;
      const FilterChainPtr& chain = chains[forward.shares.size()];
      end += choice.weight;
      forward.shares.push_back(share_of(choice.cluster, end));
      forward.shares.back().filters = chain;
    }
    SIGNALBOX_INVARIANT(end > 0, "the weights of a route sum to more than 0");
    forward.timeout = effective_timeout(
        std::nullopt,
        action.grpc_timeout_header_max,
        effective_max_stream_duration(action.max_stream_duration, listener_.max_stream_duration));
    return forward;
  }

  RouteCluster share_of(const ClusterName& cluster, std::uint64_t end) const {
    const auto found = shares_.find(cluster);
    SIGNALBOX_INVARIANT(found != shares_.end() && found->second.cluster != nullptr,
                        absl::StrCat("there is a reference for ", cluster.str()));
    return {end, found->second.cluster, found->second.place};
  }

  absl::Status unsupported(const Route& route) const {
    return absl::UnavailableError(absl::StrCat("route \"",
                                               route.name,
                                               "\" of virtual host \"",
                                               host_.name,
                                               "\" has an unsupported action: ",
                                               std::get<UnsupportedAction>(route.action).what));
  }

  std::vector<Action>& actions_;
  const VirtualHost& host_;
  const Listener& listener_;
  const bool has_sessions_;
  const std::uint64_t channel_id_;
  FilterChains chains_;
  RegexPool pool_;
  // The clusters that routes may name, each with its index among all of them
  // (PickArgs::cluster_place).
  absl::flat_hash_map<ClusterName, RouteCluster> shares_;
  std::unordered_multimap<std::size_t, Made> made_;
};

RouteActions::RouteActions(const VirtualHost& host,
                           const Listener& listener,
                           const ClusterRefs& refs,
                           std::uint64_t channel_id,
                           const FaultOptions& faults) {
  Builder builder(actions_, host, listener, refs, channel_id, faults);
  place_of_.reserve(host.routes.size());
  for (const Route& route : host.routes)
    place_of_.push_back(static_cast<std::uint32_t>(builder.place_of(route)));
  actions_.shrink_to_fit();
  cookie_ = builder.cookie();
}

}  // namespace signalbox::lb
