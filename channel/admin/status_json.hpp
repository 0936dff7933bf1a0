// SPDX-License-Identifier: Apache-2.0
//
// status_json — a RuntimeStatus as JSON, in two shapes.
//
//   RuntimeStatus ─▶ [status_json]   GET /status: all of it, with the names of runtime_status.hpp
//                └─▶ [clusters_json] GET /clusters?format=json: envoy.admin.v3.Clusters
//
// /status
//   {"version", "node_id", "made", "started", "ready",
//    "targets": [{"name", "state", "since", "ready", "failure", "generation", "configured",
//      "calls_succeeded", "calls_failed",
//      "clusters": [{"name", "aggregate", "kind", "failure", "mode", "leaves", "service_name",
//        "max_requests", "active",
//        "priorities": [{"name", "started", "state", "since", "reason", "window_ends",
//          "load_percent",
//          "localities": [{"region", "zone", "sub_zone", "weight",
//            "endpoints": [{"hostname", "eds_health", "weight",
//              "addresses": [{"address", "state", "connectivity", "since", "reason", "ejections",
//                "calls_in_flight"}]}]}]}]}]}],
//    "changes": [{"number", "at", "target", "cluster", "aggregate", "from", "to", "from_name",
//      "to_name", "reason", "details", "without_seconds", "window_left_seconds"}]}
//
// A field without a value (an optional, an empty text, an OK status, a limit of 0) is left out,
// except "node_id". Only aggregates have "mode" and "leaves". A priority has "state" only when
// started. The "state" of an address without a subchannel is "none". Times are RFC 3339, in UTC, to
// the millisecond.
//
// /clusters has one entry for each leaf and each failed cluster of each target. observability_name
// is "TARGET/CLUSTER", or "TARGET/AGGREGATE/CLUSTER". Each address is a host.
//
// Pure. Bytes that are not UTF-8 are replaced.

#pragma once

#include <string>

#include "signalbox/runtime_status.hpp"

namespace signalbox::channel {

/// The word for an address's state: "ready", "transient_failure", …; nullopt (the address has no
/// subchannel): "none".
absl::string_view to_word(const std::optional<EndpointState>& state);
absl::string_view to_word(ClusterKind kind);

/// "2026-11-25T19:30:00.123Z".
std::string rfc3339(WallTime time);

std::string status_json(const RuntimeStatus& status);

std::string clusters_json(const RuntimeStatus& status);

/// GET /server_info: the fields of envoy.admin.v3.ServerInfo that signalbox has. `state` is LIVE
/// when the runtime is ready, else INITIALIZING.
std::string server_info_json(const RuntimeStatus& status);

}  // namespace signalbox::channel
