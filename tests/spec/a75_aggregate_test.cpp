// SPDX-License-Identifier: Apache-2.0
// gRFC A75, and the parts of A37 and A31 that it builds on. The tests run whole policy trees, from
// cluster_manager down to the leaf policy (round_robin, unless a test says otherwise).
#include <catch2/catch.hpp>

#include "tests/support/printed.hpp"
#include "tests/support/tree_harness.hpp"
#include "tests/support/xds_world.hpp"

namespace a75_aggregate_test {

using namespace signalbox;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

bool has(const Texts& texts, const std::string& text) {
  return std::ranges::count(texts, text) != 0;
}

/// An aggregate "orders" of the leaves "primary" (endpoint a) and "secondary" (endpoint b).
struct Orders {
  XdsWorld world;
  TreeHarness tree;

  Orders() {
    world.eds("primary", {"east:a"});
    world.eds("secondary", {"west:b"});
    world.aggregate("orders", {"primary", "secondary"});
  }

  void apply() { tree.apply(manager_of({"orders"}), world.config()); }
};

/// Returns `config` with these drop categories in the EDS resource of `cluster`.
XdsConfigPtr with_drops(const XdsConfigPtr& config,
                        const std::string& cluster,
                        std::vector<DropCategory> drops) {
  auto changed = std::make_shared<XdsConfig>(*config);
  auto& entry = changed->clusters.at(ClusterName(cluster));
  ClusterConfig leaf = **entry;
  auto& children = std::get<LeafEndpoints>(leaf.children);
  auto endpoints = std::make_shared<Endpoints>(*children.endpoints);
  endpoints->drops = std::move(drops);
  children.endpoints = std::move(endpoints);
  entry = std::make_shared<const ClusterConfig>(std::move(leaf));
  return changed;
}

}  // namespace

SCENARIO("A75: failover and failback between the leaves of an aggregate",
         "[spec][lb][A75-1][A56]") {
  Orders orders;
  orders.tree.up("a");
  orders.tree.up("b");
  orders.apply();
  REQUIRE(orders.tree.reached("orders") == Texts{"a"});
  REQUIRE(orders.tree.connections("b") == 0);
  WHEN("the primary is lost") {
    orders.tree.down("a");
    THEN("the secondary takes the calls") {
      CHECK(orders.tree.reached("orders") == Texts{"b"});
    }
    AND_WHEN("the primary is back") {
      orders.tree.up("a");
      THEN("it takes them again") {
        CHECK(orders.tree.reached("orders") == Texts{"a"});
      }
    }
  }
}

SCENARIO("A75: the LB policy is the leaf's own", "[spec][lb][A75-6]") {
  XdsWorld world;
  world.eds("primary", {"east:a"}, make_lb_config(PickFirstConfig{}));
  world.eds("secondary", {"west:b"}, make_lb_config(RoundRobinConfig{}));
  world.aggregate("orders", {"primary", "secondary"});
  TreeHarness tree;
  tree.down("a");
  tree.up("b");
  tree.apply(manager_of({"orders"}), world.config());
  CHECK(
      has(tree.policies("m"), "m/orders/child/primary/child/child/child/child/child0 pick_first"));
  CHECK(has(tree.policies("m"),
            "m/orders/child/secondary/child/child/child/child/child0 round_robin"));
}

SCENARIO("A75: a flattened aggregate gives every leaf its full time", "[spec][lb][A75-9][A75-10]") {
  GIVEN("three leaves that never answer, as a nested aggregate is flattened to") {
    XdsWorld world;
    world.eds("one", {"z:a"});
    world.eds("two", {"z:b"});
    world.eds("three", {"z:c"});
    world.aggregate("orders", {"one", "two", "three"});
    TreeHarness tree;
    tree.apply(manager_of({"orders"}), world.config());
    tree.take_log();
    THEN("all leaves are priorities of one and the same policy") {
      tree.advance(10s);
      CHECK(has(tree.take_log(), "start m/orders/child/two cds"));
      tree.advance(10s - 1ns);
      CHECK_FALSE(has(tree.take_log(), "start m/orders/child/three cds"));
      tree.advance(1ns);
      CHECK(has(tree.take_log(), "start m/orders/child/three cds"));
      CHECK(tree.state("m/orders") == kConnecting);
    }
  }
  GIVEN("a first leaf with three priorities of which the last answers late") {
    XdsWorld world;
    world.eds("one", {"x:a", "y:b", "z:c"});
    world.eds("two", {"w:d"});
    world.aggregate("orders", {"one", "two"});
    TreeHarness tree;
    tree.down("a");
    tree.down("b");
    tree.apply(manager_of({"orders"}), world.config());
    THEN("the aggregate waits ten seconds for the leaf as a whole") {
      tree.advance(9s);
      tree.up("c");
      CHECK(tree.reached("orders") == Texts{"c"});
      CHECK(tree.policies("m/orders/child/two").empty());
    }
  }
}

SCENARIO("A75: the failure of one leaf is its own", "[spec][lb][A75-11]") {
  Orders orders;
  orders.tree.up("a");
  orders.tree.up("b");
  WHEN("the primary's CDS resource cannot be had") {
    orders.world.error("primary", absl::NotFoundError("cluster primary does not exist"));
    orders.apply();
    THEN("the primary is in TRANSIENT_FAILURE, and the secondary serves") {
      CHECK(orders.tree.state("m/orders/child/primary") == kFailure);
      CHECK(orders.tree.reached("orders") == Texts{"b"});
    }
  }
  WHEN("it is lost while it serves") {
    orders.apply();
    REQUIRE(orders.tree.reached("orders") == Texts{"a"});
    orders.world.error("primary", absl::NotFoundError("cluster primary does not exist"));
    orders.apply();
    THEN("calls fail over, and what served is gone") {
      CHECK(orders.tree.reached("orders") == Texts{"b"});
      CHECK(orders.tree.policies("m/orders/child/primary") == Texts{"m/orders/child/primary cds"});
      CHECK(has(orders.tree.take_log(), "subchannel a closed"));
    }
  }
  WHEN("no leaf can be had") {
    orders.world.error("primary", absl::NotFoundError("cluster primary does not exist"));
    orders.world.error("secondary", absl::InternalError("cluster secondary is invalid"));
    orders.apply();
    THEN("calls fail UNAVAILABLE, whatever the error was") {
      CHECK(orders.tree.pick("orders") ==
            "fail UNAVAILABLE: all 2 priorities failed; priority 1, cluster secondary: "
            "cluster secondary is invalid");
    }
  }
}

SCENARIO("A75: an aggregate without leaves", "[spec][lb][A75-12]") {
  XdsWorld world;
  world.aggregate("orders", {});
  TreeHarness tree;
  tree.apply(manager_of({"orders"}), world.config());
  CHECK(tree.state("m/orders") == kFailure);
  CHECK(tree.pick("orders") == "fail UNAVAILABLE: priority policy has empty priority list");
}

SCENARIO("A75: a leaf that moves keeps its connections", "[spec][lb][A75-13][A37-49]") {
  Orders orders;
  orders.tree.down("a");
  orders.tree.up("b");
  orders.apply();
  REQUIRE(orders.tree.reached("orders") == Texts{"b"});
  orders.tree.take_log();

  orders.world.aggregate("orders", {"secondary", "primary"});
  orders.apply();
  const Texts log = orders.tree.take_log();
  CHECK(orders.tree.reached("orders") == Texts{"b"});
  CHECK(orders.tree.connections("b") == 1);
  CHECK(std::ranges::none_of(log, [](const std::string& line) {
    return line.starts_with("start") || line.starts_with("stop");
  }));
}

SCENARIO("A37: endpoints that change priority", "[spec][lb][A37-21]") {
  XdsWorld world;
  TreeHarness tree;
  for (const char* address : {"a", "b", "c"})
    tree.up(address);
  const auto apply = [&] { tree.apply(manager_of({"orders"}), world.config()); };

  GIVEN("a locality of the second priority that becomes the first") {
    world.eds("orders", {"east:a", "west:b"});
    apply();
    tree.down("a");
    REQUIRE(tree.reached("orders") == Texts{"b"});
    tree.take_log();
    world.eds("orders", {"west:b"});
    apply();
    THEN("it keeps its child and its connection") {
      CHECK(tree.reached("orders") == Texts{"b"});
      CHECK(tree.connections("b") == 1);
      CHECK_FALSE(has(tree.take_log(), "subchannel b closed"));
    }
  }
  GIVEN("one endpoint that moves to a lower priority") {
    world.eds("orders", {"east:a,b", "west:c"});
    apply();
    REQUIRE(tree.reached("orders") == Texts{"a", "b"});
    world.eds("orders", {"east:b", "west:a,c"});
    apply();
    THEN("it gets no calls there while the first priority serves") {
      CHECK(tree.reached("orders") == Texts{"b"});
    }
    AND_WHEN("the first priority fails") {
      tree.down("b");
      THEN("it does") {
        CHECK(tree.reached("orders") == Texts{"a", "c"});
      }
    }
  }
  GIVEN("an endpoint that moves between priorities that both run") {
    world.eds("orders", {"east:a", "west:b,c"});
    tree.down("a");
    apply();
    REQUIRE(tree.reached("orders") == Texts{"b", "c"});
    world.eds("orders", {"east:a,b", "west:c"});
    apply();
    THEN("it keeps its connection, though one lets go of it and another takes it") {
      CHECK(tree.reached("orders") == Texts{"b"});
      CHECK(tree.connections("b") == 1);
    }
  }
}

SCENARIO("A37: a cluster that changes its kind is switched gracefully", "[spec][lb][A37-22]") {
  XdsWorld world;
  TreeHarness tree;
  tree.up("a");
  world.eds("orders", {"east:a"});
  tree.apply(manager_of({"orders"}), world.config());
  REQUIRE(tree.reached("orders") == Texts{"a"});

  world.eds("primary", {"east:b"});
  world.aggregate("orders", {"primary"});
  tree.apply(manager_of({"orders"}), world.config());
  THEN("what served goes on until the new one is past CONNECTING") {
    CHECK(tree.reached("orders") == Texts{"a"});
    CHECK_FALSE(has(tree.take_log(), "subchannel a closed"));
    tree.up("b");
    CHECK(tree.reached("orders") == Texts{"b"});
    CHECK(has(tree.take_log(), "subchannel a closed"));
  }
}

SCENARIO("A37: an aggregate that becomes a leaf is switched gracefully", "[spec][lb][A37-22]") {
  Orders orders;
  orders.tree.up("a");
  orders.apply();
  REQUIRE(orders.tree.reached("orders") == Texts{"a"});

  orders.world.eds("orders", {"east:c"});
  orders.apply();
  THEN("its leaves serve, connections and all, until the new endpoints can") {
    CHECK(orders.tree.reached("orders") == Texts{"a"});
    CHECK_FALSE(has(orders.tree.take_log(), "subchannel a closed"));
    orders.tree.down("c");
    orders.tree.down("a");
    orders.tree.up("c");
    CHECK(orders.tree.reached("orders") == Texts{"c"});
    CHECK(orders.tree.policies("m/orders/child/primary").empty());
  }
}

SCENARIO("A37: endpoints' policy that changes is switched gracefully", "[spec][lb][A37-22]") {
  XdsWorld world;
  TreeHarness tree;
  tree.up("a");
  world.eds("orders", {"east:a"});
  tree.apply(manager_of({"orders"}), world.config());
  world.eds("orders", {"east:b"}, make_lb_config(PickFirstConfig{}));
  tree.apply(manager_of({"orders"}), world.config());
  CHECK(tree.reached("orders") == Texts{"a"});
  CHECK_FALSE(has(tree.take_log(), "subchannel a closed"));
  tree.up("b");
  CHECK(tree.reached("orders") == Texts{"b"});
  CHECK(has(tree.take_log(), "subchannel a closed"));
}

SCENARIO("A75: drops apply once per cluster, before the priority is chosen",
         "[spec][lb][A75-5][A37-27][A37-31]") {
  const std::string dropped =
      "drop UNAVAILABLE: cluster orders: the control plane drops calls of category \"lb\"";
  XdsWorld world;
  TreeHarness tree;
  GIVEN("two priorities, and half of the calls to drop") {
    tree.up("a");
    tree.up("b");
    world.eds("orders", {"east:a", "west:b"});
    const auto half = [&] { return with_drops(world.config(), "orders", {{"lb", 500'000}}); };
    const auto dropped_of_1000 = [&] {
      int count = 0;
      for (std::uint64_t seed = 0; seed < 1000; ++seed)
        count += tree.pick("orders", seed) == dropped ? 1 : 0;
      return count;
    };
    tree.apply(manager_of({"orders"}), half());
    const int first = dropped_of_1000();
    CHECK(first > 400);
    CHECK(first < 600);
    THEN("the very same calls are dropped whichever priority serves, or none") {
      tree.down("a");
      CHECK(dropped_of_1000() == first);
      tree.down("b");
      CHECK(dropped_of_1000() == first);
    }
  }
  GIVEN("a cluster without endpoints, and all calls to drop") {
    world.eds("orders", {});
    tree.apply(manager_of({"orders"}), with_drops(world.config(), "orders", {{"lb", 1'000'000}}));
    THEN("they are, and nobody waits for an endpoint") {
      CHECK(tree.state("m/orders") == kFailure);
      CHECK(tree.pick("orders") == dropped);
    }
  }
}

SCENARIO("A37: only a name is worth resolving again", "[spec][lb][A37-19][A37-33]") {
  XdsWorld world;
  TreeHarness tree;
  tree.up("a");
  GIVEN("an EDS cluster") {
    world.eds("orders", {"east:a"});
    tree.apply(manager_of({"orders"}), world.config());
    tree.down("a");
    THEN("its endpoints' requests go nowhere") {
      CHECK(tree.reresolutions() == 0);
    }
  }
  GIVEN("a LOGICAL_DNS cluster") {
    world.dns("orders", "a");
    tree.apply(manager_of({"orders"}), world.config());
    tree.down("a");
    THEN("its request reaches the top") {
      CHECK(tree.reresolutions() > 0);
    }
  }
  GIVEN("an aggregate that failed over to LOGICAL_DNS") {
    world.eds("primary", {"east:a"});
    world.dns("legacy", "b");
    world.aggregate("orders", {"primary", "legacy"});
    tree.up("b");
    tree.apply(manager_of({"orders"}), world.config());
    tree.down("a");
    REQUIRE(tree.reached("orders") == Texts{"b"});
    THEN("the EDS leaf's attempts cause no look-ups") {
      CHECK(tree.reresolutions() == 0);
      tree.down("b");
      CHECK(tree.reresolutions() > 0);
    }
  }
}

SCENARIO("A37: a cluster without endpoints says why", "[spec][lb][A37-23][A37-25]") {
  XdsWorld world;
  TreeHarness tree;
  world.eds_unresolved("orders", "EDS resource orders does not exist");
  tree.apply(manager_of({"orders"}), world.config());
  CHECK(tree.state("m/orders") == kFailure);
  CHECK(tree.pick("orders") ==
        "fail UNAVAILABLE: has no endpoints (EDS resource orders does not exist)");
  WHEN("there are endpoints") {
    tree.up("a");
    world.eds("orders", {"east:a"});
    tree.apply(manager_of({"orders"}), world.config());
    THEN("they serve") {
      CHECK(tree.reached("orders") == Texts{"a"});
    }
  }
}

SCENARIO("A31: clusters come and go with the routes", "[spec][lb][A31-12][A31-14][A31-18]") {
  XdsWorld world;
  TreeHarness tree;
  world.eds("blue", {"east:a"});
  world.eds("green", {"east:b"});
  tree.up("a");
  tree.apply(manager_of({"blue"}), world.config());
  REQUIRE(tree.pick("blue") == "complete a");

  WHEN("a cluster is added") {
    tree.take_log();
    tree.apply(manager_of({"blue", "green"}), world.config());
    THEN("the picker knows it in the same step, and its calls wait") {
      const Texts log = tree.take_log();
      const auto published = std::ranges::find(log, "publish READY 2");
      const auto child_at_work = std::ranges::find(log, "start m/green/child outlier_detection");
      CHECK(published < child_at_work);
      CHECK(tree.pick("green") == "queue");
      CHECK(tree.pick("blue") == "complete a");
    }
    AND_WHEN("it retires") {
      tree.up("b");
      REQUIRE(tree.pick("green") == "complete b");
      tree.apply(manager_of({"blue"}, {"green"}), world.config());
      THEN("calls that hold it still reach it") {
        CHECK(tree.pick("green") == "complete b");
      }
      AND_WHEN("it is dropped from the configuration") {
        tree.apply(manager_of({"blue"}), world.config());
        THEN("it is gone, connections and all") {
          CHECK(tree.policies("m/green").empty());
          CHECK(has(tree.take_log(), "subchannel b closed"));
          CHECK(tree.pick("green") == "drop INTERNAL: no such cluster: green");
        }
      }
    }
  }
}

SCENARIO("A31: a deleted cluster drops its calls", "[spec][lb][A31-17]") {
  XdsWorld world;
  TreeHarness tree;
  world.eds("green", {"east:b"});
  tree.up("b");
  tree.apply(manager_of({"green"}), world.config());
  WHEN("it retires and its endpoint fails") {
    tree.apply(manager_of({}, {"green"}), world.config());
    tree.down("b");
    THEN("calls are dropped with UNAVAILABLE, wait_for_ready or not") {
      CHECK(tree.pick("green").starts_with("drop UNAVAILABLE: cluster green is no longer routed"));
    }
  }
  WHEN("its resource is gone") {
    world.remove("green");
    tree.apply(manager_of({}, {"green"}), world.config());
    THEN("they are dropped too") {
      CHECK(tree.pick("green") == "drop UNAVAILABLE: cluster green was deleted");
    }
  }
}

SCENARIO("A generation is applied when the whole tree has processed it", "[spec][lb][applied]") {
  Orders orders;
  orders.apply();
  CHECK(has(orders.tree.take_log(), "applied 1"));
  orders.apply();
  CHECK(has(orders.tree.take_log(), "applied 2"));
}

}  // namespace a75_aggregate_test
