// SPDX-License-Identifier: Apache-2.0
//
// The first configuration from an independent control plane.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include <catch2/catch.hpp>

#include "tests/e2e/runtime_world.hpp"
#include "tests/interop/peer_plane.hpp"

namespace signalbox::test {
namespace {

std::string cluster_name(int number) {
  return absl::StrFormat("c%04d", number);
}

// gRPC clients reject a cluster of type STATIC.
std::string bad_cluster_yaml(const std::string& name) {
  return absl::StrCat("  - {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: ",
                      name,
                      ", type: STATIC}\n");
}

// Calls whose path begins with a cluster's name go to that cluster. `bad` is the number of the one
// invalid cluster; -1: all clusters are valid.
std::string many_clusters_yaml(const std::string& target,
                               int count,
                               const std::string& address,
                               int bad = -1) {
  std::string routes;
  std::string rest;
  for (int i = 0; i < count; ++i) {
    const std::string name = cluster_name(i);
    absl::StrAppend(&routes, "{match: {prefix: /", name, "/}, route: {cluster: ", name, "}}, ");
    absl::StrAppend(&rest,
                    i == bad ? bad_cluster_yaml(name) : cluster_yaml(name),
                    endpoints_yaml(name, {{address}}));
  }
  return absl::StrCat(
      listener_yaml(target, target),
      "  - {\"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration,",
      " name: ",
      target,
      ", virtual_hosts: [{name: all, domains: [\"*\"], routes: [",
      routes,
      "]}]}\n",
      rest);
}

// Waits for a picker that completes or fails the pick.
Pick pick_cluster(const Router& router, int number) {
  const std::string path = absl::StrCat("/", cluster_name(number), "/Place");
  const CallArgs args{.path = path, .seed = 1};
  Pick pick = router.pick(args);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (pick.outcome() == PickOutcome::kQueue) {
    REQUIRE(router.wait(pick, deadline));
    router.repick(pick, args);
  }
  return pick;
}

void check_takes_calls(const Router& router, int number, const std::string& address) {
  const Pick pick = pick_cluster(router, number);
  INFO(cluster_name(number) << ": " << pick.status().ToString());
  REQUIRE(pick.outcome() == PickOutcome::kComplete);
  CHECK(pick.cluster()->name() == ClusterName(cluster_name(number)));
  CHECK(pick.connection()->address().str() == address);
}

}  // namespace

TEST_CASE("interop: a client that starts cold asks by name, in order, and its calls succeed",
          "[interop][A27][A28]") {
  const BackendProcess backend("good");
  PeerPlane plane;
  plane.start();
  plane.set("1", simple_yaml("orders", "c", {backend.address}));
  const auto runtime = start_runtime(options_for(plane.address()));
  const auto channel = runtime->channel("xds:///orders");
  const Answer answer = call(channel);
  INFO(answer.text());
  CHECK(answer.ok());
  CHECK(answer.cluster == "good");
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked("1"); }));

  const Wire& wire = plane.wire();
  INFO(to_string(wire));
  CHECK(wire.streams_opened == 1);
  CHECK(wire.nacks().empty());
  REQUIRE_FALSE(wire.messages.empty());
  const WireMessage& first = wire.messages.front();
  CHECK(first.type_url == xds::kListenerTypeUrl);
  REQUIRE(first.node.has_value());
  CHECK(first.node->id == kNodeId);
  CHECK(first.node->agent == "signalbox");
  CHECK(first.node->features.count("envoy.lb.does_not_support_overprovisioning") == 1);
  const std::vector<std::string> wanted{"orders", "orders", "c", "c"};
  for (std::size_t i = 0; i < kAllTypes.size(); ++i) {
    INFO(kAllTypes[i]);
    const auto requests = wire.requests(kAllTypes[i]);
    // The client has sent two requests of this type: one subscription, and one ACK.
    REQUIRE(requests.size() == 2);
    CHECK(requests[0].version.empty());
    CHECK(requests[0].nonce.empty());
    for (const WireMessage& request : requests)
      CHECK(request.names == std::set<std::string>{wanted[i]});
    CHECK(wire.responses(kAllTypes[i]).size() == 1);
  }
}

TEST_CASE("interop: a client that is there before its control plane waits for it",
          "[interop][A27][A57][S8]") {
  const BackendProcess backend("good");
  PeerPlane plane;
  const auto runtime = start_runtime(options_for(plane.address()));
  const auto channel = runtime->channel("xds:///orders");
  // The connection is refused. A call without wait_for_ready fails with the reason, and with a
  // status code that the data plane may use.
  const Answer early = call(channel);
  INFO(early.text());
  CHECK(early.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(early.status.error_message(), Catch::Matchers::Contains(kNodeId));

  Calls waiting(channel);
  waiting.start(5, {.wait_for_ready = true});
  plane.start();
  // The client has reached the control plane, which has no snapshot yet.
  REQUIRE(plane.wait_for(
      [](const Wire& wire) { return wire.requests(xds::kListenerTypeUrl).size() == 1; }));
  CHECK(waiting.running() == 5);
  plane.set("1", simple_yaml("orders", "c", {backend.address}));
  for (const Answer& answer : waiting.finish()) {
    INFO(answer.text());
    CHECK(answer.cluster == "good");
  }
  CHECK(call(channel).ok());
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked("1"); }));
  CHECK(plane.wire().streams_opened == 1);
}

TEST_CASE("interop: a thousand clusters come, and each takes calls", "[interop][A27]") {
  const int kCount = 1000;
  const BackendProcess backend("good");
  PeerPlane plane;
  plane.start();
  plane.set("1", many_clusters_yaml("orders", kCount, backend.address));
  const auto runtime = start_runtime(options_for(plane.address()));
  const auto router = runtime->router("xds:///orders");
  REQUIRE(router.ok());
  for (int i = 0; i < kCount; ++i)
    check_takes_calls(**router, i, backend.address);
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked("1"); }));
  const Wire& wire = plane.wire();
  CHECK(wire.streams_opened == 1);
  CHECK(wire.nacks().empty());
  for (const auto type : {xds::kClusterTypeUrl, xds::kClusterLoadAssignmentTypeUrl}) {
    INFO(type);
    const auto requests = wire.requests(type);
    // The client has sent two requests of this type: both name all clusters; the second is the ACK.
    CHECK(requests.size() == 2);
    for (const WireMessage& request : requests)
      CHECK(request.names.size() == kCount);
  }
  CHECK(metric(*runtime, "signalbox_actor_deaths_total").value_or(0) == 0);
}

TEST_CASE(
    "interop: of a thousand clusters with one bad, 999 are applied and the NACK names the one",
    "[interop][A27][A46][S10]") {
  const int kCount = 1000;
  const int kBad = 500;
  const std::string bad = cluster_name(kBad);
  const BackendProcess backend("good");
  PeerPlane plane;
  plane.start();
  plane.set("1", many_clusters_yaml("orders", kCount, backend.address, kBad));
  const auto runtime = start_runtime(options_for(plane.address()));
  const auto router = runtime->router("xds:///orders");
  REQUIRE(router.ok());
  const Pick refused = pick_cluster(**router, kBad);
  INFO(refused.status().ToString());
  CHECK(refused.outcome() == PickOutcome::kFail);
  CHECK(refused.status().code() == absl::StatusCode::kUnavailable);
  CHECK_THAT(std::string(refused.status().message()), Catch::Matchers::Contains(bad));
  for (int i = 0; i < kCount; ++i)
    if (i != kBad) check_takes_calls(**router, i, backend.address);

  const auto nacks = plane.wire().nacks();
  REQUIRE_FALSE(nacks.empty());
  const std::string& why = nacks.front().error->message;
  CHECK(nacks.front().type_url == xds::kClusterTypeUrl);
  CHECK(nacks.front().version.empty());
  CHECK(nacks.front().names.size() == kCount);
  CHECK_THAT(why, Catch::Matchers::Contains(bad));
  // The NACK names no other cluster.
  for (int i = 0; i < kCount; ++i)
    if (i != kBad) CHECK_THAT(why, !Catch::Matchers::Contains(cluster_name(i)));
  const auto endpoint_requests = plane.wire().requests(xds::kClusterLoadAssignmentTypeUrl);
  CHECK(endpoint_requests.size() == 2);
  CHECK(endpoint_requests.front().names.size() == kCount - 1);

  // Version 2 has a valid cluster in place of the bad one.
  plane.set("2", many_clusters_yaml("orders", kCount, backend.address));
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked(xds::kClusterTypeUrl, "2"); }));
  CHECK(
      eventually([&] { return pick_cluster(**router, kBad).outcome() == PickOutcome::kComplete; }));
  CHECK(plane.wire().streams_opened == 1);
  CHECK(metric(*runtime, "signalbox_actor_deaths_total").value_or(0) == 0);
}

}  // namespace signalbox::test
