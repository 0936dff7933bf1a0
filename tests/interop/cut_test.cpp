// SPDX-License-Identifier: Apache-2.0
//
// The connection to an independent control plane breaks in the middle of a response.
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/e2e/runtime_world.hpp"
#include "tests/interop/cutting_proxy.hpp"
#include "tests/interop/peer_plane.hpp"

namespace signalbox::test {
namespace {

const std::string kEds = std::string(xds::kClusterLoadAssignmentTypeUrl);

// Bytes before the cut: within the first frames, and within DATA frames (16 KiB) of one large
// response.
const std::vector<std::size_t> kOffsets{1, 50, 3000, 20000, 60001, 100002};

// The highest priority has the one backend. The other endpoints make the response large, and are
// never connected.
std::string large_world(const std::string& address) {
  constexpr int kRest = 5000;
  std::vector<std::string> rest;
  rest.reserve(kRest);
  for (int i = 0; i < kRest; ++i)
    rest.push_back(absl::StrCat("127.2.", i / 250, ".", i % 250 + 1, ":1"));
  return absl::StrCat(listener_yaml("orders", "orders"),
                      routes_yaml("orders", "c"),
                      cluster_yaml("c"),
                      endpoints_yaml("c", {{address}, rest}));
}

CuttingProxy::End any_end() {
  return GENERATE(CuttingProxy::End::kClosed, CuttingProxy::End::kReset);
}

}  // namespace

TEST_CASE("interop: a client whose first responses are cut short starts all the same",
          "[interop][A27][A57][S8]") {
  const auto end = any_end();
  const BackendProcess backend("good");
  PeerPlane plane;
  plane.start();
  plane.set("1", large_world(backend.address));
  CuttingProxy proxy(plane.address(), end);
  // Each of the first three connections is cut later than the one before.
  for (const std::size_t offset : {std::size_t{50}, std::size_t{3000}, std::size_t{60001}})
    proxy.cut_after(offset);
  const auto runtime = start_runtime(options_for(proxy.address()));
  const auto channel = runtime->channel("xds:///orders");
  const Answer answer = call(channel, {.wait_for_ready = true});
  INFO(answer.text());
  CHECK(answer.ok());
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked("1"); }));
  INFO(to_string(plane.wire()));
  CHECK(proxy.cuts() == 3);
  CHECK(plane.wire().nacks().empty());
}

TEST_CASE("interop: a response that is cut short changes nothing, and comes whole afterwards",
          "[interop][A27][A57][S7][S9]") {
  const auto end = any_end();
  const std::size_t offset = GENERATE(from_range(kOffsets));
  INFO("after " << offset << " bytes");
  const BackendProcess before("before");
  const BackendProcess after("after");
  PeerPlane plane;
  plane.start();
  plane.set("1", simple_yaml("orders", "c", {before.address}));
  CuttingProxy proxy(plane.address(), end);
  const auto runtime = start_runtime(options_for(proxy.address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).cluster == "before");
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked("1"); }));

  Traffic traffic(channel, 2);
  proxy.cut_after(offset);
  plane.set("1", large_world(after.address), {{kEds, "2"}});
  CHECK(eventually([&] { return call(channel).cluster == "after"; }));
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked(kEds, "2"); }));
  CHECK(traffic.finish() == std::vector<std::string>{});
  INFO(to_string(plane.wire()));
  CHECK(proxy.cuts() == 1);
  // The second stream shows that the cut broke the first one.
  CHECK(plane.wire().streams_opened == 2);
  CHECK(plane.wire().nacks().empty());
}

}  // namespace signalbox::test
