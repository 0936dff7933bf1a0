// SPDX-License-Identifier: Apache-2.0
//
// An independent control plane is killed under load and starts again.
#include <catch2/catch.hpp>

#include "tests/e2e/runtime_world.hpp"
#include "tests/interop/peer_plane.hpp"

namespace signalbox::test {

TEST_CASE("interop: no call and no connection notices that the control plane is started anew",
          "[interop][A27][A57]") {
  const BackendProcess backend("good");
  const BackendProcess later("later");
  PeerPlane plane;
  plane.start();
  const std::string world = simple_yaml("orders", "c", {backend.address});
  plane.set("7", world);
  const auto runtime = start_runtime(options_for(plane.address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked("7"); }));
  const Wire before = plane.wire();
  const auto attempts = metric(*runtime, "signalbox_connection_attempts_total");
  REQUIRE(attempts.has_value());

  Traffic traffic(channel, 2);
  plane.kill();
  REQUIRE(eventually([&] { return metric(*runtime, "signalbox_xds_connected") == 0.0; }));
  const std::size_t completed = traffic.completed();
  REQUIRE(eventually([&] { return traffic.completed() > completed + 20; }));
  plane.start();
  plane.set("7", world);
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked("7"); }));

  const Wire& after = plane.wire();
  INFO(to_string(after));
  CHECK(after.streams_opened == 1);
  CHECK(after.messages.front().node.has_value());
  for (const auto type : kAllTypes) {
    INFO(type);
    // The first request of a new stream has the client's version and resource names. It has no
    // nonce, because a nonce is valid on its own stream only.
    const WireMessage first = after.requests(type).front();
    CHECK(first.version == "7");
    CHECK(first.nonce.empty());
    CHECK(first.names == before.requests(type).back().names);
    CHECK_FALSE(first.error.has_value());
  }
  CHECK(after.nacks().empty());
  // The metric may follow the acknowledgement by a moment.
  CHECK(eventually([&] { return metric(*runtime, "signalbox_xds_connected") == 1.0; }));
  CHECK(metric(*runtime, "signalbox_connection_attempts_total") == attempts);
  CHECK(metric(*runtime, "signalbox_subchannel_disconnections_total").value_or(0) == 0);

  // The client applies updates from the new stream.
  plane.set("8", simple_yaml("orders", "c", {later.address}));
  CHECK(eventually([&] { return call(channel).cluster == "later"; }));
  CHECK(traffic.finish() == std::vector<std::string>{});
}

}  // namespace signalbox::test
