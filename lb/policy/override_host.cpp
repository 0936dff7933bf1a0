// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/override_host.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "lb/config_of.hpp"
#include "lb/policy/pass_through.hpp"

namespace signalbox::lb {
namespace {

bool is_draining(const Endpoint& endpoint) {
  return endpoint.health == HealthStatus::kDraining;
}

/// Takes DRAINING endpoints out, and remembers the localities that it made, so that one that did
/// not change is the same pointer again.
class DrainingFilter {
 public:
  EndpointsPtr filter(const EndpointsPtr& endpoints) {
    if (endpoints == nullptr) return nullptr;
    std::map<LocalityPtr, LocalityPtr> used;
    auto filtered = std::make_shared<Endpoints>(*endpoints);
    for (Priority& priority : filtered->priorities) {
      for (LocalityPtr& locality : priority.localities) {
        if (std::ranges::none_of(locality->endpoints, is_draining)) continue;
        locality = used[locality] = without_draining(locality);
      }
    }
    made_ = std::move(used);
    if (made_.empty()) return endpoints;
    return filtered;
  }

 private:
  LocalityPtr without_draining(const LocalityPtr& locality) const {
    if (const auto known = made_.find(locality); known != made_.end()) return known->second;
    auto rest = std::make_shared<Locality>(*locality);
    std::erase_if(rest->endpoints, is_draining);
    return rest;
  }

  std::map<LocalityPtr, LocalityPtr> made_;  ///< From what came to what was passed on.
};

class OverrideHost final : public PassThrough {
  Given give(const ConfigUpdated& update, Instant /*now*/, LbEffects& /*effects*/) override {
    return {config_of<OverrideHostConfig>(update).child, draining_.filter(update.endpoints)};
  }

  DrainingFilter draining_;
};

}  // namespace

std::unique_ptr<Policy> make_override_host() {
  return std::make_unique<OverrideHost>();
}

}  // namespace signalbox::lb
