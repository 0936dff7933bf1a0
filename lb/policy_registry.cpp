// SPDX-License-Identifier: Apache-2.0
#include "lb/policy_registry.hpp"

#include <utility>

#include "lb/policy/cds.hpp"
#include "lb/policy/cluster_impl.hpp"
#include "lb/policy/cluster_manager.hpp"
#include "lb/policy/custom.hpp"
#include "lb/policy/leaf_tiers.hpp"
#include "lb/policy/least_request.hpp"
#include "lb/policy/outlier_detection.hpp"
#include "lb/policy/override_host.hpp"
#include "lb/policy/pick_first.hpp"
#include "lb/policy/priority.hpp"
#include "lb/policy/ring_hash.hpp"
#include "lb/policy/round_robin.hpp"
#include "lb/policy/tiered.hpp"
#include "lb/policy/weighted_target.hpp"
#include "lb/policy/wrr_locality.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_policy(const LbConfig& config, PolicyContext context) {
  using Made = std::unique_ptr<Policy>;
  return std::visit(
      Overloaded{
          [&](const RoundRobinConfig& own) -> Made {
            return make_round_robin(own, std::move(context));
          },
          [&](const PickFirstConfig& own) -> Made {
            return make_pick_first(own, std::move(context));
          },
          [](const WrrLocalityConfig&) -> Made { return make_wrr_locality(); },
          [](const WeightedTargetConfig&) -> Made { return make_weighted_target(); },
          [&](const PriorityConfig&) -> Made { return make_priority(context.options); },
          [&](const OverrideHostConfig&) -> Made { return make_override_host(std::move(context)); },
          [&](const OutlierDetectionConfig&) -> Made {
            return make_outlier_detection(std::move(context));
          },
          [&](const ClusterImplConfig&) -> Made { return make_cluster_impl(std::move(context)); },
          [&](const CdsConfig&) -> Made { return make_cds(context.options.aggregate_mode); },
          [](const ClusterManagerConfig&) -> Made { return make_cluster_manager(); },
          [&](const RingHashConfig& own) -> Made {
            return make_ring_hash(own, std::move(context));
          },
          [&](const LeastRequestConfig& own) -> Made {
            return make_least_request(own, std::move(context));
          },
          [&](const CustomConfig& own) -> Made { return make_custom(own, std::move(context)); },
          [&](const TieredConfig&) -> Made { return make_tiered(context.options); },
          [&](const LeafTiersConfig&) -> Made { return make_leaf_tiers(context.options); },
      },
      static_cast<const LbConfig::variant&>(config));
}

}  // namespace signalbox::lb
