// SPDX-License-Identifier: Apache-2.0
//
// Two independent control planes. The second one is the fallback for the first.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/e2e/runtime_world.hpp"
#include "tests/interop/peer_plane.hpp"

namespace signalbox::test {
namespace {

// `planes`: in order of preference, best first.
std::unique_ptr<Runtime> start_with(const std::vector<const PeerPlane*>& planes) {
  nlohmann::json servers = nlohmann::json::array();
  for (const PeerPlane* plane : planes) {
    servers.push_back({{"server_uri", plane->address()},
                       {"channel_creds", {{{"type", "insecure"}}}},
                       {"server_features", {"xds_v3"}}});
  }
  RuntimeOptions options = options_for(planes.front()->address());
  options.bootstrap_json =
      nlohmann::json{{"xds_servers", servers}, {"node", {{"id", kNodeId}}}}.dump();
  return start_runtime(std::move(options));
}

struct Two {
  BackendProcess of_primary{"primary"};
  BackendProcess of_fallback{"fallback"};
  PeerPlane primary, fallback;

  void start_primary() {
    primary.start();
    primary.set("p1", simple_yaml("orders", "c", {of_primary.address}));
  }

  void start_fallback() {
    fallback.start();
    fallback.set("f1", simple_yaml("orders", "c", {of_fallback.address}));
  }
};

}  // namespace

TEST_CASE("interop: without its primary a cold client starts from the fallback, and goes back",
          "[interop][A71][S8]") {
  Two two;
  two.start_fallback();
  const auto runtime = start_with({&two.primary, &two.fallback});
  const auto channel = runtime->channel("xds:///orders");
  const Answer first = call(channel, {.wait_for_ready = true});
  INFO(first.text());
  CHECK(first.cluster == "fallback");
  REQUIRE(two.fallback.wait_for([](const Wire& wire) { return wire.acked("f1"); }));

  Traffic traffic(channel, 2);
  two.start_primary();
  CHECK(eventually([&] { return call(channel).cluster == "primary"; }));
  REQUIRE(two.primary.wait_for([](const Wire& wire) { return wire.acked("p1"); }));
  // The client closes its stream to the fallback.
  CHECK(two.fallback.wait_for([](const Wire& wire) { return wire.streams_open == 0; }));
  for (int i = 0; i < 20; ++i)
    CHECK(call(channel).cluster == "primary");
  CHECK(traffic.finish() == std::vector<std::string>{});
  CHECK(two.primary.wire().nacks().empty());
  CHECK(two.fallback.wire().nacks().empty());
}

TEST_CASE("interop: a primary that dies is no reason for the fallback while all is cached",
          "[interop][A71][S7]") {
  Two two;
  two.start_primary();
  two.start_fallback();
  const auto runtime = start_with({&two.primary, &two.fallback});
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).cluster == "primary");
  REQUIRE(two.primary.wait_for([](const Wire& wire) { return wire.acked("p1"); }));

  Traffic traffic(channel, 2);
  two.primary.kill();
  REQUIRE(eventually([&] {
    return metric(*runtime,
                  "signalbox_xds_connected",
                  {"server=\"" + two.primary.address() + "\""}) == 0.0;
  }));
  for (int i = 0; i < 20; ++i)
    CHECK(call(channel).cluster == "primary");
  CHECK(two.fallback.wire().streams_opened == 0);

  // A new target needs resources that are not cached. Only the fallback can send them.
  two.fallback.set("f2",
                   simple_yaml("orders", "c", {two.of_fallback.address}) +
                       simple_yaml("parcels", "d", {two.of_fallback.address}));
  const auto parcels = runtime->channel("xds:///parcels");
  CHECK(call(parcels, {.wait_for_ready = true}).cluster == "fallback");
  CHECK(traffic.finish() == std::vector<std::string>{});
}

TEST_CASE("interop: with both control planes gone, calls go on as they were told last",
          "[interop][A71][S7]") {
  Two two;
  two.start_fallback();
  const auto runtime = start_with({&two.primary, &two.fallback});
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel, {.wait_for_ready = true}).cluster == "fallback");
  REQUIRE(two.fallback.wait_for([](const Wire& wire) { return wire.acked("f1"); }));

  Traffic traffic(channel, 2);
  two.fallback.kill();
  REQUIRE(eventually([&] {
    return metric(
               *runtime, "signalbox_xds_connected", {"server=\"" + two.fallback.address() + "\""})
               .value_or(0) == 0.0;
  }));
  const std::size_t completed = traffic.completed();
  CHECK(eventually([&] { return traffic.completed() > completed + 20; }));
  CHECK(call(channel).cluster == "fallback");

  two.start_primary();
  CHECK(eventually([&] { return call(channel).cluster == "primary"; }));
  CHECK(traffic.finish() == std::vector<std::string>{});
}

}  // namespace signalbox::test
