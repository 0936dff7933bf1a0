// SPDX-License-Identifier: Apache-2.0
//
// plan_file() and plan_text(), as a program calls them, and targets by a bootstrap.
#include "signalbox/plan.hpp"

#include <cstdlib>
#include <string>

#include "absl/strings/str_replace.h"
#include <catch2/catch.hpp>

#include "tests/support/temporary_folder.hpp"

namespace signalbox {
namespace {

using Catch::Matchers::Contains;

const std::string kAggregate = R"(
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: orders
    cluster_type:
      name: envoy.clusters.aggregate
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig
        clusters: [primary, missing, legacy]
)";

const std::string kLeaves = R"(
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: primary
    type: EDS
    eds_cluster_config: {eds_config: {self: {}}, service_name: places}
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: legacy
    type: LOGICAL_DNS
    load_assignment:
      cluster_name: legacy
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: old.example, port_value: 80}}}}]}]
)";

const std::string kEndpoints = R"(
  - "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
    cluster_name: places
    endpoints:
      - locality: {zone: a}
        load_balancing_weight: 1
        lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]
      - locality: {zone: b}
        load_balancing_weight: 1
        lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 80}}}}]
)";

std::string listener(const std::string& name, const std::string& routes) {
  return R"(
  - "@type": type.googleapis.com/envoy.config.listener.v3.Listener
    name: )" +
         name + R"(
    api_listener:
      api_listener:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        route_config: {virtual_hosts: [{domains: ["*"], routes: [)" +
         routes + R"(]}]}
        http_filters:
          - name: router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
)";
}

absl::StatusOr<Plan> plan(const std::string& resources, const PlanRequest& request = {}) {
  return plan_text("resources:\n" + resources, "world.yaml", request);
}

std::string refusal(const std::string& resources, const PlanRequest& request = {}) {
  const auto refused = plan(resources, request);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.status().code() == absl::StatusCode::kInvalidArgument);
  return std::string(refused.status().message());
}

TEST_CASE("plan: of a file's one aggregate, what is missing left out", "[channel][plan][ENV-6]") {
  PlanRequest request;
  request.assumptions.down = {"a"};
  const auto planned = plan(kAggregate + kLeaves + kEndpoints, request);
  INFO(planned.status().ToString());
  REQUIRE(planned.ok());
  CHECK(planned->cluster.str() == "orders");
  CHECK(planned->is_aggregate);
  REQUIRE(planned->leaves.size() == 2);
  CHECK(planned->leaves[0].name.str() == "primary");
  CHECK(planned->leaves[0].lb_policy == "wrr_locality, round_robin");
  CHECK(planned->leaves[0].shares.tiered.then == 700'000);
  CHECK(planned->leaves[1].shares.tiered.then == 300'000);
  const auto& dns = planned->leaves[1].priorities[0].localities[0].endpoints[0];
  CHECK(dns.addresses == std::vector<Address>{Address("old.example:80")});
  CHECK(planned->notes ==
        std::vector<std::string>{"cluster missing is missing, and takes no calls"});
}

TEST_CASE("plan: an aggregate's own panic threshold comes before the one that is asked for",
          "[channel][plan][ENV-31]") {
  PlanRequest request;
  request.assumptions.panic_threshold = 20;
  auto planned = plan(kAggregate + kLeaves + kEndpoints, request);
  REQUIRE(planned.ok());
  CHECK(planned->panic_threshold == 20);
  CHECK_FALSE(planned->panic_threshold_is_own);
  const std::string own = "    common_lb_config: {healthy_panic_threshold: {value: 60}}\n";
  planned = plan(kAggregate + own + kLeaves + kEndpoints, request);
  INFO(planned.status().ToString());
  REQUIRE(planned.ok());
  CHECK(planned->panic_threshold == 60);
  CHECK(planned->panic_threshold_is_own);
  CHECK_THAT(
      refusal(kAggregate + "    common_lb_config: {healthy_panic_threshold: {value: 1e9}}\n" +
              kLeaves + kEndpoints),
      Contains("common_lb_config.healthy_panic_threshold.value: must be 0 to 100 (percent), "
               "found 1e+09"));
}

TEST_CASE("plan: endpoints that are missing are told of", "[channel][plan][ENV-6]") {
  const auto planned = plan(kAggregate + kLeaves);
  REQUIRE(planned.ok());
  CHECK(planned->leaves[1].shares.priority.now == kAllCalls);
  CHECK(planned->notes.back() ==
        "the endpoints places of cluster primary are missing: it takes no calls");
}

TEST_CASE("plan: calls that EDS has dropped are told of", "[channel][plan]") {
  PlanRequest request;
  request.cluster = "primary";
  const std::string policy =
      "    policy: {drop_overloads: [{category: shed, drop_percentage: {numerator: 5}}]}\n";
  const auto planned = plan(kLeaves + kEndpoints + policy, request);
  INFO(planned.status().ToString());
  REQUIRE(planned.ok());
  CHECK(planned->notes ==
        std::vector<std::string>{
            "cluster primary drops calls (drop_overloads): its shares are before that"});
}

TEST_CASE("plan: of a leaf, which runs in priority mode", "[channel][plan]") {
  PlanRequest request;
  request.cluster = "primary";
  request.aggregate_mode = AggregateMode::kTiered;
  const auto planned = plan(kAggregate + kLeaves + kEndpoints, request);
  REQUIRE(planned.ok());
  CHECK_FALSE(planned->is_aggregate);
  CHECK(planned->mode == AggregateMode::kPriority);
  CHECK(planned->leaves.size() == 1);
}

TEST_CASE("plan: an aggregate that does not say runs as the request says", "[channel][plan][D1]") {
  PlanRequest request;
  request.aggregate_mode = AggregateMode::kTiered;
  const auto planned = plan(kAggregate + kLeaves + kEndpoints, request);
  REQUIRE(planned.ok());
  CHECK(planned->mode == AggregateMode::kTiered);
  CHECK_FALSE(planned->mode_is_own);
}

TEST_CASE("plan: an aggregate's policy takes the place of its leaves' where that is asked for",
          "[channel][plan][A75-8]") {
  const std::string world = kAggregate + "    lb_policy: RING_HASH\n" + kLeaves + kEndpoints;
  const auto policy = [&] {
    const auto planned = plan(world);
    INFO(planned.status().ToString());
    REQUIRE(planned.ok());
    return planned->leaves[0].lb_policy;
  };
  CHECK(policy() == "wrr_locality, round_robin");
  ::setenv("GRPC_XDS_AGGREGATE_CLUSTER_BACKWARD_COMPAT", "true", 1);
  const std::string replaced = policy();
  ::unsetenv("GRPC_XDS_AGGREGATE_CLUSTER_BACKWARD_COMPAT");
  CHECK(replaced == "ring_hash");
}

TEST_CASE("plan: of a target, by its routes", "[channel][plan]") {
  const std::string world = kAggregate + kLeaves + kEndpoints +
                            listener("one",
                                     "{match: {prefix: /a}, route: {cluster: legacy}}, "
                                     "{match: {prefix: /b}, route: {cluster: legacy}}") +
                            listener("two",
                                     "{match: {prefix: /a}, route: {cluster: legacy}}, "
                                     "{match: {prefix: /b}, route: {cluster: orders}}");
  PlanRequest request;
  for (const char* target : {"xds:///one", "one"}) {
    request.target = target;
    const auto planned = plan(world, request);
    INFO(planned.status().ToString());
    REQUIRE(planned.ok());
    CHECK(planned->cluster.str() == "legacy");
  }
  request.target = "xds:///two";
  CHECK_THAT(refusal(world, request), Contains("name one of them: legacy, orders"));
  request.target = "xds:///three";
  CHECK_THAT(refusal(world, request),
             Contains("target: there is no listener 'three'; listeners: one, two"));
  request.cluster = "orders";
  CHECK_THAT(refusal(world, request), Contains("name a cluster or a target, not both"));
}

TEST_CASE("plan: a target is resolved as for calls", "[channel][plan][A47]") {
  const std::string in_team =
      absl::StrReplaceAll(listener("team/orders", "{match: {prefix: /}, route: {cluster: legacy}}"),
                          {{"\"*\"", "\"team%2Forders\""}});
  PlanRequest request;
  for (const char* target :
       {"xds:///team/orders", "xds:team/orders", "xds:///team%2Forders?query", "team/orders"}) {
    INFO(target);
    request.target = target;
    const auto planned = plan(kLeaves + in_team, request);
    INFO(planned.status().ToString());
    REQUIRE(planned.ok());
    CHECK(planned->cluster.str() == "legacy");
  }
  request.target = "xds://east/team/orders";
  CHECK(refusal(kLeaves + in_team, request) ==
        "target \"xds://east/team/orders\": the bootstrap has no authority \"east\"");
}

TEST_CASE("plan: a target has its listener by the bootstrap", "[channel][plan][A47]") {
  const std::string listener_of_east = "xdstp://east/envoy.config.listener.v3.Listener/orders";
  const std::string listeners = absl::StrReplaceAll(
      listener("env/orders", "{match: {prefix: /}, route: {cluster: legacy}}") +
          listener(listener_of_east, "{match: {prefix: /}, route: {cluster: primary}}"),
      {{"\"*\"", "\"orders\""}});
  const test::TemporaryFolder folder;
  PlanRequest request;
  request.target = "xds:///orders";
  CHECK_THAT(refusal(kLeaves + kEndpoints + listeners, request), Contains("no listener 'orders'"));
  request.bootstrap_path = folder.write("bootstrap.json", R"({
    "xds_servers": [{"server_uri": "127.0.0.1:1", "channel_creds": [{"type": "insecure"}]}],
    "client_default_listener_resource_name_template": "env/%s",
    "authorities": {"east": {}},
    "node": {"id": "n", "locality": {"region": "north", "zone": "a"}}
  })");
  const auto cluster_of = [&](const char* target) {
    request.target = target;
    const auto planned = plan(kLeaves + kEndpoints + listeners, request);
    INFO(planned.status().ToString());
    REQUIRE(planned.ok());
    CHECK(planned->caller.zone == "a");
    return planned->cluster.str();
  };
  CHECK(cluster_of("xds:///orders") == "legacy");
  CHECK(cluster_of("xds://east/orders") == "primary");

  request.bootstrap_path = folder.write("broken.json", "{");
  CHECK_THAT(refusal(kLeaves, request), Contains("broken.json"));
  request.bootstrap_path = folder.path("missing.json");
  CHECK_THAT(plan(kLeaves, request).status().ToString(), Contains("missing.json"));
}

TEST_CASE("plan: what is not there is told with what is", "[channel][plan]") {
  PlanRequest request;
  request.cluster = "ordres";
  CHECK(refusal(kAggregate + kLeaves, request) ==
        "there is no cluster 'ordres'; clusters: legacy, orders, primary");
  CHECK(refusal(kLeaves) == "no aggregate leads to several clusters; name one: legacy, primary");
  CHECK(refusal("  []") == "there is no cluster");
  CHECK_THAT(refusal(kAggregate), Contains("orders has no usable leaf cluster"));
  CHECK_THAT(refusal("  - 7"), Contains("world.yaml: line 2: resources[0]"));
  CHECK_THAT(refusal(R"(
  - {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a, type: STATIC}
)"),
             Contains("world.yaml: ") && Contains("CDS"));
  CHECK_FALSE(plan_file("/no/such/file.yaml").ok());
}

TEST_CASE("plan: policies and certificates of the program's own", "[channel][plan]") {
  const std::string own = R"(
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: mine
    type: EDS
    eds_cluster_config: {eds_config: {self: {}}}
    load_balancing_policy:
      policies:
        - typed_extension_config:
            name: mine
            typed_config: {"@type": type.googleapis.com/xds.type.v3.TypedStruct, type_url: x/mine, value: {}}
)";
  CHECK_THAT(refusal(own), Contains("load_balancing_policy"));
  PlanRequest request;
  request.lb_policies = {"mine"};
  const auto planned = plan(own, request);
  INFO(planned.status().ToString());
  REQUIRE(planned.ok());
  CHECK_THAT(planned->leaves[0].note, Contains("mine: only the policy knows"));
}

}  // namespace
}  // namespace signalbox
