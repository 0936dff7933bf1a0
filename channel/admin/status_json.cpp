// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/status_json.hpp"

#include <chrono>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include <nlohmann/json.hpp>

namespace signalbox::channel {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void put(Json& out, const char* key, const std::string& text) {
  if (!text.empty()) out[key] = text;
}

void put(Json& out, const char* key, const absl::Status& status) {
  if (!status.ok()) out[key] = std::string(status.message());
}

void put(Json& out, const char* key, const std::optional<WallTime>& time) {
  if (time) out[key] = rfc3339(*time);
}

template <typename Number>
void put(Json& out, const char* key, const std::optional<Number>& number) {
  if (number) out[key] = *number;
}

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// --- /status ----------------------------------------------------------------

Json to_json(const AddressStatus& address) {
  Json out{{"address", address.address.str()},
           {"state", std::string(to_word(address.state))},
           {"connectivity", std::string(to_string(address.connectivity))}};
  put(out, "since", address.since);
  put(out, "reason", address.reason);
  out["ejections"] = address.ejections;
  out["calls_in_flight"] = address.calls_in_flight;
  return out;
}

Json to_json(const EndpointStatus& endpoint) {
  Json out = Json::object();
  put(out, "hostname", endpoint.hostname);
  out["eds_health"] = std::string(to_string(endpoint.eds_health));
  out["weight"] = endpoint.weight;
  Json& addresses = out["addresses"] = Json::array();
  for (const AddressStatus& address : endpoint.addresses)
    addresses.push_back(to_json(address));
  return out;
}

Json to_json(const LocalityStatus& locality) {
  Json out = Json::object();
  put(out, "region", locality.name.region);
  put(out, "zone", locality.name.zone);
  put(out, "sub_zone", locality.name.sub_zone);
  out["weight"] = locality.weight;
  Json& endpoints = out["endpoints"] = Json::array();
  for (const EndpointStatus& endpoint : locality.endpoints)
    endpoints.push_back(to_json(endpoint));
  return out;
}

Json to_json(const PriorityStatus& priority) {
  Json out = Json::object();
  put(out, "name", priority.name);
  out["started"] = priority.started;
  if (priority.started) out["state"] = std::string(to_string(priority.state));
  put(out, "since", priority.since);
  put(out, "reason", priority.reason);
  put(out, "window_ends", priority.window_ends);
  put(out, "load_percent", priority.load_percent);
  Json& localities = out["localities"] = Json::array();
  for (const LocalityStatus& locality : priority.localities)
    localities.push_back(to_json(locality));
  return out;
}

Json to_json(const ClusterStatus& cluster) {
  Json out{{"name", cluster.name.str()}};
  put(out, "aggregate", cluster.aggregate.str());
  out["kind"] = std::string(to_word(cluster.kind));
  put(out, "failure", cluster.failure);
  if (cluster.kind == ClusterKind::kAggregate) {
    out["mode"] = cluster.mode == AggregateMode::kTiered ? "tiered" : "priority";
    Json& leaves = out["leaves"] = Json::array();
    for (const ClusterName& leaf : cluster.leaves)
      leaves.push_back(leaf.str());
  }
  put(out, "service_name", cluster.service_name);
  if (cluster.max_requests > 0) out["max_requests"] = cluster.max_requests;
  put(out, "active", cluster.active);
  Json& priorities = out["priorities"] = Json::array();
  for (const PriorityStatus& priority : cluster.priorities)
    priorities.push_back(to_json(priority));
  return out;
}

Json to_json(const TargetStatus& target) {
  Json out{{"name", target.name}, {"state", std::string(to_string(target.state))}};
  put(out, "since", target.since);
  out["ready"] = target.ready;
  put(out, "failure", target.failure);
  out["generation"] = target.generation;
  put(out, "configured", target.configured);
  put(out, "calls_succeeded", target.calls_succeeded);
  put(out, "calls_failed", target.calls_failed);
  Json& clusters = out["clusters"] = Json::array();
  for (const ClusterStatus& cluster : target.clusters)
    clusters.push_back(to_json(cluster));
  return out;
}

Json to_json(const PriorityChange& change) {
  Json out{{"number", change.number},
           {"at", rfc3339(change.at)},
           {"target", change.target},
           {"cluster", change.cluster.str()}};
  put(out, "aggregate", change.aggregate.str());
  put(out, "from", change.from);
  put(out, "to", change.to);
  put(out, "from_name", change.from_name);
  put(out, "to_name", change.to_name);
  out["reason"] = std::string(to_string(change.reason));
  put(out, "details", change.details);
  out["without_seconds"] = seconds(change.without);
  if (change.window_left) out["window_left_seconds"] = seconds(*change.window_left);
  return out;
}

// --- /clusters?format=json --------------------------------------------------

Json socket_address(const Address& address) {
  const std::string& text = address.str();
  const std::size_t colon = text.rfind(':');
  absl::string_view host = absl::string_view(text).substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  std::uint32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(text.substr(colon + 1), &port)) port = 0;
  return {{"socket_address", {{"address", std::string(host)}, {"port_value", port}}}};
}

Json gauge(const char* name, std::int64_t value) {
  // protobuf's JSON writes 64-bit numbers as strings.
  return {{"type", "GAUGE"}, {"name", name}, {"value", absl::StrCat(value)}};
}

Json health(const EndpointStatus& endpoint, const AddressStatus& address) {
  Json out = Json::object();
  if (address.state == EndpointState::kUnhealthy) out["failed_active_health_check"] = true;
  if (address.state == EndpointState::kEjected) out["failed_outlier_check"] = true;
  out["eds_health_status"] = std::string(to_string(endpoint.eds_health));
  return out;
}

Json host(std::size_t priority,
          const LocalityStatus& locality,
          const EndpointStatus& endpoint,
          const AddressStatus& address) {
  Json place = Json::object();
  put(place, "region", locality.name.region);
  put(place, "zone", locality.name.zone);
  put(place, "sub_zone", locality.name.sub_zone);
  Json out{{"address", socket_address(address.address)}};
  const bool is_connected = address.connectivity == ConnectivityState::kReady;
  out["stats"] = Json::array(
      {gauge("cx_active", is_connected ? 1 : 0), gauge("rq_active", address.calls_in_flight)});
  out["health_status"] = health(endpoint, address);
  out["weight"] = endpoint.weight;
  put(out, "hostname", endpoint.hostname);
  out["priority"] = priority;
  out["locality"] = std::move(place);
  return out;
}

Json cluster_status(const TargetStatus& target, const ClusterStatus& cluster) {
  const std::string above = cluster.aggregate.empty() ? "" : cluster.aggregate.str() + "/";
  Json out{{"name", cluster.name.str()}, {"added_via_api", true}};
  Json& hosts = out["host_statuses"] = Json::array();
  for (std::size_t at = 0; at < cluster.priorities.size(); ++at) {
    for (const LocalityStatus& locality : cluster.priorities[at].localities) {
      for (const EndpointStatus& endpoint : locality.endpoints) {
        for (const AddressStatus& address : endpoint.addresses)
          hosts.push_back(host(at, locality, endpoint, address));
      }
    }
  }
  if (cluster.max_requests > 0)
    out["circuit_breakers"] = {{"thresholds", {{{"max_requests", cluster.max_requests}}}}};
  out["observability_name"] = absl::StrCat(target.name, "/", above, cluster.name.str());
  if (cluster.kind == ClusterKind::kEds) put(out, "eds_service_name", cluster.service_name);
  return out;
}

}  // namespace

absl::string_view to_word(const std::optional<EndpointState>& state) {
  if (!state) return "none";
  switch (*state) {
    case EndpointState::kReady:
      return "ready";
    case EndpointState::kConnecting:
      return "connecting";
    case EndpointState::kIdle:
      return "idle";
    case EndpointState::kTransientFailure:
      return "transient_failure";
    case EndpointState::kDraining:
      return "draining";
    case EndpointState::kEjected:
      return "ejected";
    case EndpointState::kUnhealthy:
      return "unhealthy";
  }
  return "none";
}

absl::string_view to_word(ClusterKind kind) {
  switch (kind) {
    case ClusterKind::kEds:
      return "eds";
    case ClusterKind::kDns:
      return "dns";
    case ClusterKind::kAggregate:
      return "aggregate";
    case ClusterKind::kFailed:
      return "failed";
  }
  return "failed";
}

std::string rfc3339(WallTime time) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", absl::FromChrono(time), absl::UTCTimeZone());
}

std::string status_json(const RuntimeStatus& status) {
  Json out{{"version", status.version},
           {"node_id", status.node_id},
           {"made", rfc3339(status.made)},
           {"started", rfc3339(status.started)},
           {"ready", status.ready}};
  Json& targets = out["targets"] = Json::array();
  for (const TargetStatus& target : status.targets)
    targets.push_back(to_json(target));
  Json& changes = out["changes"] = Json::array();
  for (const PriorityChange& change : status.changes)
    changes.push_back(to_json(change));
  return text_of(out);
}

std::string clusters_json(const RuntimeStatus& status) {
  Json out;
  Json& clusters = out["cluster_statuses"] = Json::array();
  for (const TargetStatus& target : status.targets) {
    for (const ClusterStatus& cluster : target.clusters) {
      if (cluster.kind != ClusterKind::kAggregate)
        clusters.push_back(cluster_status(target, cluster));
    }
  }
  return text_of(out);
}

std::string server_info_json(const RuntimeStatus& status) {
  const auto up = std::chrono::duration_cast<std::chrono::seconds>(status.made - status.started);
  const std::string uptime = absl::StrCat(up.count(), "s");
  return text_of(Json{{"version", status.version},
                      {"state", status.ready ? "LIVE" : "INITIALIZING"},
                      {"uptime_current_epoch", uptime},
                      {"uptime_all_epochs", uptime},
                      {"node", {{"id", status.node_id}}}});
}

}  // namespace signalbox::channel
