// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/cds.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "lb/pick/pickers.hpp"
#include "tests/support/policy_harness.hpp"
#include "tests/support/xds_world.hpp"

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

const LbConfigPtr kOrders = make_lb_config(CdsConfig{ClusterName("orders")});

// The policy below the priorities in the last tree that cds sent to its child.
std::string policy_sent(const PolicyHarness& policy) {
  LbConfigPtr config;
  for (const LbEffect& effect : policy.effects()) {
    if (const auto* start = std::get_if<StartChild>(&effect)) config = start->update.config;
    if (const auto* update = std::get_if<UpdateChild>(&effect)) config = update->update.config;
  }
  const auto& impl = *std::get<OutlierDetectionConfig>(*config).child;
  const auto& override_host = *std::get<ClusterImplConfig>(impl).child;
  const auto& priority =
      std::get<PriorityConfig>(*std::get<OverrideHostConfig>(override_host).child);
  return std::string(policy_name(*priority.children.begin()->second.config));
}

}  // namespace

TEST_CASE("cds: a leaf opens its subchannel map before, and settles it after, its tree",
          "[lb][cds][A75-1]") {
  XdsWorld world;
  world.eds("orders", {"east:a"});
  PolicyHarness policy{make_cds()};
  CHECK(policy.update(kOrders, world.config()) ==
        Texts{"serve orders 1", "start child", "publish CONNECTING"});
  CHECK(policy.child("child", kReady) == Texts{"publish READY"});
  CHECK(policy.applied("child") == Texts{"settle 1", "applied 1"});

  SECTION("a cluster that did not change hears nothing, and has applied at once") {
    CHECK(policy.update(kOrders, world.config()) == Texts{"applied 2"});
  }
  SECTION("a cluster that changed does the same again") {
    world.eds("orders", {"east:a,b"});
    CHECK(policy.update(kOrders, world.config()) == Texts{"serve orders 2", "update child"});
    CHECK(policy.update(kOrders, world.config()).empty());
    CHECK(policy.applied("child", 2) == Texts{"settle 2", "applied 3"});
  }
}

TEST_CASE("cds: tells the subchannels how their cluster is probed",
          "[lb][cds][health_check][ENV-3]") {
  const auto exceptions = std::make_shared<const ProbeExceptions>(
      ProbeExceptions{{Address("a"), {.is_exempt = true, .port = 0}}});
  const auto checks = std::make_shared<const std::vector<HealthCheck>>(1);
  XdsWorld world;
  world.eds("orders", {"east:a"});
  XdsConfig config = *world.config();
  config.authority = "orders.example";
  ClusterConfig probed = **config.clusters.at(ClusterName("orders"));
  Cluster cluster = *probed.cluster;
  cluster.health_checks = checks;
  cluster.connect_timeout = std::chrono::seconds(7);
  probed.cluster = std::make_shared<const Cluster>(std::move(cluster));
  LeafEndpoints leaf = std::get<LeafEndpoints>(probed.children);
  Endpoints endpoints = *leaf.endpoints;
  endpoints.probe_exceptions = exceptions;
  leaf.endpoints = std::make_shared<const Endpoints>(std::move(endpoints));
  probed.children = leaf;
  config.clusters.at(ClusterName("orders")) = std::make_shared<const ClusterConfig>(probed);
  PolicyHarness policy{make_cds()};
  policy.update(kOrders, std::make_shared<const XdsConfig>(std::move(config)));
  const auto found = std::ranges::find_if(policy.effects(), [](const LbEffect& effect) {
    return std::holds_alternative<ServeSubchannels>(effect);
  });
  REQUIRE(found != policy.effects().end());
  CHECK(std::get<ServeSubchannels>(*found).settings.health_checks == checks);
  CHECK(std::get<ServeSubchannels>(*found).settings.probe_exceptions == exceptions);
  CHECK(std::get<ServeSubchannels>(*found).settings.connect_timeout == std::chrono::seconds(7));
  CHECK(std::get<ServeSubchannels>(*found).settings.authority == "orders.example");
}

TEST_CASE("cds: its tree gets no unfit endpoints, of whichever kind they are", "[lb][cds][ENV-9]") {
  const std::string unfit = GENERATE(as<std::string>(), "b?", "b-");
  XdsWorld world;
  world.eds("orders", {"east:a," + unfit});
  PolicyHarness policy{make_cds()};
  policy.update(kOrders, world.config());
  const auto found = std::ranges::find_if(policy.effects(), [](const LbEffect& effect) {
    return std::holds_alternative<StartChild>(effect);
  });
  REQUIRE(found != policy.effects().end());
  const Priority& given = std::get<StartChild>(*found).update.endpoints->priorities.front();
  CHECK(given.localities.size() == 1);
  CHECK(given.degraded.empty());
  CHECK(given.unhealthy.empty());
}

TEST_CASE("cds: tells the subchannels how their cluster is secured", "[lb][cds][A29]") {
  XdsWorld world;
  world.eds("orders", {"east:a"});
  PolicyHarness policy{make_cds()};
  const auto served = [&] {
    XdsConfig config = *world.config();
    Cluster cluster = *(*config.clusters.at(ClusterName("orders")))->cluster;
    cluster.tls = UpstreamTls{CertificateProvider{"files", ""}, std::nullopt, {}};
    ClusterConfig secured = **config.clusters.at(ClusterName("orders"));
    secured.cluster = std::make_shared<const Cluster>(std::move(cluster));
    config.clusters.at(ClusterName("orders")) =
        std::make_shared<const ClusterConfig>(std::move(secured));
    return std::make_shared<const XdsConfig>(std::move(config));
  };
  const auto settings = [&] {
    SubchannelSettings last;
    for (const LbEffect& effect : policy.effects()) {
      if (const auto* serve = std::get_if<ServeSubchannels>(&effect)) last = serve->settings;
    }
    return last;
  };

  policy.update(kOrders, world.config());
  CHECK(settings().cluster == ClusterName("orders"));
  CHECK(settings().tls == nullptr);
  policy.update(kOrders, served());
  REQUIRE(settings().tls != nullptr);
  CHECK(std::get<CertificateProvider>(settings().tls->roots).instance_name == "files");
}

TEST_CASE("cds: a cluster that cannot be had fails its calls with UNAVAILABLE",
          "[lb][cds][A75-11]") {
  XdsWorld world;
  world.eds("orders", {"east:a"});
  PolicyHarness policy{make_cds()};
  policy.update(kOrders, world.config());
  policy.child("child", kReady);
  policy.applied("child");

  SECTION("whatever the error is") {
    world.error("orders", absl::NotFoundError("orders does not exist"));
    CHECK(policy.update(kOrders, world.config()) ==
          Texts{"publish TRANSIENT_FAILURE", "stop child", "close", "applied 2"});
    CHECK(policy.pick() == "fail UNAVAILABLE: orders does not exist");
    CHECK(policy.update(kOrders, world.config()) == Texts{"applied 3"});
    SECTION("and serves again when it is back") {
      world.eds("orders", {"east:a"});
      CHECK(policy.update(kOrders, world.config()) ==
            Texts{"serve orders 4", "start child", "publish CONNECTING"});
    }
  }
  SECTION("and drops them when it is gone") {
    world.remove("orders");
    policy.update(kOrders, world.config());
    CHECK(policy.pick() == "drop UNAVAILABLE: cluster orders was deleted");
  }
}

TEST_CASE("cds: a subchannel map that closes before its tree has answered is not settled",
          "[lb][cds][A75-1]") {
  XdsWorld world;
  world.eds("orders", {"east:a"});
  PolicyHarness policy{make_cds()};
  policy.update(kOrders, world.config());
  SECTION("because the cluster cannot be had") {
    world.error("orders", absl::NotFoundError("orders does not exist"));
    CHECK(policy.update(kOrders, world.config()) ==
          Texts{"publish TRANSIENT_FAILURE", "stop child", "close", "applied 2"});
  }
  SECTION("because the cluster became an aggregate") {
    world.aggregate("orders", {"primary"});
    CHECK(policy.update(kOrders, world.config()) == Texts{"stop child", "start child~2", "close"});
    CHECK(policy.applied("child~2") == Texts{"applied 2"});
  }
}

TEST_CASE("cds: without a leaf there is no subchannel map to close", "[lb][cds][A75-1]") {
  XdsWorld world;
  PolicyHarness policy{make_cds()};
  SECTION("of an aggregate") {
    world.aggregate("orders", {"primary"});
    CHECK(policy.update(kOrders, world.config()) == Texts{"start child", "publish CONNECTING"});
  }
  SECTION("of a cluster that cannot be had") {
    world.error("orders", absl::NotFoundError("orders does not exist"));
    CHECK(policy.update(kOrders, world.config()) ==
          Texts{"publish TRANSIENT_FAILURE", "applied 1"});
  }
}

TEST_CASE("cds: a leaf that becomes an aggregate keeps serving until that can",
          "[lb][cds][A37-22]") {
  XdsWorld world;
  world.eds("orders", {"east:a"});
  PolicyHarness policy{make_cds()};
  policy.update(kOrders, world.config());
  policy.child("child", kReady);
  policy.applied("child");

  world.aggregate("orders", {"primary"});
  CHECK(policy.update(kOrders, world.config()) == Texts{"start child~2"});
  CHECK(policy.child("child~2", kConnecting).empty());
  CHECK(policy.pick() == "fail UNAVAILABLE: child READY");
  CHECK(policy.child("child~2", kFailure) ==
        Texts{"stop child", "publish TRANSIENT_FAILURE", "close"});

  SECTION("an aggregate that did not change is told on: its leaves may have changed") {
    CHECK(policy.update(kOrders, world.config()) == Texts{"update child~2"});
  }
}

TEST_CASE("cds: says why there are no endpoints", "[lb][cds][A37-23]") {
  XdsWorld world;
  world.eds_unresolved("orders", "EDS is silent");
  PolicyHarness policy{make_cds()};
  policy.update(kOrders, world.config());
  policy.child("child", kFailure);
  CHECK(policy.pick() == "fail UNAVAILABLE: child TRANSIENT_FAILURE (EDS is silent)");
  CHECK(policy.published()->status.message() == "child failed (EDS is silent)");

  SECTION("once: a cluster that did not change tells nothing again") {
    CHECK(policy.update(kOrders, world.config()).empty());
  }
  SECTION("once: neither does a child that reports the same again") {
    const ChildStateChanged same{ChildName("child"), kFailure, {}, make_queue_picker()};
    CHECK(policy.step(same) == Texts{"publish TRANSIENT_FAILURE"});
    CHECK(policy.step(same).empty());
  }
  SECTION("an aggregate that the cluster becomes does not say it") {
    world.aggregate("orders", {"primary"});
    policy.update(kOrders, world.config());
    policy.child("child~2", kFailure);
    CHECK(policy.pick() == "fail UNAVAILABLE: child~2 TRANSIENT_FAILURE");
    CHECK(policy.published()->status.message() == "child~2 failed");
  }
}

TEST_CASE("cds: the policy of an aggregate takes the place of the leaf's own, where it is given",
          "[lb][cds][A75-8]") {
  XdsWorld world;
  world.eds("orders", {"east:a"});
  PolicyHarness policy{make_cds()};
  policy.update(kOrders, world.config());
  const std::string own = policy_sent(policy);
  REQUIRE(own != "pick_first");

  const auto under_pick_first =
      make_lb_config(CdsConfig{ClusterName("orders"), make_lb_config(PickFirstConfig{})});
  CHECK(policy.update(under_pick_first, world.config()) == Texts{"serve orders 2", "update child"});
  CHECK(policy_sent(policy) == "pick_first");
  CHECK(policy.update(under_pick_first, world.config()).empty());
  CHECK(policy.update(kOrders, world.config()) == Texts{"serve orders 4", "update child"});
  CHECK(policy_sent(policy) == own);
}
