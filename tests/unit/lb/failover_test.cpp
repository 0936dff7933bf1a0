// SPDX-License-Identifier: Apache-2.0
//
// Failover of whole trees, in virtual time: when and how often calls move to another priority while
// its endpoints fail, change or come back, and when they return.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <catch2/catch.hpp>

#include "tests/support/tree_harness.hpp"
#include "tests/support/xds_world.hpp"

namespace failover_test {

using namespace signalbox;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

LbConfigPtr round_robin() {
  return default_lb_policy();
}

LbConfigPtr pick_first() {
  return make_lb_config(PickFirstConfig{});
}

/// "orders": an aggregate of three clusters, "first" (a), "second" (b) and "third" (c).
class Orders {
 public:
  explicit Orders(LbConfigPtr policy) : policy_(std::move(policy)) {
    set("first", "a");
    set("second", "b");
    set("third", "c");
    world_.aggregate("orders", {"first", "second", "third"});
  }

  /// Sets the endpoints of one cluster, from the next apply() on.
  void set(const std::string& cluster, const std::string& endpoints) {
    world_.eds(cluster, {"zone:" + endpoints}, policy_);
  }

  void apply() { tree.apply(manager_of({"orders"}), world_.config()); }

  /// The endpoints that calls reach, after one call has woken IDLE endpoints.
  Texts reached() {
    tree.pick("orders");
    return tree.reached("orders");
  }

  /// The number of moves to another cluster since the log was last taken.
  int moves() {
    return static_cast<int>(std::ranges::count_if(
        tree.take_log(), [](const auto& line) { return line.starts_with("failover orders "); }));
  }

  TreeHarness tree;

 private:
  XdsWorld world_;
  LbConfigPtr policy_;
};

}  // namespace

TEST_CASE("failover: a priority that is reset is left at once, and taken up again",
          "[lb][failover][A56][S12]") {
  Orders orders(GENERATE(round_robin(), pick_first()));
  for (const char* address : {"a", "b", "c"})
    orders.tree.up(address);
  orders.apply();
  REQUIRE(orders.reached() == Texts{"a"});
  orders.moves();

  orders.tree.down("a");
  CHECK(orders.reached() == Texts{"b"});
  CHECK(orders.moves() == 1);
  orders.tree.down("b");
  CHECK(orders.reached() == Texts{"c"});
  CHECK(orders.moves() == 1);
  orders.tree.down("c");
  CHECK(orders.reached().front().starts_with("fail UNAVAILABLE"));
  orders.moves();
  orders.tree.up("b");
  CHECK(orders.reached() == Texts{"b"});
  CHECK(orders.moves() <= 1);
  orders.tree.up("c");  // A lower priority that comes up changes nothing.
  CHECK(orders.reached() == Texts{"b"});
  CHECK(orders.moves() == 0);
  orders.tree.up("a");
  CHECK(orders.reached() == Texts{"a"});
  CHECK(orders.moves() == 1);
}

TEST_CASE("failover: a priority that never answers has ten seconds, each level its own",
          "[lb][failover][A56][A75-9][S12]") {
  Orders orders(GENERATE(round_robin(), pick_first()));
  orders.tree.up("c");
  orders.apply();
  orders.tree.advance(10s - 1ns);
  CHECK(orders.reached() == Texts{"queue"});
  orders.tree.advance(1ns);  // The window of the second cluster, ten seconds, begins.
  orders.tree.advance(10s - 1ns);
  CHECK(orders.reached() == Texts{"queue"});
  orders.moves();
  orders.tree.advance(1ns);
  CHECK(orders.reached() == Texts{"c"});
  CHECK(orders.moves() <= 1);

  orders.tree.up("a");
  CHECK(orders.reached() == Texts{"a"});
  CHECK(orders.moves() == 1);
}

TEST_CASE("failover: a priority that was served and goes silent has ten seconds",
          "[lb][failover][A56][S11][S12]") {
  Orders orders(GENERATE(round_robin(), pick_first()));
  orders.tree.up("a");
  orders.tree.up("b");
  orders.apply();
  REQUIRE(orders.reached() == Texts{"a"});
  orders.moves();
  orders.tree.silence("a");
  CHECK(orders.reached() == Texts{"queue"});
  orders.tree.advance(10s - 1ns);
  CHECK(orders.reached() == Texts{"queue"});
  orders.tree.advance(1ns);
  CHECK(orders.reached() == Texts{"b"});
  CHECK(orders.moves() == 1);
}

TEST_CASE("failover: a priority that flaps moves calls once each time, and none fails",
          "[lb][failover][A56][S12]") {
  Orders orders(GENERATE(round_robin(), pick_first()));
  for (const char* address : {"a", "b", "c"})
    orders.tree.up(address);
  orders.apply();
  REQUIRE(orders.reached() == Texts{"a"});
  orders.moves();
  for (int flap = 0; flap < 300; ++flap) {
    INFO("flap " << flap);
    orders.tree.down("a");
    REQUIRE(orders.reached() == Texts{"b"});
    REQUIRE(orders.moves() == 1);
    orders.tree.advance(1s);
    orders.tree.up("a");
    REQUIRE(orders.reached() == Texts{"a"});
    REQUIRE(orders.moves() == 1);
    orders.tree.advance(1s);
  }
  CHECK(orders.tree.connections("b") == 1);  // Kept for the next failover (A56).
  CHECK(orders.tree.connections("c") == 0);
}

TEST_CASE("failover: a priority that only pauses keeps its calls waiting, and moves none",
          "[lb][failover][A56][S12]") {
  Orders orders(round_robin());
  orders.tree.up("a");
  orders.tree.up("b");
  orders.apply();
  orders.moves();
  for (int flap = 0; flap < 300; ++flap) {
    orders.tree.silence("a");
    orders.tree.advance(9s);
    REQUIRE(orders.reached() == Texts{"queue"});
    orders.tree.up("a");
    REQUIRE(orders.reached() == Texts{"a"});
  }
  CHECK(orders.moves() == 0);
  CHECK(orders.tree.connections("b") == 0);
}

TEST_CASE("failover: a priority that is drained endpoint by endpoint serves to the last",
          "[lb][failover][A56][A75-6][S12]") {
  Orders orders(round_robin());
  Texts left{"a1", "a2", "a3", "a4"};
  for (const std::string& address : left)
    orders.tree.up(address);
  orders.tree.up("b");
  orders.set("first", "a1,a2,a3,a4");
  orders.apply();
  REQUIRE(orders.reached() == left);
  orders.moves();
  while (left.size() > 1) {
    left.pop_back();
    orders.set("first", absl::StrJoin(left, ","));
    orders.apply();
    CHECK(orders.reached() == left);
    CHECK(orders.moves() == 0);
  }
  orders.set("first", "");
  orders.apply();
  CHECK(orders.reached() == Texts{"b"});
  CHECK(orders.moves() == 1);
  orders.set("first", "a4");
  orders.apply();
  CHECK(orders.reached() == Texts{"a4"});
  CHECK(orders.moves() == 1);
}

TEST_CASE("failover: it comes after ten seconds however often each policy says CONNECTING",
          "[lb][failover][A56][B4]") {
  Orders orders(GENERATE(round_robin(), pick_first()));
  const bool was_ready = GENERATE(true, false);
  orders.tree.up("b");
  if (was_ready) orders.tree.up("a");
  orders.apply();
  orders.tree.silence("a");
  orders.tree.pick("orders");
  orders.moves();
  for (int time = 0; time < 100; ++time) {
    orders.tree.advance(99ms);
    orders.tree.repeat("m/orders/child/first");
    REQUIRE(orders.tree.pick("orders") == "queue");
  }
  orders.tree.advance(100ms - 1ns);
  CHECK(orders.tree.pick("orders") == "queue");
  orders.tree.advance(1ns);
  CHECK(orders.reached() == Texts{"b"});
  CHECK(orders.moves() == (was_ready ? 1 : 0));
}

TEST_CASE("failover: it comes after ten seconds however much the silent priority is changed",
          "[lb][failover][A56][B4]") {
  Orders orders(GENERATE(round_robin(), pick_first()));
  orders.tree.up("b");
  orders.apply();
  orders.moves();
  for (int change = 1; change <= 100; ++change) {
    orders.tree.advance(99ms);
    orders.set("first", absl::StrCat("a", change % 2 == 0 ? "" : ",more", ",a", change));
    orders.apply();
    // The endpoint that this update added refuses.
    if (change % 3 == 0) orders.tree.down(absl::StrCat("a", change));
    REQUIRE(orders.tree.pick("orders") == "queue");
  }
  orders.tree.advance(100ms - 1ns);
  CHECK(orders.tree.pick("orders") == "queue");
  orders.tree.advance(1ns);
  CHECK(orders.reached() == Texts{"b"});
  CHECK(orders.moves() <= 1);
}

}  // namespace failover_test
