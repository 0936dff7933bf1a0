// SPDX-License-Identifier: Apache-2.0
//
// resources — what the control plane of a fleet serves: a listener, a route configuration, a
// cluster and its endpoints, all with the name "orders".
//
//   type, version, valid ─▶ [response_of] ─▶ a DiscoveryResponse without a nonce, as bytes
//
// Resources of different versions differ, so that each version makes a new configuration.

#pragma once

#include <cstdint>
#include <string>

#include "messages/resource.hpp"

namespace signalbox::fleet {

/// The name of every resource, and of the target.
inline constexpr char kName[] = "orders";

/// The bytes of a DiscoveryResponse with the one resource of the type. `valid`: clients accept it.
/// The bytes of a message with only a nonce, appended, complete the response.
std::string response_of(ResourceType type, std::uint64_t version, bool valid);

}  // namespace signalbox::fleet
