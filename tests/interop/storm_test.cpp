// SPDX-License-Identifier: Apache-2.0
//
// An independent control plane sends updates faster than a client can apply each of them.
#include <map>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/e2e/runtime_world.hpp"
#include "tests/interop/peer_plane.hpp"

namespace signalbox::test {
namespace {

// More updates than the client receives: after an ACK the peer sends only the newest snapshot.
constexpr int kUpdates = 1000;

struct Backends {
  BackendProcess a1{"a1"}, a2{"a2"}, b1{"b1"}, b2{"b2"};
};

// The resources of update `number`. Two consecutive updates differ in the endpoints (EDS) and in
// the order of the aggregate's leaves (CDS).
std::string world(const Backends& backends, int number) {
  const bool even = number % 2 == 0;
  const std::vector<std::string> order =
      even ? std::vector<std::string>{"b", "a"} : std::vector<std::string>{"a", "b"};
  return absl::StrCat(listener_yaml("orders", "orders"),
                      routes_yaml("orders", "orders"),
                      aggregate_yaml("orders", order),
                      cluster_yaml("a"),
                      cluster_yaml("b"),
                      endpoints_yaml("a", {{even ? backends.a2.address : backends.a1.address}}),
                      endpoints_yaml("b", {{even ? backends.b2.address : backends.b1.address}}));
}

// Checks that each response has an ACK with its nonce and its version.
void check_each_is_acked(const Wire& wire, absl::string_view type) {
  std::map<std::string, int> acks;
  for (const WireMessage& request : wire.requests(type)) {
    if (!request.nonce.empty()) ++acks[absl::StrCat(request.nonce, " ", request.version)];
  }
  int unanswered = 0;
  for (const WireMessage& response : wire.responses(type)) {
    if (acks[absl::StrCat(response.nonce, " ", response.version)] == 0) ++unanswered;
  }
  INFO(type);
  CHECK(unanswered == 0);
}

}  // namespace

TEST_CASE("interop: after a storm of updates the last one holds, and no call was lost in it",
          "[interop][A27][A74][A75-1]") {
  const Backends backends;
  PeerPlane plane;
  plane.start();
  plane.set("0", world(backends, 0));
  const auto runtime = start_runtime(options_for(plane.address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).cluster == "b2");
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked("0"); }));

  Traffic traffic(channel, 2);
  std::vector<PeerPlane::Snapshot> updates;
  for (int i = 1; i <= kUpdates; ++i)
    updates.push_back({.version = absl::StrCat(i), .yaml = world(backends, i), .versions = {}});
  plane.set_all(updates);
  const std::string last = absl::StrCat(kUpdates);
  REQUIRE(plane.wait_for([&](const Wire& wire) { return wire.acked(last); }));
  // All calls reach the backend of the last update.
  CHECK(eventually([&] {
    for (int i = 0; i < 10; ++i) {
      if (call(channel).cluster != "b2") return false;
    }
    return true;
  }));
  CHECK(traffic.finish() == std::vector<std::string>{});

  const Wire& wire = plane.wire();
  CHECK(wire.streams_opened == 1);
  CHECK(wire.nacks().empty());
  // More than ten of the updates of each type reached the client.
  CHECK(wire.responses(xds::kClusterTypeUrl).size() > 10);
  CHECK(wire.responses(xds::kClusterLoadAssignmentTypeUrl).size() > 10);
  for (const auto type : kAllTypes)
    check_each_is_acked(wire, type);
  CHECK(metric(*runtime, "signalbox_actor_deaths_total").value_or(0) == 0);
}

}  // namespace signalbox::test
