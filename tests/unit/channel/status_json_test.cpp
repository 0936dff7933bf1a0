// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/status_json.hpp"

#include <string>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/unit/channel/status_fixture.hpp"

namespace signalbox::channel {
namespace {

using Json = nlohmann::json;

}  // namespace

TEST_CASE("status json: has all of the status, and leaves out what has no value",
          "[channel][admin][status]") {
  const Json json = Json::parse(status_json(some_status()));
  CHECK(json["version"] == "1.2.3");
  CHECK(json["node_id"] == "me");
  CHECK(json["made"] == "2026-11-25T19:10:00.000Z");
  CHECK(json["ready"] == true);
  REQUIRE(json["targets"].size() == 1);
  const Json& target = json["targets"][0];
  CHECK(target["name"] == "xds:///orders");
  CHECK(target["state"] == "READY");
  CHECK(target["since"] == "2026-11-25T19:01:40.000Z");
  CHECK(target["generation"] == 7);
  CHECK_FALSE(target.contains("failure"));
  REQUIRE(target["clusters"].size() == 4);

  const Json& all = target["clusters"][0];
  CHECK(all["kind"] == "aggregate");
  CHECK(all["mode"] == "priority");
  CHECK(all["leaves"] == Json({"near", "far"}));
  CHECK(all["active"] == 1);
  CHECK_FALSE(all.contains("max_requests"));
  CHECK(all["priorities"][0]["reason"] == "refused");

  const Json& near = target["clusters"][1];
  CHECK(near["aggregate"] == "all");
  CHECK(near["service_name"] == "near-service");
  CHECK_FALSE(near.contains("active"));
  CHECK(near["priorities"][0]["window_ends"] == "2026-11-25T19:10:05.000Z");
  const Json& locality = near["priorities"][0]["localities"][0];
  CHECK(locality["region"] == "r");
  CHECK_FALSE(locality.contains("sub_zone"));
  CHECK(locality["weight"] == 3);
  CHECK(locality["endpoints"][1]["addresses"][0] == Json{{"address", "[2001:db8::1]:443"},
                                                         {"state", "ejected"},
                                                         {"connectivity", "READY"},
                                                         {"since", "2026-11-25T19:08:20.000Z"},
                                                         {"reason", "too many failures"},
                                                         {"ejections", 2},
                                                         {"calls_in_flight", 1}});

  const Json& far = target["clusters"][2];
  CHECK(far["priorities"][0]["load_percent"] == 80);
  CHECK_FALSE(far["priorities"][1].contains("state"));
  const Json& unused = far["priorities"][1]["localities"][0]["endpoints"][0]["addresses"][0];
  CHECK(unused["state"] == "none");
  CHECK_FALSE(unused.contains("since"));
  CHECK(target["clusters"][3]["failure"] == "no such cluster");

  REQUIRE(json["changes"].size() == 3);
  const Json& lost = json["changes"][1];
  CHECK(lost["from"] == 0);
  CHECK_FALSE(lost.contains("to"));
  CHECK(lost["reason"] == "lost");
  CHECK(lost["window_left_seconds"] == 10.0);
  CHECK(json["changes"][2]["without_seconds"] == 10.0);
  CHECK(json["changes"][2]["details"] == "connection refused");
}

TEST_CASE("status json: calls that are not counted have no number", "[channel][admin][status]") {
  RuntimeStatus status = some_status();
  status.targets[0].calls_succeeded = std::nullopt;
  status.targets[0].calls_failed = std::nullopt;
  const Json without = Json::parse(status_json(status))["targets"][0];
  CHECK_FALSE(without.contains("calls_succeeded"));
  CHECK_FALSE(without.contains("calls_failed"));
  status.targets[0].calls_succeeded = 0;
  status.targets[0].calls_failed = 2;
  const Json with = Json::parse(status_json(status))["targets"][0];
  CHECK(with["calls_succeeded"] == 0);
  CHECK(with["calls_failed"] == 2);
}

TEST_CASE("clusters json: has the shape of envoy.admin.v3.Clusters", "[channel][admin][status]") {
  const Json json = Json::parse(clusters_json(some_status()));
  const Json& clusters = json["cluster_statuses"];
  REQUIRE(clusters.size() == 3);  // Without the aggregate, which has no hosts.
  const Json& near = clusters[0];
  CHECK(near["name"] == "near");
  CHECK(near["added_via_api"] == true);
  CHECK(near["observability_name"] == "xds:///orders/all/near");
  CHECK(near["eds_service_name"] == "near-service");
  CHECK(near["circuit_breakers"]["thresholds"][0]["max_requests"] == 1024);
  REQUIRE(near["host_statuses"].size() == 2);
  CHECK(near["host_statuses"][0] ==
        Json{{"address", {{"socket_address", {{"address", "10.0.0.1"}, {"port_value", 80}}}}},
             {"stats",
              {{{"type", "GAUGE"}, {"name", "cx_active"}, {"value", "0"}},
               {{"type", "GAUGE"}, {"name", "rq_active"}, {"value", "0"}}}},
             {"health_status", {{"eds_health_status", "UNKNOWN"}}},
             {"weight", 1},
             {"priority", 0},
             {"locality", {{"region", "r"}, {"zone", "z"}}}});
  const Json& ejected = near["host_statuses"][1];
  CHECK(ejected["address"]["socket_address"]["address"] == "2001:db8::1");
  CHECK(ejected["address"]["socket_address"]["port_value"] == 443);
  CHECK(ejected["health_status"]["failed_outlier_check"] == true);
  CHECK(ejected["stats"][0]["value"] == "1");
  const Json& far = clusters[1];
  CHECK(far["host_statuses"][0]["hostname"] == "far.example");
  CHECK(far["host_statuses"][0]["health_status"]["eds_health_status"] == "HEALTHY");
  CHECK(far["host_statuses"][1]["priority"] == 1);
  CHECK(clusters[2]["name"] == "broken");
  CHECK(clusters[2]["host_statuses"].empty());
}

TEST_CASE("clusters json: health checks that fail, and addresses without a port",
          "[channel][admin][status]") {
  RuntimeStatus status;
  ClusterStatus cluster{.name = ClusterName("c")};
  cluster.priorities.emplace_back().localities = {{}};
  cluster.priorities[0].localities[0].endpoints = {
      endpoint_of({.address = Address("odd"), .state = EndpointState::kUnhealthy})};
  status.targets.push_back({.name = "t", .clusters = {cluster}});
  const Json json = Json::parse(clusters_json(status));
  const Json& host = json["cluster_statuses"][0]["host_statuses"][0];
  CHECK(host["health_status"]["failed_active_health_check"] == true);
  CHECK(host["address"]["socket_address"]["port_value"] == 0);
}

TEST_CASE("status json: texts that are not UTF-8 do no harm", "[channel][admin][status]") {
  RuntimeStatus status;
  status.targets.push_back({.name = "bad \xff name", .failure = absl::UnavailableError("\xc3(")});
  for (const std::string& text : {status_json(status), clusters_json(status)})
    CHECK_FALSE(Json::parse(text, nullptr, false).is_discarded());
}

TEST_CASE("server info: says the version, the state and the uptime", "[channel][admin][status]") {
  RuntimeStatus status = some_status();
  Json json = Json::parse(server_info_json(status));
  CHECK(json["version"] == "1.2.3");
  CHECK(json["state"] == "LIVE");
  CHECK(json["uptime_current_epoch"] == "600s");
  CHECK(json["node"]["id"] == "me");
  status.ready = false;
  CHECK(Json::parse(server_info_json(status))["state"] == "INITIALIZING");
}

TEST_CASE("status json: a word for each state", "[channel][admin][status]") {
  CHECK(to_word(std::nullopt) == "none");
  CHECK(to_word(EndpointState::kReady) == "ready");
  CHECK(to_word(EndpointState::kConnecting) == "connecting");
  CHECK(to_word(EndpointState::kIdle) == "idle");
  CHECK(to_word(EndpointState::kTransientFailure) == "transient_failure");
  CHECK(to_word(EndpointState::kDraining) == "draining");
  CHECK(to_word(EndpointState::kUnhealthy) == "unhealthy");
  CHECK(to_word(ClusterKind::kDns) == "dns");
}

}  // namespace signalbox::channel
