// SPDX-License-Identifier: Apache-2.0
//
// config_of — takes a policy's own configuration from a ConfigUpdated.

#pragma once

#include <variant>

#include "messages/invariant.hpp"
#include "messages/lb_events.hpp"

namespace signalbox::lb {

/// The policy's own configuration. Precondition: `update` is for a policy of this type. ChildSet
/// makes sure of it: it replaces the policy when the type changes (its rule C4).
template <typename Config>
const Config& config_of(const ConfigUpdated& update) {
  const Config* config =
      update.config == nullptr ? nullptr : std::get_if<Config>(update.config.get());
  SIGNALBOX_INVARIANT(config != nullptr, "a policy is sent configurations of its own kind");
  return *config;
}

}  // namespace signalbox::lb
