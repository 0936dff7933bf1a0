// SPDX-License-Identifier: Apache-2.0
//
// dump_json — a ResourceDump as JSON, with the field names of CSDS.
//
//   client_core ─▶ ResourceDump ─▶ [dump_json] ─▶ Runtime::dump_json, GET /config_dump
//
//   {"node": {"id": "…"},
//    "xds_servers": [{"server_uri": "…", "connected": true}],            addition (1)
//    "generic_xds_configs": [
//      {"type_url": "…", "name": "…", "client_status": "NACKED",
//       "version_info": "…", "last_updated": "…", "xds_config": {…},     (2)
//       "error_state": {"details": "…", "version_info": "…", "last_update_attempt": "…"},
//       "xds_server": "…"}],                                             addition
//    "applied_configs": [{"target": "…", "generation": 7,                addition
//       "versions": {"LDS": "…"}, "received_at": "…", "served_at": "…"}]}
//
//   (1) "error" is added if the client knows a failure of the server.
//   (2) These three fields describe the resource in use.
//
// Fields that are not marked as an addition are those of envoy.service.status.v3.ClientConfig, with
// the API's names. Empty fields of a resource are left out. Times are RFC 3339, in UTC, to the
// millisecond.
//
// `xds_config` shows only the fields that signalbox's own messages have. An Any of an unknown type
// shows only `@type`. Possible secrets are shown as "[redacted]", at any depth (redaction.hpp).
//
// Pure functions, for any thread.
//
// Source: gRFC A40; envoy/service/status/v3/csds.proto, envoy/admin/v3/config_dump_shared.proto.

#pragma once

#include <nlohmann/json.hpp>

#include "messages/resource_dump.hpp"

namespace signalbox::xds {

nlohmann::ordered_json to_json(const ResourceDump& dump);

/// The dump as JSON text, indented by two spaces, with a newline at the end. Bytes that are not
/// UTF-8 are replaced.
std::string to_json_text(const ResourceDump& dump);

}  // namespace signalbox::xds
