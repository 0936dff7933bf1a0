// SPDX-License-Identifier: Apache-2.0
#include "lb/policy_registry.hpp"

#include <utility>

#include "lb/leaf/custom.hpp"
#include "lb/leaf/least_request.hpp"
#include "lb/leaf/maglev.hpp"
#include "lb/leaf/pick_first.hpp"
#include "lb/leaf/random.hpp"
#include "lb/leaf/ring_hash.hpp"
#include "lb/leaf/round_robin.hpp"
#include "lb/leaf/weighted_round_robin.hpp"
#include "lb/tree/cds.hpp"
#include "lb/tree/cluster_impl.hpp"
#include "lb/tree/cluster_manager.hpp"
#include "lb/tree/leaf_tiers.hpp"
#include "lb/tree/outlier_detection.hpp"
#include "lb/tree/override_host.hpp"
#include "lb/tree/priority.hpp"
#include "lb/tree/random_subsetting.hpp"
#include "lb/tree/tiered.hpp"
#include "lb/tree/weighted_target.hpp"
#include "lb/tree/wrr_locality.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_policy(const LbConfig& config, PolicyContext context) {
  using Made = std::unique_ptr<Policy>;
  return std::visit(
      Overloaded{
          [&](const WrrLocalityConfig&) -> Made { return make_wrr_locality(context.options); },
          [&](const RandomSubsettingConfig&) -> Made { return make_random_subsetting(context); },
          [](const WeightedTargetConfig&) -> Made { return make_weighted_target(); },
          [&](const PriorityConfig&) -> Made { return make_priority(context.options); },
          [&](const OverrideHostConfig&) -> Made { return make_override_host(std::move(context)); },
          [&](const OutlierDetectionConfig&) -> Made {
            return make_outlier_detection(std::move(context));
          },
          [&](const ClusterImplConfig&) -> Made { return make_cluster_impl(std::move(context)); },
          [&](const CdsConfig&) -> Made { return make_cds(context.options.aggregate_mode); },
          [](const ClusterManagerConfig&) -> Made { return make_cluster_manager(); },
          [&](const TieredConfig&) -> Made { return make_tiered(context.options); },
          [&](const LeafTiersConfig&) -> Made { return make_leaf_tiers(context.options); },
          // The header of each leaf policy declares a make_leaf() for the policy's configuration.
          [&](const auto& own) -> Made { return make_leaf(own, std::move(context)); },
      },
      static_cast<const LbConfig::variant&>(config));
}

}  // namespace signalbox::lb
