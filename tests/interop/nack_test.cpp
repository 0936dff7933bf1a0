// SPDX-License-Identifier: Apache-2.0
//
// Invalid resources from an independent control plane.
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/e2e/runtime_world.hpp"
#include "tests/interop/peer_plane.hpp"

namespace signalbox::test {
namespace {

const char kBad[] =
    "  - {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: fixed, type: "
    "STATIC}\n";

// Calls to the listener `fixed` go to the cluster `fixed`, calls to `free` go to `free`.
std::string listener_and_routes() {
  return absl::StrCat(listener_yaml("free", "free"),
                      routes_yaml("free", "free"),
                      listener_yaml("fixed", "fixed"),
                      routes_yaml("fixed", "fixed"));
}

}  // namespace

TEST_CASE("interop: of a response with one bad cluster the others are used, until it is mended",
          "[interop][A27][A37-35][A46][A57][A88][S10]") {
  const BackendProcess before("before");
  const BackendProcess after("after");
  PeerPlane plane;
  plane.start();
  const std::string endpoints = absl::StrCat(endpoints_yaml("free", {{before.address}}),
                                             endpoints_yaml("free-2", {{after.address}}),
                                             endpoints_yaml("fixed", {{before.address}}),
                                             endpoints_yaml("fixed-3", {{after.address}}));
  const std::string common = absl::StrCat(listener_and_routes(), endpoints);
  plane.set("1", absl::StrCat(common, cluster_yaml("free"), cluster_yaml("fixed")));
  const auto runtime = start_runtime(options_for(plane.address()));
  const auto free = runtime->channel("xds:///free");
  const auto fixed = runtime->channel("xds:///fixed");
  REQUIRE(call(free).cluster == "before");
  REQUIRE(call(fixed).cluster == "before");
  REQUIRE(plane.wait_for([](const Wire& wire) {
    return wire.acked("1") && wire.requests(xds::kClusterTypeUrl).back().names.size() == 2;
  }));
  CHECK(plane.wire().nacks().empty());

  Traffic traffic_to_free(free, 1);
  Traffic traffic_to_fixed(fixed, 1);
  plane.set("1",
            absl::StrCat(common, cluster_yaml("free", "free-2"), kBad),
            {{std::string(xds::kClusterTypeUrl), "2"}});
  REQUIRE(plane.wait_for([](const Wire& wire) { return !wire.nacks().empty(); }));
  const WireMessage nack = plane.wire().nacks().front();
  CHECK(nack.type_url == xds::kClusterTypeUrl);
  CHECK(nack.version == "1");
  CHECK(nack.names == std::set<std::string>{"fixed", "free"});
  CHECK(nack.error->code == static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
  CHECK_THAT(nack.error->message,
             Catch::Matchers::Contains("fixed") && !Catch::Matchers::Contains("free"));
  CHECK(eventually([&] { return call(free).cluster == "after"; }));
  CHECK(call(fixed).cluster == "before");

  plane.set("1",
            absl::StrCat(common, cluster_yaml("free", "free-2"), cluster_yaml("fixed", "fixed-3")),
            {{std::string(xds::kClusterTypeUrl), "3"}});
  REQUIRE(plane.wait_for([](const Wire& wire) { return wire.acked(xds::kClusterTypeUrl, "3"); }));
  CHECK(eventually([&] { return call(fixed).cluster == "after"; }));
  CHECK(call(free).cluster == "after");
  CHECK(traffic_to_free.finish() == std::vector<std::string>{});
  CHECK(traffic_to_fixed.finish() == std::vector<std::string>{});
  const Wire& wire = plane.wire();
  CHECK(wire.streams_opened == 1);
  // go-control-plane repeats a response at once after its NACK, so there may be many NACKs.
  for (const WireMessage& later : wire.nacks()) {
    CHECK(later.type_url == xds::kClusterTypeUrl);
    CHECK(later.version == "1");
  }
}

}  // namespace signalbox::test
