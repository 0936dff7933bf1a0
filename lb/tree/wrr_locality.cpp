// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/wrr_locality.hpp"

#include <utility>

#include "absl/strings/escaping.h"

#include "lb/config_of.hpp"
#include "lb/tree/pass_through.hpp"

namespace signalbox::lb {
namespace {

// Escaped, or quotes in the names could give two localities one target.
ChildName target_of(const LocalityName& name) {
  return ChildName(to_string(LocalityName{absl::Utf8SafeCEscape(name.region),
                                          absl::Utf8SafeCEscape(name.zone),
                                          absl::Utf8SafeCEscape(name.sub_zone)}));
}

LbConfigPtr weighted_target(const WrrLocalityConfig& own,
                            const LocalityName& caller,
                            const EndpointsPtr& endpoints) {
  WeightedTargetConfig config;
  config.zone_aware = own.zone_aware;
  if (own.zone_aware) config.caller = caller;
  if (endpoints == nullptr) return make_lb_config(config);
  for (const Priority& priority : endpoints->priorities) {
    for (const LocalityPtr& locality : priority.localities) {
      config.targets.try_emplace(
          target_of(locality->name),
          WeightedTargetConfig::Target{locality->weight, own.child, locality->name});
    }
  }
  return make_lb_config(std::move(config));
}

class WrrLocality final : public PassThrough {
 public:
  explicit WrrLocality(LocalityName caller) : caller_(std::move(caller)) {}

 private:
  Given give(const ConfigUpdated& update, Instant /*now*/, LbEffects& /*effects*/) override {
    return {weighted_target(config_of<WrrLocalityConfig>(update), caller_, update.endpoints),
            update.endpoints};
  }

  const LocalityName caller_;
};

}  // namespace

std::unique_ptr<Policy> make_wrr_locality(const PolicyOptions& options) {
  return std::make_unique<WrrLocality>(options.caller);
}

}  // namespace signalbox::lb
