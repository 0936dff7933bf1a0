// SPDX-License-Identifier: Apache-2.0
//
// Policies that choose among the endpoints of a cluster, over real sockets (gRFC A42, A48).
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

const char kByUser[] = "header: {header_name: user}";
const char kByChannel[] = "filter_state: {key: io.grpc.channel_id}";

std::string hashed_routes_yaml(const std::string& name,
                               const std::string& cluster,
                               const std::string& hash_policy) {
  return absl::StrCat(
      "  - {\"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: ",
      name,
      ", virtual_hosts: [{name: all, domains: [\"*\"], routes: [{match: {prefix: \"\"}, route: "
      "{cluster: ",
      cluster,
      ", hash_policy: [{",
      hash_policy,
      "}]}}]}]}\n");
}

std::string world_yaml(const std::string& policy,
                       const std::vector<std::string>& addresses,
                       const std::string& hash_policy = kByUser) {
  return absl::StrCat(listener_yaml("orders", "orders"),
                      hashed_routes_yaml("orders", "orders", hash_policy),
                      cluster_yaml("orders", "", ", lb_policy: " + policy),
                      endpoints_yaml("orders", {addresses}));
}

/// The peer ("ipv4:…") that answers a call with the header `user`, or the error text.
std::string backend_of(Stub& stub, const std::string& user) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  context.AddMetadata("user", user);
  demo::v1::PlaceReply reply;
  const grpc::Status status = stub.Place(&context, demo::v1::PlaceRequest(), &reply);
  return status.ok() ? context.peer() : status.error_message();
}

}  // namespace

TEST_CASE("runtime: ring_hash sends each user to one backend, to another only when that dies",
          "[e2e][runtime][A42][A61]") {
  std::map<std::string, std::unique_ptr<BackendProcess>> backends;
  std::vector<std::string> addresses;
  for (int number = 0; number < 3; ++number) {
    auto backend = std::make_unique<BackendProcess>("orders");
    addresses.push_back(backend->address);
    backends.emplace("ipv4:" + backend->address, std::move(backend));
  }
  const auto plane = start_plane(world_yaml("RING_HASH", addresses));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  Stub stub(channel);

  constexpr int kUsers = 30;
  std::map<std::string, std::string> homes;
  std::map<std::string, int> users;
  for (int user = 0; user < kUsers; ++user) {
    const std::string name = absl::StrCat("user-", user);
    homes[name] = backend_of(stub, name);
    ++users[homes[name]];
  }
  CHECK(users.size() == 3);
  for (const auto& [home, count] : users)
    CHECK(backends.contains(home));
  for (int round = 0; round < 3; ++round) {
    for (const auto& [user, home] : homes)
      CHECK(backend_of(stub, user) == home);
  }

  const std::string dead = homes.begin()->second;
  backends.at(dead).reset();
  REQUIRE(eventually([&] {
    const std::string now = backend_of(stub, homes.begin()->first);
    return now != dead && backends.contains(now);
  }));
  for (const auto& [user, home] : homes) {
    const std::string now = backend_of(stub, user);
    CHECK(backends.contains(now));
    if (home == dead) {
      CHECK(now != dead);
    } else {
      CHECK(now == home);
    }
  }
}

TEST_CASE("runtime: each channel that is hashed has a backend of its own, and not all the same",
          "[e2e][runtime][A42]") {
  const BackendProcess one("orders");
  const BackendProcess other("orders");
  std::string world = world_yaml("RING_HASH", {one.address, other.address}, kByChannel);
  // The probability that all targets choose alike is one in 500 million runs.
  constexpr int kTargets = 30;
  for (int number = 0; number < kTargets; ++number)
    world += listener_yaml(absl::StrCat("orders-", number), "orders");
  const auto plane = start_plane(world);
  const auto runtime = start_runtime(options_for(plane->address()));
  std::set<std::string> homes;
  for (int number = 0; number < kTargets; ++number) {
    Stub stub(runtime->channel(absl::StrCat("xds:///orders-", number)));
    const std::string home = backend_of(stub, "");
    CHECK(backend_of(stub, "") == home);
    CHECK(backend_of(stub, "") == home);
    homes.insert(home);
  }
  CHECK(homes == std::set<std::string>{"ipv4:" + one.address, "ipv4:" + other.address});
}

TEST_CASE("runtime: least_request leaves out who is busy", "[e2e][runtime][A48]") {
  HoldingBackend slow("orders");
  const BackendProcess quick("orders");
  const auto plane = start_plane(world_yaml("LEAST_REQUEST", {slow.address(), quick.address}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  Stub stub(channel);
  REQUIRE(eventually(
      [&] { return metric(*runtime, "signalbox_endpoints", {"state=\"ready\""}) == 2.0; }));

  // Calls that one backend holds are in flight there; calls of the other backend end at once.
  Calls calls(channel);
  for (int more = 0; slow.held() < 5 && more < 200; ++more) {
    calls.start(1, {.item = "hold"});
    REQUIRE(eventually([&] { return calls.running() == slow.held(); }));
  }
  REQUIRE(slow.held() == 5);
  // A call goes to the busy backend only when both draws of the call give that backend: a quarter
  // of the calls instead of half.
  int busy = 0;
  constexpr int kCalls = 400;
  for (int count = 0; count < kCalls; ++count) {
    if (backend_of(stub, "any") == "ipv4:" + slow.address()) ++busy;
  }
  CHECK(busy < kCalls * 0.4);
  CHECK(busy > kCalls * 0.1);
  slow.release();
  for (const Answer& answer : calls.finish())
    CHECK(answer.ok());
}

}  // namespace signalbox::test
