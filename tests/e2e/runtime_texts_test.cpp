// SPDX-License-Identifier: Apache-2.0
//
// The whole error text of a failing call: a row for each way to fail. All texts have one form
// (lb/pick/router.hpp): the target first, then the call's cluster if it is known; the node last.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include <catch2/catch.hpp>

#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test::runtime_texts_test {
namespace {

using std::chrono::milliseconds;

RuntimeOptions impatient(const std::string& server) {
  RuntimeOptions options = options_for(server);
  options.resource_timeout = milliseconds(200);
  return options;
}

std::string routed(const std::string& cluster) {
  return listener_yaml("orders", "routes") + routes_yaml("routes", cluster);
}

// The route configuration `routes` with one virtual host, which has this domain and this route.
std::string routes_of(const std::string& domain, const std::string& route) {
  return absl::StrCat(
      "  - {\"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: "
      "routes, virtual_hosts: [{name: shop, domains: [\"",
      domain,
      "\"], routes: [",
      route,
      "]}]}\n");
}

// A listener with a RouteConfiguration without a name inside it.
std::string inline_yaml(const std::string& name, const std::string& domains) {
  return absl::StrCat(
      "  - {\"@type\": type.googleapis.com/envoy.config.listener.v3.Listener, name: ",
      name,
      ", api_listener: {api_listener: {\"@type\": type.googleapis.com/envoy.extensions.filters."
      "network.http_connection_manager.v3.HttpConnectionManager, route_config: {virtual_hosts: "
      "[{name: shop, domains: [\"",
      domains,
      "\"], routes: [{match: {prefix: \"\"}, route: {cluster: c}}]}]}, http_filters: [{name: "
      "router, typed_config: {\"@type\": type.googleapis.com/"
      "envoy.extensions.filters.http.router.v3.Router}}]}}}\n");
}

// Two localities that get no calls: one has no weight, the other has weight 0.
std::string unweighted_yaml(const std::string& service) {
  return absl::StrCat(
      "  - {\"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, "
      "cluster_name: ",
      service,
      ", endpoints: [{locality: {zone: a}}, {locality: {zone: b}, load_balancing_weight: 0}]}\n");
}

std::string dropping_yaml(const std::string& service) {
  return absl::StrCat(
      "  - {\"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, "
      "cluster_name: ",
      service,
      ", policy: {drop_overloads: [{category: overload, drop_percentage: {numerator: 100}}]}}\n");
}

}  // namespace

TEST_CASE("runtime: the whole text of a call that fails, for each way to fail",
          "[e2e][runtime][A57][A74][A88][A31-6][A28][A61][A56][A37-23][A37-30]") {
  struct Row {
    const char* name;
    std::string yaml;
    CallOptions options;
    grpc::StatusCode code;
    std::string text;  // The texts DOWN, HOLE and PLANE stand for the addresses.
  };

  const BackendProcess backend("c");
  const RefusingAddress down;
  const BlackHole hole;
  const CallOptions at_once;
  // On a busy machine the resources of a row take a while to come, and the rows name the next one.
  const CallOptions patient{.wait_for_ready = true, .timeout = milliseconds(2500)};
  const CallOptions hurried{.timeout = milliseconds(1500)};
  constexpr auto kUnavailable = grpc::StatusCode::UNAVAILABLE;
  constexpr auto kDeadline = grpc::StatusCode::DEADLINE_EXCEEDED;
  const std::string by_route = listener_yaml("orders", "routes");
  const std::string refused =
      "round_robin: the only endpoint failed; last error: connection to DOWN failed: "
      "Failed to connect to remote host: Connection refused";
  const std::vector<Row> rows{
      {"no listener",
       "",
       at_once,
       kUnavailable,
       "LDS resource \"orders\" did not come within 0.2 s (NODE)"},
      {"no route configuration",
       by_route,
       at_once,
       kUnavailable,
       "RDS resource \"routes\" did not come within 0.2 s (NODE)"},
      {"no virtual host",
       by_route + routes_of("elsewhere", "{match: {prefix: \"\"}, route: {cluster: c}}"),
       at_once,
       kUnavailable,
       "no virtual host of route configuration \"routes\" has a domain that matches \"orders\"; "
       "its "
       "domains are: \"elsewhere\" (NODE)"},
      {"no virtual host in routes of the listener",
       inline_yaml("orders", "elsewhere\", \"orders.example"),
       at_once,
       kUnavailable,
       "no virtual host of listener \"orders\" has a domain that matches \"orders\"; its domains "
       "are: \"elsewhere\", \"orders.example\" (NODE)"},
      {"no route",
       by_route + routes_of("*", "{match: {path: /s/M}, route: {cluster: c}}") + cluster_yaml("c"),
       at_once,
       kUnavailable,
       "no route for \"/signalbox.demo.v1.Orders/Place\" in virtual host \"shop\" (NODE)"},
      {"a route that leads elsewhere",
       by_route + routes_of("*", "{name: r, match: {prefix: \"\"}, redirect: {}}"),
       at_once,
       kUnavailable,
       "route \"r\" of virtual host \"shop\" has an unsupported action: redirect (NODE)"},
      {"no cluster",
       routed("c"),
       at_once,
       kUnavailable,
       "cluster c: CDS resource \"c\" did not come within 0.2 s (NODE)"},
      {"a cluster that is refused",
       routed("c") + cluster_yaml("c", "", ", connect_timeout: 0s"),
       at_once,
       kUnavailable,
       "cluster c: CDS resource \"c\": connect_timeout: must be longer than 0, found 0 (NODE)"},
      {"no endpoint resource",
       routed("c") + cluster_yaml("c"),
       at_once,
       kUnavailable,
       "cluster c: has no endpoints (EDS resource \"c\" did not come within 0.2 s) (NODE)"},
      {"no localities",
       routed("c") + cluster_yaml("c") + endpoints_yaml("c", {}),
       at_once,
       kUnavailable,
       "cluster c: has no endpoints (NODE)"},
      {"localities without weight",
       routed("c") + cluster_yaml("c") + unweighted_yaml("c"),
       at_once,
       kUnavailable,
       "cluster c: has no endpoints (EDS resource \"c\": none of its 2 localities counts: "
       "load_balancing_weight is 0 or unset; set it to 1 or more) (NODE)"},
      {"a locality without endpoints",
       routed("c") + cluster_yaml("c") + endpoints_yaml("c", {{}}),
       at_once,
       kUnavailable,
       "cluster c: round_robin: no endpoints (NODE)"},
      {"an endpoint that refuses",
       routed("c") + cluster_yaml("c") + endpoints_yaml("c", {{down.address()}}),
       at_once,
       kUnavailable,
       "cluster c: " + refused + " (NODE)"},
      {"priorities that refuse",
       routed("c") + cluster_yaml("c") + endpoints_yaml("c", {{"127.0.0.1:1"}, {down.address()}}),
       at_once,
       kUnavailable,
       "cluster c: all 2 priorities failed; priority 1: " + refused + " (NODE)"},
      {"clusters of an aggregate that refuse",
       routed("all") + aggregate_yaml("all", {"first", "last"}) + cluster_yaml("first") +
           cluster_yaml("last") + endpoints_yaml("first", {{"127.0.0.1:1"}}) +
           endpoints_yaml("last", {{down.address()}}),
       at_once,
       kUnavailable,
       "cluster all: all 2 priorities failed; priority 1, cluster last: " + refused + " (NODE)"},
      {"a drop",
       routed("c") + cluster_yaml("c") + dropping_yaml("c"),
       at_once,
       kUnavailable,
       "cluster c: the control plane drops calls of category \"overload\" (NODE)"},
      {"a circuit breaker",
       routed("c") +
           cluster_yaml("c", "", ", circuit_breakers: {thresholds: [{max_requests: 0}]}") +
           endpoints_yaml("c", {{backend.address}}),
       at_once,
       kUnavailable,
       "cluster c: circuit breaker: 0 calls in flight, the limit; "
       "circuit_breakers.thresholds.max_requests raises it (NODE)"},
      {"time that runs out before there is a listener",
       "",
       hurried,
       kDeadline,
       "Deadline Exceeded while waiting for LDS \"orders\", which xDS server PLANE has not sent "
       "(NODE)"},
      {"time that runs out before there is a configuration",
       by_route,
       hurried,
       kDeadline,
       "Deadline Exceeded while waiting for RDS \"routes\", which xDS server PLANE has not sent "
       "(NODE)"},
      {"time that runs out before there are endpoints",
       routed("c") + cluster_yaml("c"),
       hurried,
       kDeadline,
       "Deadline Exceeded while waiting for EDS \"c\", which xDS server PLANE has not sent (NODE)"},
      {"time that runs out where others fail without a configuration",
       "",
       patient,
       kDeadline,
       "Deadline Exceeded while waiting for a configuration; last error: LDS resource \"orders\" "
       "did not come within 0.2 s (NODE)"},
      {"time that runs out before there is a connection",
       routed("c") + cluster_yaml("c") + endpoints_yaml("c", {{hole.address()}}),
       hurried,
       kDeadline,
       "cluster c: Deadline Exceeded while waiting for a connection (NODE)"},
      {"time that runs out where others fail",
       routed("c") + cluster_yaml("c") + endpoints_yaml("c", {{down.address()}}),
       patient,
       kDeadline,
       "cluster c: Deadline Exceeded while waiting for a connection; last error: " + refused +
           " (NODE)"},
  };

  for (const Row& row : rows) {
    INFO(row.name);
    const auto plane = start_plane(row.yaml);
    RuntimeOptions options = impatient(plane->address());
    // In `hurried` rows the call's deadline must end the wait, so the resource timer is longer.
    if (row.options.timeout == hurried.timeout) options.resource_timeout = kPatience;
    const auto runtime = start_runtime(std::move(options));
    const auto channel = runtime->channel("xds:///orders");
    const Answer answer = call(channel, row.options);
    const std::string expected = absl::StrCat("xds:///orders: ",
                                              absl::StrReplaceAll(row.text,
                                                                  {{"NODE", "node ID: " + kNodeId},
                                                                   {"DOWN", down.address()},
                                                                   {"HOLE", hole.address()},
                                                                   {"PLANE", plane->address()}}));
    CHECK(answer.status.error_code() == row.code);
    CHECK(answer.status.error_message() == expected);
    if (row.code != kUnavailable) continue;
    const auto router = runtime->router("xds:///orders");
    REQUIRE(router.ok());
    const Pick pick = (*router)->pick({"/signalbox.demo.v1.Orders/Place", nullptr, 1});
    CHECK(std::string(pick.status().message()) == expected);
  }
}

TEST_CASE("runtime: the whole text of a call after the control plane deleted its listener",
          "[e2e][runtime][A57][A88]") {
  const BackendProcess backend("c");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  const auto runtime = start_runtime(data_error_options(plane->address(), true));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  plane->remove(xds::kListenerTypeUrl, "orders");
  CHECK(wait_for_failure(channel) ==
        "xds:///orders: LDS resource \"orders\" was deleted (node ID: " + kNodeId + ")");
}

TEST_CASE("runtime: what a call is told where there is no runtime any more, or no such target",
          "[e2e][runtime][A57]") {
  const auto plane = start_plane("");
  auto runtime = start_runtime(options_for(plane->address()));
  const auto orders = runtime->channel("xds:///orders");
  const Answer strange = call(runtime->channel("xds://nowhere/orders"));
  CHECK(strange.status.error_message() ==
        "xds://nowhere/orders: target \"xds://nowhere/orders\": the bootstrap has no authority "
        "\"nowhere\" (node ID: " +
            kNodeId + ")");
  runtime = nullptr;
  CHECK(call(orders).status.error_message() ==
        "xds:///orders: the signalbox runtime was shut down (node ID: " + kNodeId + ")");
}

}  // namespace signalbox::test::runtime_texts_test
