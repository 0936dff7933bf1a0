// SPDX-License-Identifier: Apache-2.0
//
// An independent control plane deletes all resources or a cluster's endpoints, and adds them again.
// update_test has deletions of single listeners and clusters.
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/e2e/runtime_world.hpp"
#include "tests/interop/peer_plane.hpp"

namespace signalbox::test::deletion_test {
namespace {

const std::string kEds = std::string(xds::kClusterLoadAssignmentTypeUrl);

}  // namespace

TEST_CASE("interop: a control plane that has lost everything takes nothing away, or all",
          "[interop][A27][A88]") {
  const bool fails = GENERATE(false, true);
  INFO("fail_on_data_errors " << fails);
  const BackendProcess before("before");
  const BackendProcess after("after");
  PeerPlane plane;
  plane.start();
  plane.set("1", simple_yaml("orders", "c", {before.address}));
  const auto runtime = start_runtime(data_error_options(plane.address(), fails));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).cluster == "before");
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked("1"); }));

  std::optional<Traffic> traffic;
  if (!fails) traffic.emplace(channel, 2);
  plane.set("2", "");
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked(xds::kListenerTypeUrl, "2"); }));
  if (fails) {
    CHECK_THAT(wait_for_failure(channel), Catch::Matchers::Contains("orders"));
  } else {
    // After this ACK the client has heard of both deletions, listener and cluster.
    REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked(xds::kClusterTypeUrl, "2"); }));
    const std::size_t completed = traffic->completed();
    CHECK(eventually([&] { return traffic->completed() > completed + 20; }));
  }

  // The cluster and its endpoints get new names, because go-control-plane does not always send a
  // resource again to a client that has unsubscribed from it.
  plane.set("3", simple_yaml("orders", "d", {after.address}));
  const bool is_back = eventually([&] { return call(channel).cluster == "after"; });
  INFO(to_string(plane.wire()));
  CHECK(is_back);
  if (traffic) CHECK(traffic->finish() == std::vector<std::string>{});
  CHECK(plane.wire().nacks().empty());
  CHECK(plane.wire().streams_opened == 1);
}

TEST_CASE("interop: endpoints that a response leaves out are not deleted by that",
          "[interop][A27][A88]") {
  // State-of-the-world xDS has no deletion of EDS resources, so fail_on_data_errors has no effect.
  const bool fails = GENERATE(false, true);
  INFO("fail_on_data_errors " << fails);
  const BackendProcess before("before");
  const BackendProcess after("after");
  PeerPlane plane;
  plane.start();
  const std::string rest = absl::StrCat(
      listener_yaml("orders", "orders"), routes_yaml("orders", "c"), cluster_yaml("c"));
  plane.set("1", absl::StrCat(rest, endpoints_yaml("c", {{before.address}})));
  const auto runtime = start_runtime(data_error_options(plane.address(), fails));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).cluster == "before");
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked("1"); }));

  Traffic traffic(channel, 2);
  plane.set("1", rest, {{kEds, "2"}});
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked(kEds, "2"); }));
  CHECK(plane.wire().responses(kEds).back().names.empty());
  for (int i = 0; i < 20; ++i)
    CHECK(call(channel).cluster == "before");

  plane.set("1", absl::StrCat(rest, endpoints_yaml("c", {{after.address}})), {{kEds, "3"}});
  CHECK(eventually([&] { return call(channel).cluster == "after"; }));
  CHECK(traffic.finish() == std::vector<std::string>{});
  CHECK(plane.wire().nacks().empty());
}

TEST_CASE(
    "interop: a cluster whose endpoints are all taken away says so, and serves again with new",
    "[interop][A27][A74]") {
  const BackendProcess before("before");
  const BackendProcess after("after");
  PeerPlane plane;
  plane.start();
  plane.set("1", simple_yaml("orders", "c", {before.address}));
  const auto runtime = start_runtime(options_for(plane.address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).cluster == "before");

  plane.set("1",
            absl::StrCat(listener_yaml("orders", "orders"),
                         routes_yaml("orders", "c"),
                         cluster_yaml("c"),
                         endpoints_yaml("c", {})),
            {{kEds, "2"}});
  wait_for_failure(channel);

  plane.set("1", simple_yaml("orders", "c", {after.address}), {{kEds, "3"}});
  CHECK(eventually([&] { return call(channel).cluster == "after"; }));
  CHECK(plane.wire().nacks().empty());
  CHECK(plane.wire().streams_opened == 1);
}

}  // namespace signalbox::test::deletion_test
