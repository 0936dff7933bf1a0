// SPDX-License-Identifier: Apache-2.0
//
// dump_json — a ResourceDump as JSON, in the words of CSDS.
//
//   client_core ─▶ ResourceDump ─▶ [dump_json] ─▶ Runtime::dump_json, GET /config_dump
//
//   {"node": {"id": "…"},
//    "xds_servers": [{"server_uri": "…", "connected": true}],            ours; "error" where not
//    "generic_xds_configs": [
//      {"type_url": "…", "name": "…", "client_status": "NACKED",
//       "version_info": "…", "last_updated": "…", "xds_config": {…},     of the resource in use
//       "error_state": {"details": "…", "version_info": "…", "last_update_attempt": "…"},
//       "xds_server": "…"}]}                                             ours
//
// The rest is envoy.service.status.v3.ClientConfig with the API's names. What is empty is left out.
// Times are RFC 3339, in UTC, to the millisecond.
//
// `xds_config` has the fields that our messages have, which are those that are read; in an Any of a
// type that they lack, nothing but `@type` is shown. What may be a secret is "[redacted]": members
// called as keys, tokens, passwords and inline data are, at any depth, and what a header that
// carries credentials is matched with.
//
// Pure; any thread.
//
// Source: gRFC A40; envoy/service/status/v3/csds.proto, envoy/admin/v3/config_dump_shared.proto.

#pragma once

#include <nlohmann/json.hpp>

#include "messages/resource_dump.hpp"

namespace signalbox::xds {

nlohmann::ordered_json to_json(const ResourceDump& dump);

/// As text, indented by two spaces, with a newline at the end. What is no UTF-8 is replaced.
std::string to_json_text(const ResourceDump& dump);

}  // namespace signalbox::xds
