// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/wrr_locality.hpp"

#include "lb/config_of.hpp"
#include "lb/tree/pass_through.hpp"

namespace signalbox::lb {
namespace {

LbConfigPtr weighted_target(const LbConfigPtr& child, const EndpointsPtr& endpoints) {
  WeightedTargetConfig config;
  if (endpoints == nullptr) return make_lb_config(config);
  for (const Priority& priority : endpoints->priorities) {
    for (const LocalityPtr& locality : priority.localities) {
      config.targets.try_emplace(
          ChildName(to_string(locality->name)),
          WeightedTargetConfig::Target{locality->weight, child, locality->name});
    }
  }
  return make_lb_config(std::move(config));
}

class WrrLocality final : public PassThrough {
  Given give(const ConfigUpdated& update, Instant /*now*/, LbEffects& /*effects*/) override {
    return {weighted_target(config_of<WrrLocalityConfig>(update).child, update.endpoints),
            update.endpoints};
  }
};

}  // namespace

std::unique_ptr<Policy> make_wrr_locality() {
  return std::make_unique<WrrLocality>();
}

}  // namespace signalbox::lb
