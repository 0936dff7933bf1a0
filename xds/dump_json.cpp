// SPDX-License-Identifier: Apache-2.0
#include "xds/dump_json.hpp"

#include <string>
#include <utility>

#include "absl/time/time.h"

#include "xds/redacted_resource.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using Json = nlohmann::ordered_json;

std::string rfc3339(WallTime time) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", absl::FromChrono(time), absl::UTCTimeZone());
}

Json error_state(const ResourceFailure& failure) {
  Json out{{"details", failure.details}};
  if (!failure.version.empty()) out["version_info"] = failure.version;
  out["last_update_attempt"] = rfc3339(failure.at);
  return out;
}

Json resource(const ResourceRedactor& redactor, const ResourceState& state) {
  const absl::string_view type_url = type_url_of(state.key.type);
  Json out{{"type_url", std::string(type_url)},
           {"name", state.key.name},
           {"client_status", std::string(to_string(state.status))}};
  if (!state.version.empty()) out["version_info"] = state.version;
  if (state.updated) out["last_updated"] = rfc3339(*state.updated);
  if (state.bytes) out["xds_config"] = redactor.json(type_url, *state.bytes);
  if (state.failure) out["error_state"] = error_state(*state.failure);
  if (!state.server.empty()) out["xds_server"] = state.server;
  return out;
}

Json server(const ServerState& state) {
  Json out{{"server_uri", state.server}, {"connected", state.connected}};
  if (!state.error.empty()) out["error"] = state.error;
  return out;
}

Json applied(const AppliedConfig& config) {
  Json versions = Json::object();
  for (std::size_t type = 0; type < config.versions.size(); ++type) {
    if (!config.versions[type].empty())
      versions[std::string(to_string(static_cast<ResourceType>(type)))] = config.versions[type];
  }
  Json out{{"target", config.target},
           {"generation", config.generation},
           {"versions", std::move(versions)}};
  if (config.received) out["received_at"] = rfc3339(*config.received);
  out["served_at"] = rfc3339(config.served);
  return out;
}

}  // namespace

Json to_json(const ResourceDump& dump) {
  const ResourceRedactor redactor;
  Json servers = Json::array();
  for (const ServerState& state : dump.servers)
    servers.push_back(server(state));
  Json resources = Json::array();
  for (const ResourceState& state : dump.resources)
    resources.push_back(resource(redactor, state));
  Json out{{"node", {{"id", dump.node_id}}},
           {"xds_servers", std::move(servers)},
           {"generic_xds_configs", std::move(resources)}};
  for (const AppliedConfig& config : dump.applied)
    out["applied_configs"].push_back(applied(config));
  return out;
}

std::string to_json_text(const ResourceDump& dump) {
  return to_json(dump).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace signalbox::xds
