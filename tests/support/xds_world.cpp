// SPDX-License-Identifier: Apache-2.0
#include "tests/support/xds_world.hpp"

#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include "messages/invariant.hpp"

namespace signalbox::test {
namespace {

Endpoint endpoint(std::string text) {
  static const std::map<char, HealthStatus> kHealths{{'!', HealthStatus::kDraining},
                                                     {'?', HealthStatus::kDegraded},
                                                     {'-', HealthStatus::kUnhealthy}};
  Endpoint parsed;
  if (const auto found = kHealths.find(text.empty() ? ' ' : text.back()); found != kHealths.end()) {
    text.pop_back();
    parsed.health = found->second;
  }
  if (const auto weight = text.find('='); weight != std::string::npos) {
    SIGNALBOX_INVARIANT(absl::SimpleAtoi(text.substr(weight + 1), &parsed.weight), text);
    text.resize(weight);
  }
  for (const absl::string_view address : absl::StrSplit(text, '+'))
    parsed.addresses.emplace_back(std::string(address));
  return parsed;
}

}  // namespace

LbConfigPtr default_lb_policy() {
  static const LbConfigPtr policy =
      make_lb_config(WrrLocalityConfig{make_lb_config(RoundRobinConfig{})});
  return policy;
}

void XdsWorld::eds(const std::string& cluster,
                   const Priorities& priorities,
                   const LbConfigPtr& lb_policy,
                   const ClusterExtras& extras) {
  Endpoints endpoints;
  endpoints.drops = extras.drops;
  endpoints.overprovisioning_percent = extras.overprovisioning_percent;
  endpoints.weighted_priority_health = extras.weighted_priority_health;
  for (const std::string& text : priorities)
    endpoints.priorities.push_back(parse(text));
  Cluster parsed{ClusterName(cluster), EdsDiscovery{cluster}, lb_policy};
  parsed.outlier_detection = extras.outlier_detection;
  parsed.max_concurrent_requests = extras.max_concurrent_requests;
  parsed.idle_timeout = extras.idle_timeout;
  if (extras.connect_timeout) parsed.connect_timeout = *extras.connect_timeout;
  parsed.override_host_status = extras.override_host_status;
  put(std::move(parsed),
      LeafEndpoints{std::make_shared<const Endpoints>(std::move(endpoints)), ""});
}

void XdsWorld::eds_unresolved(const std::string& cluster, const std::string& resolution_note) {
  put({ClusterName(cluster), EdsDiscovery{cluster}, default_lb_policy()},
      LeafEndpoints{nullptr, resolution_note});
}

void XdsWorld::dns(const std::string& cluster, const std::string& address) {
  Endpoints endpoints{{parse(":" + address)}, {}};
  put({ClusterName(cluster), DnsDiscovery{DnsName(address)}, default_lb_policy()},
      LeafEndpoints{std::make_shared<const Endpoints>(std::move(endpoints)), ""});
}

void XdsWorld::aggregate(const std::string& cluster,
                         const std::vector<std::string>& leaves,
                         std::optional<AggregateMode> mode,
                         std::optional<std::uint32_t> panic_threshold) {
  AggregateLeaves children;
  for (const std::string& leaf : leaves)
    children.leaves.emplace_back(leaf);
  Cluster parsed{ClusterName(cluster), AggregateDiscovery{children.leaves}, nullptr};
  parsed.aggregate_mode = mode;
  parsed.panic_threshold = panic_threshold;
  put(std::move(parsed), children);
}

void XdsWorld::error(const std::string& cluster, absl::Status status) {
  clusters_.insert_or_assign(ClusterName(cluster), std::move(status));
}

void XdsWorld::remove(const std::string& cluster) {
  clusters_.erase(ClusterName(cluster));
}

void XdsWorld::sessions(bool on) {
  Listener listener;
  if (on) listener.filters.push_back({"session", "StatefulSession", StatefulSessionFilter{}});
  listener_ = std::make_shared<const Listener>(std::move(listener));
}

XdsConfigPtr XdsWorld::config() const {
  auto config = std::make_shared<XdsConfig>();
  config->clusters = clusters_;
  config->listener = listener_;
  return config;
}

void XdsWorld::put(Cluster cluster, std::variant<LeafEndpoints, AggregateLeaves> children) {
  const ClusterName name = cluster.name;
  auto config = std::make_shared<const ClusterConfig>(
      ClusterConfig{std::make_shared<const Cluster>(std::move(cluster)), std::move(children)});
  clusters_.insert_or_assign(name, std::move(config));
}

Priority XdsWorld::parse(const std::string& text) {
  Priority priority;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(word, absl::MaxSplits(':', 1));
    Locality locality;
    const std::pair<std::string, std::string> weighted =
        absl::StrSplit(parts.first, absl::MaxSplits('*', 1));
    locality.name.zone = weighted.first;
    if (!weighted.second.empty()) {
      SIGNALBOX_INVARIANT(absl::SimpleAtoi(weighted.second, &locality.weight), "a weight: " + text);
    }
    Locality degraded{locality.name, locality.weight, {}};
    Locality unhealthy = degraded;
    for (const absl::string_view address : absl::StrSplit(parts.second, ',', absl::SkipEmpty())) {
      Endpoint parsed = endpoint(std::string(address));
      Locality& part = parsed.health == HealthStatus::kDegraded    ? degraded
                       : parsed.health == HealthStatus::kUnhealthy ? unhealthy
                                                                   : locality;
      part.endpoints.push_back(std::move(parsed));
    }
    priority.localities.push_back(share(std::move(locality)));
    if (!degraded.endpoints.empty()) priority.degraded.push_back(share(std::move(degraded)));
    if (!unhealthy.endpoints.empty()) priority.unhealthy.push_back(share(std::move(unhealthy)));
  }
  return priority;
}

LocalityPtr XdsWorld::share(Locality locality) {
  for (const LocalityPtr& known : localities_) {
    if (*known == locality) return known;
  }
  return localities_.emplace_back(std::make_shared<const Locality>(std::move(locality)));
}

LbConfigPtr manager_of(const std::vector<std::string>& clusters,
                       const std::vector<std::string>& retiring) {
  ClusterManagerConfig config;
  for (const auto* list : {&clusters, &retiring}) {
    for (const std::string& name : *list) {
      config.children[ClusterName(name)] = {make_lb_config(CdsConfig{ClusterName(name)}),
                                            list == &retiring};
    }
  }
  return make_lb_config(std::move(config));
}

}  // namespace signalbox::test
