// SPDX-License-Identifier: Apache-2.0
//
// Backends of grpc-go restart gracefully (GOAWAY) under unary and streaming load, with each maker
// of connections. grpc-go finishes all calls that it has received, so the client loses none at all.
#include <atomic>

#include <catch2/catch.hpp>

#include "tests/e2e/echo_load.hpp"
#include "tests/e2e/runtime_world.hpp"
#include "tests/interop/peer_backends.hpp"

namespace signalbox::test {

TEST_CASE("interop: graceful restarts of grpc-go's servers lose no call",
          "[interop][restarts][A6]") {
  constexpr std::size_t kRestarts = 50;  // For each maker.
  constexpr std::size_t kBackends = 3;
  const bool sockets = GENERATE(false, true);
  CAPTURE(sockets);
  PeerBackends backends(kBackends);
  const auto plane = start_plane(simple_yaml("orders", "c", backends.addresses()));
  std::atomic<int> without_sockets{0};
  const auto runtime = start_runtime(options_with(sockets, plane->address(), without_sockets));
  const auto channel = runtime->channel("xds:///orders");
  EchoLoad load(channel, is_caught_by_goaway);
  for (std::size_t i = 0; i < kRestarts; ++i) {
    const int unaries = load.unaries();
    const int streams = load.streams();
    REQUIRE(
        eventually([&] { return load.unaries() > unaries + 20 && load.streams() > streams + 20; }));
    backends.restart(i % kBackends);
  }
  load.stop();
  WARN(kRestarts << " restarts" << (sockets ? " with sockets" : "") << ": " << load.unaries()
                 << " unary calls, " << load.streams() << " streams, " << load.excused()
                 << " excused, " << load.lost().size() << " lost");
  CHECK(load.lost() == std::vector<std::string>());
  // A restart meets two streams at most, and seldom one amid its first send.
  CHECK(load.excused() < static_cast<int>(kRestarts) / 5);
  CHECK(without_sockets == 0);
}

}  // namespace signalbox::test
