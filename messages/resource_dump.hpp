// SPDX-License-Identifier: Apache-2.0
//
// ResourceDump — the xDS client's knowledge of every watched resource.
//
//   client_core ─▶ [ResourceDump] ─▶ Runtime::dump, `signalbox dump`, metrics
//
// Plain values; each is true for the moment when it was made.
//
// Source: gRFC A40 (states, times, errors), A88 (RECEIVED_ERROR, TIMEOUT; an error beside a cached
// resource), A71 (the server that a resource came from), A78 (cache_state).

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "messages/resource.hpp"
#include "messages/xds_config.hpp"

namespace signalbox {

/// Calendar time, because people compare it with the logs of other machines.
using WallTime = std::chrono::system_clock::time_point;

/// envoy.admin.v3.ClientResourceStatus.
enum class ResourceStatus : std::uint8_t {
  kRequested,  ///< Requested, or about to be requested; no answer has come yet.
  /// The resource was deleted, or was not sent in time (unless kTimeout applies), or its name has
  /// no valid authority.
  kDoesNotExist,
  kAcked,          ///< The last response was good.
  kNacked,         ///< The last response was refused; an earlier valid response may be in use.
  kReceivedError,  ///< The server gave a reason for not sending the resource (A88).
  kTimeout,  ///< Not sent in time, with the server feature resource_timer_is_transient_error (A88).
};

/// "REQUESTED", "DOES_NOT_EXIST", … as in the API.
absl::string_view to_string(ResourceStatus status);

/// The fault of a resource: its last version was refused, the server deleted it or reported an
/// error, nothing came in time, or its name has no valid authority.
struct ResourceFailure {
  std::string details;
  std::string version;  ///< The version of the refused response; empty: none was refused.
  WallTime at;
};

struct ResourceState {
  ResourceKey key;
  ResourceStatus status = ResourceStatus::kRequested;
  std::string server;   ///< The server that sent the resource or is asked for it; empty: none.
  std::string version;  ///< The version of the resource in use; empty: none is in use.
  /// When the content of the resource in use last changed; nullopt: none is in use.
  std::optional<WallTime> updated;
  /// The resource in use, serialised as received; null: none is in use.
  std::shared_ptr<const std::string> bytes;
  std::optional<ResourceFailure> failure;
};

/// The name of the state by gRFC A78 or A88: "acked", "nacked_but_cached", … It is the value of the
/// label `cache_state` of signalbox_xds_resources.
absl::string_view cache_state(const ResourceState& state);

struct ServerState {
  std::string server;
  bool connected = false;  ///< The client uses the server, and knows of no failure.
  /// The server's last failure; empty: it is connected, or the client does not use it.
  std::string error;
};

/// A configuration of a target that picks have seen.
struct AppliedConfig {
  std::string target;
  Generation generation = 0;
  ResourceVersions versions;
  /// When the last response came that changed the configuration; nullopt: no response did.
  std::optional<WallTime> received;
  WallTime served;  ///< When picks first saw the configuration.
};

struct ResourceDump {
  std::string node_id;
  std::vector<ServerState> servers;
  std::vector<ResourceState> resources;  ///< In the order of their keys.
  /// The last configurations of each target, the newest last. They say which version is
  /// used, and since when.
  std::vector<AppliedConfig> applied = {};
};

}  // namespace signalbox
