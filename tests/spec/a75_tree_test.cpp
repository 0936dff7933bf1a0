// SPDX-License-Identifier: Apache-2.0
//
// gRFC A75, "Changes to the LB policy tree". The tests give the control plane's answers, and check
// the drawn policy tree and the behaviour that follows from its shape.

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/dependency_world.hpp"
#include "tests/support/printed.hpp"
#include "tests/support/tree_drawing.hpp"
#include "tests/support/tree_harness.hpp"
#include "tests/support/xds_world.hpp"

namespace signalbox::xds {
namespace {

using namespace tests;
using namespace std::chrono_literals;
using Names = std::vector<std::string>;
using test::default_lb_policy;
using test::draw_tree;
using test::manager_of;
using test::TreeHarness;

constexpr auto kConnecting = ConnectivityState::kConnecting;
constexpr auto kFailure = ConnectivityState::kTransientFailure;

std::shared_ptr<const Cluster> with_policy(const std::shared_ptr<const Cluster>& cluster,
                                           LbConfigPtr policy) {
  auto changed = std::make_shared<Cluster>(*cluster);
  changed->lb_policy = std::move(policy);
  return changed;
}

// A control plane, and the policy tree of cluster "orders".
struct Orders {
  DependencyWorld world;
  TreeHarness tree;

  Orders() { world.route_to({"orders"}); }

  /// Sets an EDS cluster with one locality per priority. The region is "r0" for priority 0.
  void eds_leaf(const std::string& name,
                const std::vector<Names>& priorities,
                const LbConfigPtr& policy = default_lb_policy()) {
    std::vector<std::vector<LocalityPtr>> made;
    for (const Names& addresses : priorities)
      made.push_back({locality("r" + std::to_string(made.size()), addresses)});
    world.set(cds(name), with_policy(eds_cluster(name, name + "-eds"), policy));
    world.set(eds(name + "-eds"), endpoints(made));
  }

  void dns_leaf(const std::string& name, const Names& addresses) {
    world.set(cds(name), dns_cluster(name, name + ":80"));
    world.resolve(name + ":80", addresses);
  }

  void aggregate_of(const std::string& name, const Names& clusters, LbConfigPtr policy = nullptr) {
    world.set(cds(name), with_policy(aggregate(name, clusters), std::move(policy)));
  }

  void apply() {
    REQUIRE(world.config != nullptr);
    tree.apply(manager_of({"orders"}), world.config);
  }

  std::string drawing() const { return "\n" + draw_tree(tree.policies("m")); }

  Names reached() { return tree.reached("orders"); }
};

}  // namespace

// Checks the position of each policy. Each policy's own tests check its behaviour.
SCENARIO("A75: in the tree of a plain cluster each policy stands once, above all priorities",
         "[spec][lb][A75-2][A75-3][A75-4][A75-5][A31-11][A37-16][A37-19]") {
  Orders orders;
  orders.eds_leaf("orders", {{"a"}, {"b"}});
  orders.tree.down("a");
  orders.tree.up("b");
  orders.apply();
  THEN("what acts once per cluster stands above its priorities, each of which has its policy") {
    CHECK(orders.drawing() == R"(
cluster_manager
└ orders: cds
  └ outlier_detection
    └ cluster_impl
      └ override_host
        └ priority
          ├ child0: wrr_locality
          │ └ weighted_target
          │   └ r0: round_robin
          └ child1: wrr_locality
            └ weighted_target
              └ r1: round_robin
)");
    CHECK(orders.reached() == Names{"b"});
  }
}

SCENARIO("A75: the tree of an aggregate cluster", "[spec][lb][A75-1][A75-2][A75-5][A75-6][A75-9]") {
  Orders orders;
  orders.aggregate_of("orders", {"first", "inner"});
  orders.aggregate_of("inner", {"second", "third"});
  orders.eds_leaf("first", {{"a"}});
  orders.eds_leaf("second", {{"b"}}, make_lb_config(PickFirstConfig{}));
  orders.dns_leaf("third", {"c"});
  orders.tree.down("a");
  orders.tree.down("b");
  orders.tree.up("c");
  orders.apply();
  THEN("one priority policy has all leaves, each a whole tree with the leaf's own policy") {
    CHECK(orders.drawing() == R"(
cluster_manager
└ orders: cds
  └ priority
    ├ first: cds
    │ └ outlier_detection
    │   └ cluster_impl
    │     └ override_host
    │       └ priority
    │         └ child0: wrr_locality
    │           └ weighted_target
    │             └ r0: round_robin
    ├ second: cds
    │ └ outlier_detection
    │   └ cluster_impl
    │     └ override_host
    │       └ priority
    │         └ child0: pick_first
    └ third: cds
      └ outlier_detection
        └ cluster_impl
          └ override_host
            └ priority
              └ child0: round_robin
)");
    CHECK(orders.reached() == Names{"c"});
  }
}

SCENARIO("A75: an aggregate's own policy takes the leaves' place only where the parser kept it",
         "[spec][lb][A75-7][A75-8]") {
  Orders orders;
  orders.aggregate_of("orders", {"first"}, make_lb_config(PickFirstConfig{}));
  orders.eds_leaf("first", {{"a"}});
  orders.apply();
  const char* const kept = R"(
cluster_manager
└ orders: cds
  └ priority
    └ first: cds
      └ outlier_detection
        └ cluster_impl
          └ override_host
            └ priority
              └ child0: pick_first
)";
  CHECK(orders.drawing() == kept);
  WHEN("it is not kept any more") {
    orders.tree.up("a");
    orders.aggregate_of("orders", {"first"});
    orders.apply();
    THEN("the leaf's own is back") {
      CHECK(orders.drawing().find("pick_first") == std::string::npos);
      CHECK(orders.drawing().find("round_robin") != std::string::npos);
      CHECK(orders.reached() == Names{"a"});
    }
  }
}

SCENARIO("A75: every leaf of nested aggregates has its own full time",
         "[spec][lb][A75-9][A75-10]") {
  GIVEN("an aggregate of two aggregates, whose leaves never answer") {
    Orders orders;
    orders.aggregate_of("orders", {"inner", "outer"});
    orders.aggregate_of("inner", {"one", "two"});
    orders.aggregate_of("outer", {"three", "four"});
    for (const char* leaf : {"one", "two", "three", "four"})
      orders.eds_leaf(leaf, {{leaf}});
    orders.apply();
    THEN("a leaf is given up ten seconds after its own start, wherever it is nested") {
      const auto started = [&](const char* leaf) {
        return !orders.tree.policies(std::string("m/orders/child/") + leaf).empty();
      };
      for (const char* next : {"two", "three", "four"}) {
        orders.tree.advance(10s - 1ns);
        CHECK_FALSE(started(next));
        orders.tree.advance(1ns);
        CHECK(started(next));
      }
      CHECK(orders.tree.state("m/orders") == kConnecting);
    }
    AND_WHEN("the last leaf of the first inner aggregate answers late, but in its own time") {
      orders.tree.advance(19s);
      orders.tree.up("two");
      THEN("it serves, and the second inner aggregate was never begun") {
        CHECK(orders.reached() == Names{"two"});
        CHECK(orders.tree.policies("m/orders/child/three").empty());
      }
    }
  }
}

SCENARIO("A75: an aggregate without a leaf that could be used", "[spec][lb][A75-12]") {
  Orders orders;
  GIVEN("leaves that do not exist") {
    orders.aggregate_of("orders", {"one", "two"});
    orders.world.gone(cds("one"));
    orders.world.gone(cds("two"));
    orders.apply();
    THEN("calls fail UNAVAILABLE") {
      CHECK(orders.tree.state("m/orders") == kFailure);
      const Names answers = orders.reached();
      REQUIRE(answers.size() == 1);
      CHECK(answers.front().starts_with("fail UNAVAILABLE"));
    }
    AND_WHEN("one appears") {
      orders.tree.up("a");
      orders.eds_leaf("two", {{"a"}});
      orders.apply();
      THEN("it serves") {
        CHECK(orders.reached() == Names{"a"});
      }
    }
  }
  GIVEN("an empty list, as the policy is told it") {
    test::XdsWorld world;
    world.aggregate("orders", {});
    orders.tree.apply(manager_of({"orders"}), world.config());
    CHECK(orders.reached() == Names{"fail UNAVAILABLE: priority policy has empty priority list"});
  }
}

SCENARIO("A75: a leaf that moves between aggregates' places keeps its child and its connection",
         "[spec][lb][A75-13][A37-49]") {
  Orders orders;
  for (const char* address : {"a", "b", "c"})
    orders.tree.up(address);
  orders.aggregate_of("orders", {"one", "inner"});
  orders.aggregate_of("inner", {"two", "three"});
  orders.eds_leaf("one", {{"a"}});
  orders.eds_leaf("two", {{"b"}});
  orders.eds_leaf("three", {{"c"}});
  orders.tree.down("a");
  orders.apply();
  REQUIRE(orders.reached() == Names{"b"});
  orders.tree.take_log();
  const auto nothing_restarted = [&] {
    for (const std::string& line : orders.tree.take_log()) {
      INFO(line);
      CHECK_FALSE(line.starts_with("start "));
      CHECK_FALSE(line == "subchannel b closed");
    }
    CHECK(orders.reached() == Names{"b"});
    CHECK(orders.tree.connections("b") == 1);
  };
  WHEN("it moves to the top") {
    orders.aggregate_of("orders", {"two", "one"});
    orders.apply();
    THEN("nothing is started or connected anew") {
      nothing_restarted();
    }
  }
  WHEN("what is around it is flattened otherwise") {
    orders.aggregate_of("orders", {"one", "two"});
    orders.apply();
    THEN("nothing is started or connected anew") {
      nothing_restarted();
    }
  }
  WHEN("the leaf before it goes") {
    orders.aggregate_of("orders", {"inner"});
    orders.apply();
    THEN("nothing is started or connected anew") {
      nothing_restarted();
    }
  }
}

SCENARIO("A37: of a LOGICAL_DNS leaf's addresses one is connected at a time",
         "[spec][lb][A37-16][A37-20]") {
  Orders orders;
  orders.aggregate_of("orders", {"legacy"});
  orders.dns_leaf("legacy", {"a", "b", "c"});
  for (const char* address : {"a", "b", "c"})
    orders.tree.up(address);
  orders.apply();
  CHECK(orders.reached() == Names{"a"});
  CHECK(orders.tree.connected() == Names{"a"});
  WHEN("it is lost") {
    orders.tree.down("a");
    THEN("the next one takes its place, alone") {
      CHECK(orders.reached() == Names{"b"});
      CHECK(orders.tree.connected() == Names{"b"});
    }
  }
  WHEN("the name resolves to something else, and the address in use stays") {
    orders.world.resolve("legacy:80", {"d", "a"});
    orders.apply();
    THEN("its connection stays") {
      CHECK(orders.reached() == Names{"a"});
      CHECK(orders.tree.connections("a") == 1);
      CHECK(orders.tree.connected() == Names{"a"});
    }
  }
}

SCENARIO("A37: once failed over to a name, EDS leaves that keep trying cause no look-ups",
         "[spec][lb][A37-33][A37-34]") {
  Orders orders;
  orders.aggregate_of("orders", {"one", "two", "legacy", "older"});
  orders.eds_leaf("one", {{"a"}, {"b"}});
  orders.eds_leaf("two", {{"c", "d"}}, make_lb_config(PickFirstConfig{}));
  orders.dns_leaf("legacy", {"e"});
  orders.dns_leaf("older", {"f"});
  for (const char* address : {"a", "b", "c", "d"})
    orders.tree.down(address);
  orders.tree.up("e");
  orders.apply();
  REQUIRE(orders.reached() == Names{"e"});
  GIVEN("an hour in which the EDS leaves' hosts come and go") {
    for (int minute = 0; minute < 60; ++minute) {
      for (const char* address : {"a", "b", "c", "d"}) {
        // up() also ends the host's back-off. The host is down again before the next pick, so it
        // serves no call.
        orders.tree.up(address);
        orders.tree.down(address);
      }
      orders.tree.advance(1min);
      orders.tree.pick("orders");
    }
    THEN("no name was resolved again, and the name serves") {
      CHECK(orders.tree.reresolutions() == 0);
      CHECK(orders.reached() == Names{"e"});
    }
    AND_WHEN("the name's own address is lost") {
      orders.tree.down("e");
      THEN("it is resolved again") {
        CHECK(orders.tree.reresolutions() > 0);
      }
    }
  }
  GIVEN("endpoints that are dealt out anew meanwhile") {
    for (int update = 0; update < 20; ++update) {
      orders.eds_leaf(
          "one",
          update % 2 == 0 ? std::vector<Names>{{"a", "b"}} : std::vector<Names>{{"b"}, {"a"}});
      orders.apply();
    }
    THEN("no name was resolved again") {
      CHECK(orders.tree.reresolutions() == 0);
    }
  }
}

}  // namespace signalbox::xds
