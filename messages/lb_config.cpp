// SPDX-License-Identifier: Apache-2.0
#include "messages/lb_config.hpp"

#include <algorithm>
#include <tuple>

#include "messages/overloaded.hpp"

namespace signalbox {
namespace {

bool same(const RoundRobinConfig&, const RoundRobinConfig&) {
  return true;
}

bool same(const PickFirstConfig& a, const PickFirstConfig& b) {
  return a.shuffle_address_list == b.shuffle_address_list;
}

bool same(const WrrLocalityConfig& a, const WrrLocalityConfig& b) {
  return same_config(a.child, b.child);
}

bool same(const OutlierDetectionConfig& a, const OutlierDetectionConfig& b) {
  return a.cluster == b.cluster && a.settings == b.settings && same_config(a.child, b.child);
}

bool same(const ClusterImplConfig& a, const ClusterImplConfig& b) {
  const auto members = [](const ClusterImplConfig& config) {
    return std::tie(
        config.cluster, config.service_name, config.max_concurrent_requests, config.aggregate);
  };
  return members(a) == members(b) && same_config(a.child, b.child);
}

bool same(const OverrideHostConfig& a, const OverrideHostConfig& b) {
  return a.cluster == b.cluster && a.idle_timeout == b.idle_timeout &&
         a.override_host_status == b.override_host_status && a.sessions == b.sessions &&
         same_config(a.child, b.child);
}

bool same(const TierSetPtr& a, const TierSetPtr& b) {
  return a == b || (a != nullptr && b != nullptr && *a == *b);
}

bool same(const CdsConfig& a, const CdsConfig& b) {
  return a.cluster == b.cluster && same_config(a.lb_policy, b.lb_policy) &&
         same(a.tiers, b.tiers) && a.aggregate == b.aggregate;
}

bool same(const TieredConfig& a, const TieredConfig& b) {
  return a.cluster == b.cluster && a.leaves == b.leaves && a.panic_threshold == b.panic_threshold &&
         same_config(a.lb_policy, b.lb_policy);
}

bool same(const LeafTiersConfig& a, const LeafTiersConfig& b) {
  return a.cluster == b.cluster && a.priorities == b.priorities &&
         a.ignore_reresolution_requests == b.ignore_reresolution_requests &&
         same(a.tiers, b.tiers) && same_config(a.child, b.child);
}

bool same(const RingHashConfig& a, const RingHashConfig& b) {
  return a.min_ring_size == b.min_ring_size && a.max_ring_size == b.max_ring_size &&
         a.request_hash_header == b.request_hash_header;
}

bool same(const LeastRequestConfig& a, const LeastRequestConfig& b) {
  return a.choice_count == b.choice_count;
}

bool same(const CustomConfig& a, const CustomConfig& b) {
  return a.name == b.name && a.config == b.config;
}

bool same(const WeightedTargetConfig& a, const WeightedTargetConfig& b) {
  return std::ranges::equal(a.targets, b.targets, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.weight == y.second.weight &&
           x.second.locality == y.second.locality && same_config(x.second.config, y.second.config);
  });
}

bool same(const PriorityConfig& a, const PriorityConfig& b) {
  return a.cluster == b.cluster && a.priorities == b.priorities &&
         std::ranges::equal(a.children, b.children, [](const auto& x, const auto& y) {
           return x.first == y.first && x.second.slice == y.second.slice &&
                  x.second.ignore_reresolution_requests == y.second.ignore_reresolution_requests &&
                  same_config(x.second.config, y.second.config);
         });
}

bool same(const ClusterManagerConfig& a, const ClusterManagerConfig& b) {
  return std::ranges::equal(a.children, b.children, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.retiring == y.second.retiring &&
           same_config(x.second.config, y.second.config);
  });
}

}  // namespace

absl::string_view policy_name(const LbConfig& config) {
  return std::visit(
      Overloaded{
          [](const RoundRobinConfig&) -> absl::string_view { return "round_robin"; },
          [](const PickFirstConfig&) -> absl::string_view { return "pick_first"; },
          [](const WrrLocalityConfig&) -> absl::string_view { return "wrr_locality"; },
          [](const WeightedTargetConfig&) -> absl::string_view { return "weighted_target"; },
          [](const PriorityConfig&) -> absl::string_view { return "priority"; },
          [](const OverrideHostConfig&) -> absl::string_view { return "override_host"; },
          [](const ClusterImplConfig&) -> absl::string_view { return "cluster_impl"; },
          [](const OutlierDetectionConfig&) -> absl::string_view { return "outlier_detection"; },
          [](const CdsConfig&) -> absl::string_view { return "cds"; },
          [](const ClusterManagerConfig&) -> absl::string_view { return "cluster_manager"; },
          [](const RingHashConfig&) -> absl::string_view { return "ring_hash"; },
          [](const LeastRequestConfig&) -> absl::string_view { return "least_request"; },
          [](const CustomConfig& custom) -> absl::string_view { return custom.name; },
          [](const TieredConfig&) -> absl::string_view { return "tiered"; },
          [](const LeafTiersConfig&) -> absl::string_view { return "leaf_tiers"; },
      },
      static_cast<const LbConfig::variant&>(config));
}

bool same_config(const LbConfigPtr& left, const LbConfigPtr& right) {
  if (left == right) return true;
  if (left == nullptr || right == nullptr || left->index() != right->index()) return false;
  return std::visit(
      [&](const auto& config) {
        return same(config, std::get<std::decay_t<decltype(config)>>(*right));
      },
      static_cast<const LbConfig::variant&>(*left));
}

}  // namespace signalbox
