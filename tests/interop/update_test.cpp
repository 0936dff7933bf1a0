// SPDX-License-Identifier: Apache-2.0
//
// Resources that an independent control plane changes, removes and adds again.
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/e2e/runtime_world.hpp"
#include "tests/interop/peer_plane.hpp"

namespace signalbox::test::update_test {
namespace {

const std::string kEds = std::string(xds::kClusterLoadAssignmentTypeUrl);

std::size_t answers(const Wire& wire, absl::string_view type_url) {
  return wire.responses(type_url).size();
}

}  // namespace

TEST_CASE("interop: new endpoints are used, and the old ones left, without a failed call",
          "[interop][A27][A74]") {
  const BackendProcess before("before");
  const BackendProcess after("after");
  PeerPlane plane;
  plane.start();
  plane.set("1", simple_yaml("orders", "c", {before.address}));
  const auto runtime = start_runtime(options_for(plane.address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).cluster == "before");
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked("1"); }));

  Traffic traffic(channel, 2);
  plane.set("1", simple_yaml("orders", "c", {before.address, after.address}), {{kEds, "2"}});
  CHECK(eventually([&] { return call(channel).cluster == "after"; }));
  plane.set("1", simple_yaml("orders", "c", {after.address}), {{kEds, "3"}});
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked(kEds, "3"); }));
  // If both endpoints were in use, round robin would pick both within ten calls.
  CHECK(eventually([&] {
    for (int i = 0; i < 10; ++i) {
      if (call(channel).cluster != "after") return false;
    }
    return true;
  }));
  CHECK(traffic.finish() == std::vector<std::string>{});

  const Wire& wire = plane.wire();
  CHECK(answers(wire, kEds) == 3);
  for (const auto type : kAllTypes) {
    INFO(type);
    if (type == kEds) continue;
    CHECK(answers(wire, type) == 1);
    CHECK(wire.requests(type).size() == 2);
  }
}

TEST_CASE("interop: the same snapshot once more is no news", "[interop][A27]") {
  const BackendProcess backend("good");
  PeerPlane plane;
  plane.start();
  const std::string world = simple_yaml("orders", "c", {backend.address});
  plane.set("1", world);
  const auto runtime = start_runtime(options_for(plane.address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked("1"); }));
  const auto generation = metric(*runtime, "signalbox_config_generation");
  const std::size_t messages = plane.wire().messages.size();

  plane.set("1", world);
  plane.set("1", world);
  // The peer sends a new version. Responses for the repeated snapshots would have come before it.
  plane.set("1", world, {{kEds, "2"}});
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked(kEds, "2"); }));
  CHECK(plane.wire().messages.size() == messages + 2);
  CHECK(call(channel).ok());
  // A new version with equal content makes no new configuration.
  CHECK(metric(*runtime, "signalbox_config_generation") == generation);
}

TEST_CASE("interop: calls move from a cluster that is deleted to the one that replaces it",
          "[interop][A31][A74][A37-15]") {
  const BackendProcess before("before");
  const BackendProcess after("after");
  PeerPlane plane;
  plane.start();
  plane.set("1", simple_yaml("orders", "a", {before.address}));
  const auto runtime = start_runtime(options_for(plane.address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).cluster == "before");

  Traffic traffic(channel, 2);
  plane.set("2", simple_yaml("orders", "b", {after.address}));
  CHECK(eventually([&] { return call(channel).cluster == "after"; }));
  REQUIRE(plane.wait_for([](const Wire& wire) {
    const std::set<std::string> only{"b"};
    return wire.requests(xds::kClusterTypeUrl).back().names == only &&
           wire.requests(kEds).back().names == only && wire.acked("2");
  }));
  CHECK(traffic.finish() == std::vector<std::string>{});
  CHECK(plane.wire().nacks().empty());
  CHECK(eventually([&] { return !metric(*runtime, "signalbox_endpoints", {"cluster=\"a\""}); }));
}

TEST_CASE("interop: what is deleted serves on, or not, as the bootstrap says, and comes back",
          "[interop][A27][A57][A88][S10]") {
  const bool fails = GENERATE(false, true);
  const absl::string_view type = GENERATE(xds::kListenerTypeUrl, xds::kClusterTypeUrl);
  INFO(type << ", fail_on_data_errors " << fails);
  const BackendProcess backend("good");
  PeerPlane plane;
  plane.start();
  const std::string listener = listener_yaml("orders", "orders");
  const std::string cluster = cluster_yaml("c");
  const std::string rest =
      absl::StrCat(routes_yaml("orders", "c"), endpoints_yaml("c", {{backend.address}}));
  plane.set("1", absl::StrCat(listener, cluster, rest));
  const auto runtime = start_runtime(data_error_options(plane.address(), fails));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked("1"); }));

  plane.set("2", absl::StrCat(type == xds::kListenerTypeUrl ? cluster : listener, rest));
  REQUIRE(plane.wait_for([&](const Wire& wire) { return wire.acked(type, "2"); }));
  CHECK(plane.wire().responses(type).back().names.empty());
  if (fails) {
    CHECK_THAT(wait_for_failure(channel), Catch::Matchers::Contains("was deleted"));
  } else {
    for (int i = 0; i < 20; ++i)
      CHECK(call(channel).ok());
  }

  plane.set("3", absl::StrCat(listener, cluster, rest));
  REQUIRE(plane.wait_for([&](const Wire& wire) { return wire.acked(type, "3"); }));
  const bool is_back = eventually([&] { return call(channel).ok(); });
  INFO(to_string(plane.wire()));
  CHECK(is_back);
  CHECK(plane.wire().nacks().empty());
  CHECK(plane.wire().streams_opened == 1);
}

}  // namespace signalbox::test::update_test
