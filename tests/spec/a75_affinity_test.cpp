// SPDX-License-Identifier: Apache-2.0
//
// gRFC A75, "Stateful Session Affinity Changes", in the document's order. The tests run whole
// policy trees and subchannel maps in virtual time, and make calls with cookies.
// tests/unit/lb/override_host_picker_test.cpp has a table of picks. session_keeper_test.cpp tests
// which hosts a subchannel map keeps for sessions.

#include <algorithm>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/session_tree.hpp"

namespace a75_affinity_test {

using namespace signalbox;
using namespace signalbox::test;
using namespace std::chrono_literals;

namespace {

using Texts = std::vector<std::string>;

/// A cluster "orders" of two priorities with an idle_timeout of a minute; all addresses are up.
struct Orders : SessionTree {
  Orders() {
    extras.idle_timeout = 60s;
    for (const char* address : {"a", "b", "c"})
      tree.up(address);
    apply({"east:a,b", "west:c"});
  }

  std::string visit(std::string cookie) { return tree.visit("orders", cookie); }
};

}  // namespace

SCENARIO("A75: an endpoint that moves to a lower priority keeps its sessions, and no other calls",
         "[spec][lb][A75-24][A75-34][A75-35][A75-50]") {
  Orders orders;
  REQUIRE(orders.visit("a") == "complete a (hit)");
  orders.apply({"east:b", "west:a,c"});
  THEN("they use the connection that was there") {
    CHECK(orders.visit("a") == "complete a (hit)");
    CHECK(orders.tree.reached("orders") == Texts{"b"});
    CHECK(orders.tree.connections("a") == 1);
  }
  WHEN("it moves back") {
    orders.apply({"east:a,b", "west:c"});
    THEN("so do they, and it has other calls again") {
      CHECK(orders.visit("a") == "complete a (hit)");
      CHECK(orders.tree.reached("orders") == Texts{"a", "b"});
      CHECK(orders.tree.connections("a") == 1);
    }
    THEN("a sweep leaves it alone: it is the child's") {
      orders.tree.advance(10min);
      CHECK(orders.tree.connected() == Texts{"a", "b"});
    }
  }
}

SCENARIO("A75: a session that began on a lower priority stays there", "[spec][lb][A75-53]") {
  Orders orders;
  orders.tree.down("a");
  orders.tree.down("b");
  REQUIRE(orders.visit("") == "complete c (new)");
  orders.tree.up("a");
  orders.tree.up("b");
  REQUIRE(orders.tree.reached("orders") == Texts{"a", "b"});
  CHECK(orders.visit("c") == "complete c (hit)");
  AND_THEN("also when the priority has ended, over the same connection") {
    for (int minute = 0; minute < 20; ++minute) {
      orders.tree.advance(59s);
      REQUIRE(orders.visit("c") == "complete c (hit)");
    }
    CHECK(orders.tree.connections("c") == 1);
    CHECK(orders.tree.reached("orders") == Texts{"a", "b"});
  }
}

SCENARIO("A75: only calls of sessions keep a connection", "[spec][lb][A75-26][A75-27][A75-28]") {
  Orders orders;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    orders.tree.pick("orders", seed);
  orders.apply({"east:b", "west:a,c"});
  CHECK(orders.tree.connected() == Texts{"b"});
}

SCENARIO("A75: what no session has used for the idle timeout is released",
         "[spec][lb][A75-22][A75-29][A75-30][A75-33]") {
  Orders orders;
  REQUIRE(orders.visit("a") == "complete a (hit)");
  orders.apply({"east:b", "west:a,c"});
  orders.tree.advance(30s);
  REQUIRE(orders.visit("a") == "complete a (hit)");
  orders.tree.advance(59s);
  CHECK(orders.tree.connected() == Texts{"a", "b"});
  orders.tree.advance(1s);
  CHECK(orders.tree.connected() == Texts{"b"});
  WHEN("the session comes back") {
    THEN("its host is created again, and its call waits") {
      CHECK(orders.visit("a") == "queue (created)");
      CHECK(orders.visit("a") == "complete a (hit)");
      CHECK(orders.tree.reached("orders") == Texts{"b"});
    }
  }
}

SCENARIO("A75: another idle timeout holds from its update on", "[spec][lb][A75-31][A75-32][D14]") {
  Orders orders;
  REQUIRE(orders.visit("a") == "complete a (hit)");
  orders.apply({"east:b", "west:a,c"});
  WHEN("updates come more often than it is long") {
    for (int i = 0; i < 12; ++i) {
      orders.tree.advance(5s);
      orders.apply({"east:b", i % 2 == 0 ? "west:a,c,d" : "west:a,c"});
    }
    THEN("the sweep comes all the same") {
      CHECK(orders.tree.connected() == Texts{"b"});
    }
  }
  WHEN("it is nothing") {
    orders.extras.idle_timeout = 0s;
    orders.apply({"east:b", "west:a,c"});
    THEN("the sweep is five seconds away") {
      orders.tree.advance(4999ms);
      CHECK(orders.tree.connected() == Texts{"a", "b"});
      orders.tree.advance(1ms);
      CHECK(orders.tree.connected() == Texts{"b"});
    }
  }
}

SCENARIO("A75: what is gone from EDS is not kept", "[spec][lb][A75-36]") {
  Orders orders;
  REQUIRE(orders.visit("a") == "complete a (hit)");
  orders.apply({"east:b", "west:c"});
  CHECK(orders.tree.connected() == Texts{"b"});
  CHECK(orders.visit("a") == "complete b (unknown host)");
}

SCENARIO("A75: a host that nobody holds is created for its session",
         "[spec][lb][A75-37][A75-38][A75-39]") {
  Orders orders;
  WHEN("several calls come at once") {
    CHECK(orders.visit("c") == "queue (created)");
    THEN("the picker that follows has it") {
      CHECK(orders.visit("c") == "complete c (hit)");
      CHECK(orders.tree.connections("c") == 1);
      AND_WHEN("the connection is lost") {
        orders.tree.down("c");
        THEN("calls go elsewhere, until it is back") {
          // The host is IDLE, and is asked to connect.
          CHECK(orders.visit("c") == "queue (queued)");
          CHECK(orders.visit("c").ends_with("(unhealthy)"));
          orders.tree.up("c");
          CHECK(orders.visit("c") == "queue (queued)");
          CHECK(orders.visit("c") == "complete c (hit)");
        }
      }
    }
  }
}

SCENARIO("A75: the tree is the same, whether or not sessions are guarded away",
         "[spec][lb][A75-51][A55-40]") {
  const auto policies_where = [](bool sessions) {
    SessionTree orders;
    orders.world.sessions(sessions);
    orders.apply({"east:a,b", "west:c"});
    return orders.tree.policies("m");
  };
  const Texts policies = policies_where(true);
  REQUIRE(std::ranges::any_of(
      policies, [](const std::string& policy) { return policy.ends_with("/child priority"); }));
  CHECK(policies_where(false) == policies);
}

SCENARIO("A75: when the cluster is not needed any more nothing is left", "[spec][lb][A75-40]") {
  Orders orders;
  REQUIRE(orders.visit("c") == "queue (created)");
  REQUIRE(orders.visit("c") == "complete c (hit)");
  orders.tree.apply(manager_of({}), orders.world.config());
  TreeHarness::Population left;
  left.policies = 1;
  CHECK(orders.tree.population() == left);
}

}  // namespace a75_affinity_test
