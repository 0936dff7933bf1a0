// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/cds.hpp"

#include <catch2/catch.hpp>

#include "tests/support/policy_harness.hpp"
#include "tests/support/xds_world.hpp"

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

const LbConfigPtr kOrders = make_lb_config(CdsConfig{ClusterName("orders")});

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
}

TEST_CASE("cds: the policy of an aggregate takes the place of the leaf's own, where it is given",
          "[lb][cds][A75-8]") {
  XdsWorld world;
  world.eds("orders", {"east:a"});
  PolicyHarness policy{make_cds()};
  policy.update(kOrders, world.config());

  const auto under_pick_first =
      make_lb_config(CdsConfig{ClusterName("orders"), make_lb_config(PickFirstConfig{})});
  CHECK(policy.update(under_pick_first, world.config()) == Texts{"serve orders 2", "update child"});
  CHECK(policy.update(under_pick_first, world.config()).empty());
  CHECK(policy.update(kOrders, world.config()) == Texts{"serve orders 4", "update child"});
}
