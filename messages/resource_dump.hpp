// SPDX-License-Identifier: Apache-2.0
//
// ResourceDump — what the xDS client knows of every resource that somebody watches.
//
//   client_core ─▶ [ResourceDump] ─▶ Runtime::dump, `signalbox dump`, metrics
//
// Plain values: each holds for the moment when it was made.
//
// Source: gRFC A40 (states, times, errors), A88 (RECEIVED_ERROR, TIMEOUT; an error beside a cached
// resource), A71 (the server that a resource came from), A78 (cache_state).

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "messages/resource.hpp"

namespace signalbox {

/// The control plane's clock is a calendar's: what people compare with logs of other machines.
using WallTime = std::chrono::system_clock::time_point;

/// envoy.admin.v3.ClientResourceStatus.
enum class ResourceStatus : std::uint8_t {
  kRequested,      ///< Asked for, or about to be; nothing came yet.
  kDoesNotExist,   ///< The server does not have it.
  kAcked,          ///< The last that came is good.
  kNacked,         ///< The last that came was refused; an earlier good one may be in use.
  kReceivedError,  ///< The server said why it does not send it (A88).
  kTimeout,        ///< It did not come in time, which may pass (A88).
};

/// "REQUESTED", "DOES_NOT_EXIST", … as in the API.
absl::string_view to_string(ResourceStatus status);
std::ostream& operator<<(std::ostream& out, ResourceStatus status);

/// The last thing that was wrong with a resource.
struct ResourceFailure {
  std::string details;
  std::string version;  ///< Of the response that was refused; empty: none was.
  WallTime at;
};

struct ResourceState {
  ResourceKey key;
  ResourceStatus status = ResourceStatus::kRequested;
  std::string server;   ///< That the resource came from, or is asked of; empty: none.
  std::string version;  ///< Of the resource in use; empty: none is.
  /// When the resource in use came, or last changed.
  std::optional<WallTime> updated;
  /// The resource in use, serialised as it came; null: none is.
  std::shared_ptr<const std::string> bytes;
  std::optional<ResourceFailure> failure;
};

/// gRFC A78: "acked", "nacked_but_cached", …: the label `cache_state` of signalbox_xds_resources.
absl::string_view cache_state(const ResourceState& state);

struct ServerState {
  std::string server;
  bool connected = false;  ///< As signalbox_xds_connected has it.
  std::string error;       ///< Why not; empty: it is, or was never tried.
};

struct ResourceDump {
  std::string node_id;
  std::vector<ServerState> servers;
  std::vector<ResourceState> resources;  ///< In the order of their keys.
};

}  // namespace signalbox
