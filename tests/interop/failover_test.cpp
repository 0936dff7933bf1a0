// SPDX-License-Identifier: Apache-2.0
//
// Failover in an aggregate cluster that comes from an independent control plane.
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <signal.h>

#include "tests/e2e/runtime_world.hpp"
#include "tests/interop/peer_plane.hpp"

namespace signalbox::test {
namespace {

std::string orders_yaml(const std::vector<std::string>& primary,
                        const std::vector<std::string>& secondary) {
  return absl::StrCat(listener_yaml("orders", "orders"),
                      routes_yaml("orders", "orders"),
                      aggregate_yaml("orders", {"primary", "secondary"}),
                      cluster_yaml("primary"),
                      endpoints_yaml("primary", {primary}),
                      cluster_yaml("secondary"),
                      endpoints_yaml("secondary", {secondary}));
}

}  // namespace

TEST_CASE("interop: an aggregate fails over when its primary is killed, and back when it returns",
          "[interop][A37-3][A37-7][A56][A75-1][A75-6]") {
  BackendProcess first("primary");
  BackendProcess second("primary");
  const BackendProcess spare("secondary");
  PeerPlane plane;
  plane.start();
  plane.set("1", orders_yaml({first.address, second.address}, {spare.address}));
  const auto runtime = start_runtime(options_for(plane.address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).cluster == "primary");
  const std::set<std::string> leaves{"primary", "secondary"};
  REQUIRE(plane.wait_for([&](const Wire& wire) {
    return wire.acked("1") &&
           wire.requests(xds::kClusterLoadAssignmentTypeUrl).back().names == leaves;
  }));
  CHECK(plane.wire().requests(xds::kClusterTypeUrl).back().names ==
        std::set<std::string>{"orders", "primary", "secondary"});
  const std::vector<std::string> ready{"cluster=\"primary\"", "state=\"ready\""};
  REQUIRE(eventually([&] { return metric(*runtime, "signalbox_endpoints", ready) == 2.0; }));

  // After the first kill the primary still has one of its two endpoints, so calls stay there.
  const std::size_t messages = plane.wire().messages.size();
  Traffic traffic(channel, 2);
  first.process.send_signal(SIGKILL);
  REQUIRE(eventually([&] { return metric(*runtime, "signalbox_endpoints", ready) == 1.0; }));
  CHECK(call(channel).cluster == "primary");
  second.process.send_signal(SIGKILL);
  CHECK(eventually([&] { return call(channel).cluster == "secondary"; }));
  for (int i = 0; i < 20; ++i)
    CHECK(call(channel).cluster == "secondary");
  // Calls in flight to a killed process may fail. No call may be refused for lack of an endpoint.
  for (const std::string& failure : traffic.finish())
    CHECK_THAT(failure, !Catch::Matchers::Contains("refused"));
  // The failover needs no message to or from the control plane.
  CHECK(plane.wire().messages.size() == messages);
  CHECK(metric(*runtime, "signalbox_failovers_total", {"cluster=\"orders\""}) == 1.0);

  Traffic back(channel, 2);
  const BackendProcess third("primary");
  plane.set("2", orders_yaml({third.address}, {spare.address}));
  CHECK(eventually([&] { return call(channel).cluster == "primary"; }));
  for (int i = 0; i < 20; ++i)
    CHECK(call(channel).cluster == "primary");
  CHECK(back.finish() == std::vector<std::string>{});
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked("2"); }));
  CHECK(plane.wire().nacks().empty());
}

}  // namespace signalbox::test
