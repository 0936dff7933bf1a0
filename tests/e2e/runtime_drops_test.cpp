// SPDX-License-Identifier: Apache-2.0
//
// Calls that a cluster refuses: beyond its limit, or dropped by the control plane's order.
#include "absl/strings/str_cat.h"

#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

using Catch::Contains;

std::string limited_yaml(const std::string& name, int most) {
  return cluster_yaml(
      name, "", absl::StrCat(", circuit_breakers: {thresholds: [{max_requests: ", most, "}]}"));
}

/// No endpoints; `percent` of the calls are dropped.
std::string dropping_yaml(const std::string& service, int percent) {
  return absl::StrCat(
      "  - {\"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, "
      "cluster_name: ",
      service,
      ", policy: {drop_overloads: [{category: lb, drop_percentage: {numerator: ",
      percent,
      "}}]}}\n");
}

void check_refused(const Answer& answer, const std::string& why) {
  INFO(answer.text());
  CHECK(answer.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(answer.status.error_message(), Contains(why));
}

}  // namespace

TEST_CASE("runtime: channels and runtimes share a cluster's limit of calls in flight",
          "[e2e][runtime][A32][A37-11][A37-29][A37-30]") {
  HoldingBackend backend("c");
  const auto plane =
      start_plane(listener_yaml("orders", "orders") + routes_yaml("orders", "limited") +
                  listener_yaml("invoices", "invoices") + routes_yaml("invoices", "limited") +
                  limited_yaml("limited", 2) + endpoints_yaml("limited", {{backend.address()}}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto other_runtime = start_runtime(options_for(plane->address(), "another-node"));
  const auto orders = runtime->channel("xds:///orders");
  const auto invoices = runtime->channel("xds:///invoices");
  const auto elsewhere = other_runtime->channel("xds:///orders");
  for (const auto& channel : {orders, invoices, elsewhere})
    REQUIRE(call(channel).ok());

  Calls held(orders);
  held.start(2, {.item = "hold"});
  REQUIRE(eventually([&] { return backend.held() == 2; }));
  const std::string why = "cluster limited: circuit breaker: 2 calls in flight, the limit";
  for (const auto& channel : {orders, invoices, elsewhere})
    check_refused(call(channel), why);
  // A drop is final, even for a wait_for_ready call: a new connection would not change it.
  check_refused(call(orders, {.wait_for_ready = true}), why);
  CHECK(backend.held() == 2);
  const std::vector<std::string> limited{"cluster=\"limited\""};
  CHECK(metric(*runtime, "signalbox_circuit_breaker_open", limited) == 1.0);
  CHECK(metric(*runtime, "signalbox_circuit_breaker_limit", limited) == 2.0);
  CHECK(metric(*runtime, "signalbox_circuit_breaker_drops_total", limited) == 3.0);
  CHECK(metric(*other_runtime, "signalbox_circuit_breaker_drops_total", limited) == 1.0);

  // After the update the calls in flight still count against the new limit.
  plane->update(resources(limited_yaml("limited", 3)));
  CHECK(eventually([&] { return call(invoices).ok(); }));
  CHECK(eventually(
      [&] { return metric(*runtime, "signalbox_circuit_breaker_limit", limited) == 3.0; }));
  Calls third(invoices);
  third.start(1, {.item = "hold"});
  REQUIRE(eventually([&] { return backend.held() == 3; }));
  check_refused(call(invoices), "3 calls in flight");

  backend.release();
  for (const Answer& answer : held.finish())
    CHECK(answer.ok());
  third.finish();
  for (const auto& channel : {orders, invoices, elsewhere}) {
    CHECK(eventually([&] { return call(channel).ok(); }));
    for (int i = 0; i < 20; ++i)
      CHECK(call(channel).ok());
  }
  CHECK(metric(*runtime, "signalbox_circuit_breaker_open", limited) == 0.0);
}

TEST_CASE("runtime: a cluster's limit is one, called directly or as part of an aggregate",
          "[e2e][runtime][A32][A37-11][A37-29]") {
  HoldingBackend backend("c");
  const auto plane =
      start_plane(listener_yaml("direct", "direct") + routes_yaml("direct", "limited") +
                  listener_yaml("below", "below") + routes_yaml("below", "both") +
                  aggregate_yaml("both", {"limited"}) + limited_yaml("limited", 2) +
                  endpoints_yaml("limited", {{backend.address()}}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto direct = runtime->channel("xds:///direct");
  const auto below = runtime->channel("xds:///below");
  for (const auto& channel : {direct, below})
    REQUIRE(call(channel).ok());

  Calls one(direct);
  one.start(1, {.item = "hold"});
  REQUIRE(eventually([&] { return backend.held() == 1; }));
  CHECK(call(below).ok());
  Calls other(below);
  other.start(1, {.item = "hold"});
  REQUIRE(eventually([&] { return backend.held() == 2; }));
  for (const auto& channel : {direct, below})
    check_refused(call(channel), "cluster limited: circuit breaker: 2 calls in flight");
  backend.release();
  one.finish();
  other.finish();
}

TEST_CASE("runtime: calls are dropped where the control plane says so, endpoints or none",
          "[e2e][runtime][A37-25][A37-27][A37-30][A37-31][A75-5][A75-52]") {
  const auto plane = start_plane(listener_yaml("orders", "orders") + routes_yaml("orders", "all") +
                                 aggregate_yaml("all", {"closed"}) + cluster_yaml("closed") +
                                 dropping_yaml("closed", 100));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  const std::string why = "cluster closed: the control plane drops calls of category \"lb\"";
  check_refused(call(channel), why);
  check_refused(call(channel, {.wait_for_ready = true}), why);
  CHECK(metric(*runtime, "signalbox_drops_total", {"cluster=\"closed\"", "category=\"lb\""}) ==
        2.0);

  const BackendProcess backend("open");
  plane->update(resources(endpoints_yaml("closed", {{backend.address}})));
  CHECK(eventually([&] { return call(channel).ok(); }));
}

}  // namespace signalbox::test
