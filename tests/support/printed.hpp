// SPDX-License-Identifier: Apache-2.0
//
// printed — how Catch2 shows signalbox's enumerations when a comparison of them fails.
//
//   CHECK(state == kReady) ─▶ Catch2 ─▶ [operator<<] ─▶ to_string() ─▶ "IDLE == READY"
//
// Every test that compares these types must include this header. Without it Catch2 shows numbers.
// If only some sources of a program include it, the linker chooses one form for the whole program.

#pragma once

#include <ostream>

#include "messages/connectivity.hpp"
#include "messages/resource.hpp"
#include "messages/resource_dump.hpp"

namespace signalbox {

inline std::ostream& operator<<(std::ostream& out, ConnectivityState state) {
  return out << to_string(state);
}

inline std::ostream& operator<<(std::ostream& out, HealthStatus status) {
  return out << to_string(status);
}

inline std::ostream& operator<<(std::ostream& out, ResourceType type) {
  return out << to_string(type);
}

inline std::ostream& operator<<(std::ostream& out, ResourceStatus status) {
  return out << to_string(status);
}

}  // namespace signalbox
