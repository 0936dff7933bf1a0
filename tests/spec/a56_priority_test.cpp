// SPDX-License-Identifier: Apache-2.0
// gRFC A56, in the order of its headings.
#include <catch2/catch.hpp>

#include "lb/tree/priority.hpp"
#include "tests/support/child_policies.hpp"
#include "tests/support/policy_harness.hpp"
#include "tests/support/printed.hpp"
#include "tests/support/tree_harness.hpp"
#include "tests/support/xds_world.hpp"

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

LbConfigPtr priorities(const std::vector<std::string>& names,
                       const LbConfigPtr& child = make_lb_config(CdsConfig{})) {
  PriorityConfig config;
  config.cluster = ClusterName("c");
  for (const std::string& name : names) {
    config.priorities.emplace_back(name);
    config.children[ChildName(name)] = {child, std::nullopt, false};
  }
  return make_lb_config(std::move(config));
}

bool has(const Texts& texts, const std::string& text) {
  return std::ranges::count(texts, text) != 0;
}

}  // namespace

SCENARIO("A56: children are started lazily, in order", "[spec][lb][priority][A56]") {
  PolicyHarness policy{make_priority()};
  GIVEN("three priorities") {
    const Texts begun = policy.update(priorities({"p0", "p1", "p2"}));
    THEN("only the first is started, and it has a failover window") {
      CHECK(begun ==
            Texts{"start p0", "timer failover/p0 10s", "active c -1", "publish CONNECTING"});
    }
    WHEN("the first fails") {
      const Texts done = policy.child("p0", kFailure);
      THEN("the second is tried, and no other") {
        CHECK(has(done, "start p1"));
        CHECK_FALSE(has(done, "start p2"));
        CHECK(policy.pick() == "queue");
      }
    }
    WHEN("the first is READY") {
      policy.child("p0", kReady);
      THEN("the second is never started") {
        CHECK(policy.count<StartChild>() == 1);
        CHECK(policy.pick() == "fail UNAVAILABLE: p0 READY");
      }
    }
    WHEN("the first is IDLE") {
      policy.child("p0", kIdle);
      THEN("it is used: it can take calls") {
        CHECK(policy.published()->state == kIdle);
        CHECK(policy.count<StartChild>() == 1);
      }
      AND_WHEN("somebody wants to leave IDLE") {
        THEN("the one in use is asked") {
          CHECK(policy.step(IdleExitRequested{}) == Texts{"exit-idle p0"});
        }
      }
    }
  }
}

SCENARIO("A56: lower priorities are kept for a while, and reused", "[spec][lb][priority][A56]") {
  PolicyHarness policy{make_priority()};
  GIVEN("a second priority in use after the first failed") {
    policy.update(priorities({"p0", "p1"}));
    policy.child("p0", kFailure);
    policy.child("p1", kReady);
    WHEN("the first comes back") {
      const Texts done = policy.child("p0", kReady);
      THEN("it is used at once, and the second gets fifteen minutes") {
        CHECK(has(done, "timer deactivation/p1 900s"));
        CHECK(policy.pick() == "fail UNAVAILABLE: p0 READY");
      }
      AND_WHEN("the time is over") {
        CHECK(policy.advance(15min - 1ns).empty());
        THEN("the second is stopped") {
          CHECK(policy.advance(1ns) == Texts{"stop p1"});
        }
      }
      AND_WHEN("the first fails again before") {
        policy.advance(14min);
        const Texts again = policy.child("p0", kFailure);
        THEN("the second is reactivated and serves at once, from its last picker") {
          CHECK(has(again, "cancel deactivation/p1"));
          CHECK(policy.pick() == "fail UNAVAILABLE: p1 READY");
          CHECK(policy.count<StartChild>() == 2);
          CHECK(policy.advance(20min).empty());
        }
      }
      AND_WHEN("the first is READY once more") {
        policy.advance(5min);
        THEN("the fifteen minutes go on") {
          CHECK_FALSE(has(policy.child("p0", kReady), "timer deactivation/p1 900s"));
          CHECK(policy.advance(10min) == Texts{"stop p1"});
        }
      }
      AND_WHEN("the deactivated one changes its state") {
        const Texts done_below = policy.child("p1", kFailure);
        THEN("nothing is published") {
          CHECK_FALSE(has(done_below, "publish READY"));
        }
        THEN("it is remembered") {
          policy.child("p0", kFailure);
          CHECK(policy.pick() ==
                "fail UNAVAILABLE: all 2 priorities failed; priority 1, cluster p1: "
                "p1 TRANSIENT_FAILURE");
        }
      }
    }
  }
}

SCENARIO("A56: the failover window", "[spec][lb][priority][A56]") {
  PolicyHarness policy{make_priority()};
  policy.update(priorities({"p0", "p1"}));

  GIVEN("a first priority that never answers") {
    policy.child("p0", kConnecting);
    WHEN("ten seconds have passed") {
      CHECK(policy.advance(10s - 1ns).empty());
      const Texts done = policy.advance(1ns);
      THEN("the second is tried as well") {
        CHECK(has(done, "start p1"));
      }
    }
  }
  GIVEN("a first priority that keeps saying CONNECTING") {
    THEN("failover is not delayed by it") {
      for (int i = 0; i < 99; ++i) {
        policy.child("p0", kConnecting);
        CHECK_FALSE(has(policy.advance(100ms), "start p1"));
      }
      policy.child("p0", kConnecting);
      CHECK(has(policy.advance(100ms), "start p1"));
    }
  }
  GIVEN("a first priority that was READY") {
    policy.child("p0", kReady);
    WHEN("it connects again") {
      THEN("it has a window of its own") {
        CHECK(has(policy.child("p0", kConnecting), "timer failover/p0 10s"));
        CHECK(policy.published()->state == kConnecting);
        CHECK(has(policy.advance(10s), "start p1"));
      }
    }
    WHEN("it goes IDLE and then connects") {
      policy.child("p0", kIdle);
      THEN("it has a window too") {
        CHECK(has(policy.child("p0", kConnecting), "timer failover/p0 10s"));
      }
    }
    WHEN("it fails and then connects") {
      policy.child("p0", kFailure);
      THEN("it has none: TRANSIENT_FAILURE is more recent than READY") {
        CHECK_FALSE(has(policy.child("p0", kConnecting), "timer failover/p0 10s"));
      }
    }
    WHEN("it answers within the window") {
      policy.child("p0", kConnecting);
      const auto state = GENERATE(kReady, kIdle, kFailure);
      THEN("the window is closed") {
        CHECK(has(policy.child("p0", state), "cancel failover/p0"));
      }
    }
  }
}

SCENARIO("A56: the window of a deactivated child keeps running", "[spec][lb][priority][A56][B3]") {
  GIVEN("a second priority that was READY, is deactivated, and begins to connect") {
    PolicyHarness policy{make_priority()};
    policy.update(priorities({"p0", "p1"}));
    policy.child("p0", kFailure);
    policy.child("p1", kReady);
    policy.child("p0", kReady);
    policy.child("p1", kConnecting);
    WHEN("the first fails within ten seconds") {
      policy.advance(4s);
      policy.child("p0", kFailure);
      THEN("the second is waited for during the rest of its window") {
        CHECK(policy.published()->state == kConnecting);
        CHECK(policy.advance(6s - 1ns).empty());
      }
    }
  }
}

SCENARIO("A56: deactivation does not end a window", "[spec][lb][priority][A56][B3]") {
  GIVEN("a second priority that is trying to connect when the first comes back") {
    PolicyHarness policy{make_priority()};
    policy.update(priorities({"p0", "p1", "p2"}));
    policy.child("p0", kFailure);
    policy.advance(1s);
    policy.child("p0", kReady);
    WHEN("the first fails again") {
      policy.advance(3s);
      policy.child("p0", kFailure);
      THEN("the second is waited for until ten seconds after its start") {
        CHECK(policy.count<StartChild>() == 2);
        CHECK(policy.advance(6s - 1ns).empty());
        CHECK(has(policy.advance(1ns), "start p2"));
      }
    }
  }
}

SCENARIO("A56: IDLE to CONNECTING restarts the window for every kind of child",
         "[spec][lb][priority][A56][B3]") {
  PolicyHarness policy{make_priority()};
  policy.update(priorities({"p0", "p1"}));
  GIVEN("a child that reports IDLE first, as ring_hash does") {
    policy.child("p0", kIdle);
    WHEN("it connects and never answers") {
      policy.child("p0", kConnecting);
      THEN("failover comes ten seconds later") {
        CHECK_FALSE(has(policy.advance(10s - 1ns), "start p1"));
        CHECK(has(policy.advance(1ns), "start p1"));
      }
    }
  }
}

SCENARIO("A56: outliving the window is no failure", "[spec][lb][priority][A56][B5]") {
  PolicyHarness policy{make_priority()};
  policy.update(priorities({"p0", "p1"}));
  GIVEN("two priorities that never answer") {
    policy.child("p0", kConnecting);
    policy.advance(10s);
    policy.child("p1", kConnecting);
    policy.advance(10s);
    THEN("the whole is CONNECTING all the time, and calls wait") {
      for (const LbEffect& effect : policy.effects()) {
        if (const auto* publish = std::get_if<Publish>(&effect)) {
          CHECK(publish->state == kConnecting);
        }
      }
      CHECK(policy.published()->state == kConnecting);
    }
    WHEN("the first answers after all") {
      policy.child("p0", kReady);
      THEN("it carries the calls") {
        CHECK(policy.pick() == "fail UNAVAILABLE: p0 READY");
      }
    }
  }
}

SCENARIO("A56: failover comes after ten seconds however often CONNECTING is said",
         "[spec][lb][priority][A56][B4]") {
  PolicyHarness policy{make_priority()};
  policy.update(priorities({"p0", "p1"}));
  policy.child("p0", kReady);
  policy.child("p0", kConnecting);
  GIVEN("a hundred duplicates, the last just before the end of the window") {
    for (int i = 0; i < 100; ++i) {
      policy.advance(99ms);
      policy.child("p0", kConnecting);
    }
    THEN("failover comes at ten seconds") {
      CHECK(policy.count<StartChild>() == 1);
      CHECK(has(policy.advance(100ms), "start p1"));
    }
  }
}

SCENARIO("A56: configurations", "[spec][lb][priority][A56][A37-49]") {
  PolicyHarness policy{make_priority()};
  policy.update(priorities({"p0", "p1"}));
  policy.child("p0", kFailure);
  policy.child("p1", kReady);

  WHEN("the order changes") {
    CHECK(policy.update(priorities({"p1", "p0"})) ==
          Texts{"update p0", "update p1", "timer answers 10s"});
    policy.applied("p0");
    const Texts done = policy.applied("p1");
    THEN("the children are updated, never recreated, and the new order holds") {
      CHECK(done == Texts{"cancel answers",
                          "timer deactivation/p0 900s",
                          "active c 0",
                          "publish READY",
                          "applied 2"});
      CHECK(policy.pick() == "fail UNAVAILABLE: p1 READY");
    }
  }
  WHEN("a child is no longer named") {
    policy.update(priorities({"p1"}));
    THEN("it is stopped with the choice that does without it (A115)") {
      CHECK(has(policy.applied("p1"), "stop p0"));
    }
  }
  WHEN("the child in use is no longer named") {
    CHECK(policy.update(priorities({"p0"})) == Texts{"update p0", "timer answers 10s"});
    const Texts done = policy.applied("p0");
    THEN("it is stopped, with its picker out of use in the same step") {
      CHECK(done == Texts{"cancel answers",
                          "active c -1",
                          "publish TRANSIENT_FAILURE",
                          "stop p1",
                          "applied 2"});
      CHECK(policy.pick() == "fail UNAVAILABLE: p0 TRANSIENT_FAILURE");
    }
  }
  WHEN("several children are updated") {
    const Texts told = policy.update(priorities({"p2", "p1", "p0"}));
    policy.applied("p1");
    const Texts done = policy.applied("p0");
    THEN("all are updated, and have answered, before one choice is made") {
      CHECK(told == Texts{"update p0", "update p1", "timer answers 10s"});
      CHECK(done == Texts{"cancel answers",
                          "start p2",
                          "timer failover/p2 10s",
                          "active c -1",
                          "publish CONNECTING",
                          "applied 1"});
    }
  }
  WHEN("the list is empty") {
    policy.update(priorities({}));
    THEN("it says so, and stops everything") {
      CHECK(policy.published()->state == kFailure);
      CHECK(policy.pick() == "fail UNAVAILABLE: priority policy has empty priority list");
      CHECK(policy.count<StopChild>() == 2);
    }
  }
}

SCENARIO("A56: no choice while a configuration is half applied", "[spec][lb][priority][A56][B2]") {
  PolicyHarness policy{make_priority()};
  policy.update(priorities({"p0", "p1", "p2"}));
  policy.applied("p0");
  policy.child("p0", kFailure);
  policy.applied("p1");
  policy.child("p1", kReady);
  GIVEN("a configuration that does without the child in use") {
    REQUIRE(policy.update(priorities({"p0", "p2"})) == Texts{"update p0", "timer answers 10s"});
    WHEN("the others report") {
      THEN("nothing is chosen, and nothing published") {
        CHECK(policy.child("p0", kConnecting).empty());
        CHECK(policy.child("p0", kFailure).empty());
        CHECK(policy.pick() == "fail UNAVAILABLE: p1 READY");
      }
    }
    WHEN("the child in use has news and can take calls") {
      THEN("it is heard") {
        CHECK(policy.child("p1", kIdle) == Texts{"publish IDLE"});
        CHECK(policy.child("p1", kReady) == Texts{"publish READY"});
      }
    }
    WHEN("the child in use cannot take calls any more") {
      THEN("what was published stays until the choice") {
        CHECK_FALSE(has(policy.child("p1", kConnecting), "publish CONNECTING"));
        CHECK_FALSE(has(policy.child("p1", kFailure), "publish TRANSIENT_FAILURE"));
      }
    }
    WHEN("another comes meanwhile, and another") {
      CHECK(policy.update(priorities({})).empty());
      CHECK(policy.update(priorities({"p0", "p1"})).empty());
      THEN("they wait for their turn, and the newest stands for both") {
        const Texts done = policy.applied("p0", 2);
        CHECK(done == Texts{"cancel answers",
                            "start p2",
                            "timer failover/p2 10s",
                            "active c -1",
                            "publish CONNECTING",
                            "stop p1",
                            "update p0",
                            "timer answers 10s",
                            "applied 2"});
        CHECK(policy.applied("p0", 4) == Texts{"cancel answers",
                                               "start p1",
                                               "timer failover/p1 10s",
                                               "publish CONNECTING",
                                               "cancel failover/p2",
                                               "stop p2",
                                               "applied 3"});
      }
    }
    WHEN("the child that owes an answer dies") {
      const Texts done = policy.step(ChildDied{ChildName("p0")});
      THEN("nobody waits for it") {
        CHECK(has(done, "start p2"));
        CHECK(has(done, "stop p1"));
      }
    }
    WHEN("the child that owes an answer is silent for a window") {
      CHECK(policy.advance(10s - 1ns).empty());
      const Texts done = policy.advance(1ns);
      THEN("nobody waits for it") {
        CHECK(has(done, "start p2"));
        CHECK(has(done, "stop p1"));
      }
    }
  }
  GIVEN("a window that ends while a configuration is half applied") {
    policy.child("p1", kConnecting);
    policy.advance(1s);
    policy.update(priorities({"p0", "p1", "p2"}));
    CHECK(policy.advance(9s).empty());
    WHEN("all have answered") {
      policy.applied("p0");
      THEN("the choice knows it") {
        CHECK(has(policy.applied("p1"), "start p2"));
      }
    }
  }
}

SCENARIO("A115: a removed priority is kept only where that is wanted",
         "[spec][lb][priority][A115]") {
  PolicyOptions options;
  options.keep_removed_priorities = true;
  PolicyHarness policy{make_priority(options)};
  policy.update(priorities({"p0", "p1"}));
  policy.applied("p0");
  policy.child("p0", kFailure);
  policy.applied("p1");
  policy.child("p1", kReady);
  GIVEN("a child that the configuration does not name any more") {
    policy.update(priorities({"p0"}));
    CHECK(policy.applied("p0") == Texts{"cancel answers",
                                        "active c -1",
                                        "publish TRANSIENT_FAILURE",
                                        "timer deactivation/p1 900s",
                                        "applied 2"});
    WHEN("fifteen minutes have passed") {
      CHECK(policy.advance(15min - 1ns).empty());
      THEN("it is stopped") {
        CHECK(policy.advance(1ns) == Texts{"stop p1"});
      }
    }
    WHEN("it reports") {
      THEN("that is noted, and no more") {
        CHECK(policy.child("p1", kIdle).empty());
      }
    }
    WHEN("another configuration does without it") {
      policy.advance(5min);
      policy.update(priorities({"p0"}));
      THEN("its fifteen minutes go on") {
        CHECK(policy.applied("p0") == Texts{"cancel answers", "applied 3"});
        CHECK(policy.advance(10min) == Texts{"stop p1"});
      }
    }
    WHEN("it is named again") {
      policy.advance(5min);
      CHECK(policy.update(priorities({"p0", "p1"})) ==
            Texts{"update p0", "update p1", "timer answers 10s"});
      policy.applied("p0");
      THEN("it is told, and used again if it is needed") {
        CHECK(has(policy.applied("p1"), "cancel deactivation/p1"));
        CHECK(policy.pick() == "fail UNAVAILABLE: p1 READY");
        CHECK(policy.count<StartChild>() == 2);
      }
    }
    WHEN("it is named again and the first is READY") {
      policy.update(priorities({"p0", "p1"}));
      policy.child("p0", kReady);
      policy.applied("p0");
      policy.applied("p1");
      THEN("it is told, and stays deactivated") {
        CHECK(policy.advance(15min) == Texts{"stop p1"});
      }
    }
  }
}

SCENARIO("A56: endpoints that move up into a failed priority serve without a break",
         "[spec][lb][priority][A56][B2]") {
  const ChildPolicy policy = GENERATE(from_range(child_policies()));
  INFO(policy.name);
  GIVEN("a first priority that failed, and a second that serves") {
    XdsWorld world;
    TreeHarness tree;
    tree.down("a");
    tree.up("b");
    world.eds("c", {"east:a", "west:b"}, policy.config);
    tree.apply(manager_of({"c"}), world.config());
    // With some policies a pick first asks for a connection, and is queued. So these policies get
    // more picks until none is queued.
    const auto reached = [&] {
      Texts answers = tree.reached("c");
      for (int again = 0; policy.connects_when_asked && again < 4 && has(answers, "queue"); ++again)
        answers = tree.reached("c");
      return answers;
    };
    REQUIRE(reached() == Texts{"b"});
    tree.take_log();
    const auto serves_throughout = [&](bool same_connection = true) {
      const Texts log = tree.take_log();
      CHECK(std::ranges::none_of(log, [&](const std::string& line) {
        if (policy.connects_when_asked) return line.starts_with("publish TRANSIENT_FAILURE");
        return line.starts_with("publish ") && !line.starts_with("publish READY");
      }));
      if (same_connection) CHECK_FALSE(has(log, "subchannel b closed"));
      CHECK(has(log, "applied 2"));
      for (const std::string& answer : tree.reached("c"))
        CHECK((answer == "b" || (policy.connects_when_asked && answer == "queue")));
      CHECK(reached() == Texts{"b"});
      CHECK(tree.connections("b") == (same_connection ? 1 : 2));
    };
    WHEN("both become one locality of one priority") {
      world.eds("c", {"east:a,b"}, policy.config);
      tree.apply(manager_of({"c"}), world.config());
      THEN("calls go on, over the same connection") {
        serves_throughout();
      }
    }
    WHEN("both become localities of one priority") {
      world.eds("c", {"east:a west:b"}, policy.config);
      tree.apply(manager_of({"c"}), world.config());
      THEN("calls go on, over the same connection") {
        serves_throughout();
      }
    }
    WHEN("the one that serves becomes the first priority's, and another the second's") {
      world.eds("c", {"east:b", "west:d"}, policy.config);
      tree.apply(manager_of({"c"}), world.config());
      THEN("calls go on, and only who waits to be asked connects anew") {
        serves_throughout(!policy.connects_when_asked);
      }
    }
  }
}

SCENARIO("A56: each child is given its own priority of the endpoints",
         "[spec][lb][priority][A56]") {
  XdsWorld world;
  world.eds("c", {"east:a", "west:b"});
  const auto xds = world.config();
  const auto& cluster = **xds->clusters.at(ClusterName("c"));
  const auto endpoints = std::get<LeafEndpoints>(cluster.children).endpoints;

  PriorityConfig config;
  config.priorities = {ChildName("p0"), ChildName("p1")};
  config.children[ChildName("p0")] = {make_lb_config(RoundRobinConfig{}), 0, true};
  config.children[ChildName("p1")] = {make_lb_config(RoundRobinConfig{}), 1, true};

  PolicyHarness policy{make_priority()};
  policy.update(make_lb_config(config), xds, endpoints);
  policy.child("p0", kFailure);

  std::vector<std::string> given;
  for (const LbEffect& effect : policy.effects()) {
    if (const auto* start = std::get_if<StartChild>(&effect)) {
      REQUIRE(start->update.endpoints->priorities.size() == 1);
      for (const LocalityPtr& locality : start->update.endpoints->priorities[0].localities)
        given.push_back(start->child.str() + " " + locality->name.zone);
    }
  }
  CHECK(given == std::vector<std::string>{"p0 east", "p1 west"});

  WHEN("only the second priority changes") {
    world.eds("c", {"east:a", "west:b,c"});
    const auto next = world.config();
    const auto& changed = **next->clusters.at(ClusterName("c"));
    const Texts done = policy.update(
        make_lb_config(config), next, std::get<LeafEndpoints>(changed.children).endpoints);
    THEN("the first hears nothing") {
      CHECK(has(done, "update p1"));
      CHECK_FALSE(has(done, "update p0"));
    }
  }
}

SCENARIO("priority: tells of failovers", "[spec][lb][priority][observation]") {
  PolicyHarness policy{make_priority()};
  policy.update(priorities({"p0", "p1"}));
  policy.child("p0", kReady);

  WHEN("the first fails, and two seconds later the second is READY") {
    const Texts lost = policy.child("p0", kFailure);
    CHECK(has(lost, "active c -1"));
    policy.advance(1s);
    policy.child("p0", kFailure);
    policy.advance(1s);
    const Texts done = policy.child("p1", kReady);
    THEN("that was a failover downwards of two seconds") {
      CHECK(has(done, "active c 1"));
      CHECK(has(done, "failover c down, failed"));
      CHECK(has(done, "failover-ended c 2s"));
    }
    AND_WHEN("the first comes back") {
      const Texts back = policy.child("p0", kReady);
      THEN("that is one upwards") {
        CHECK(has(back, "active c 0"));
        CHECK(has(back, "failover c up, recovered"));
        CHECK_FALSE(has(back, "failover-ended c 0s"));
      }
    }
  }
  WHEN("the first outlives its window") {
    policy.child("p0", kConnecting);
    policy.advance(10s);
    THEN("the reason is the time") {
      CHECK(has(policy.child("p1", kReady), "failover c down, timed out"));
    }
  }
  WHEN("the one in use is replaced by configuration") {
    policy.update(priorities({"p2", "p1"}));
    policy.child("p2", kFailure);
    THEN("the reason is the configuration") {
      CHECK(has(policy.child("p1", kReady), "failover c down, reconfigured"));
    }
  }
}

SCENARIO(
    "A56: where CDS sets no connect_timeout the failover window decides, and the attempt goes on",
    "[spec][lb][priority][A56][D19][ENV-3]") {
  TreeHarness tree;
  XdsWorld world;
  tree.end_attempts();
  tree.up("b");
  GIVEN("a first priority that takes a connection and says nothing for 12 s") {
    world.eds("c", {"east:a", "west:b"});
    tree.apply(manager_of({"c"}), world.config());
    WHEN("the window is not over") {
      tree.advance(9'999ms);
      THEN("calls wait, and the second priority is not tried") {
        CHECK(tree.pick("c") == "queue");
        CHECK(tree.connections("b") == 0);
      }
    }
    WHEN("it is over") {
      tree.advance(10s);
      THEN("calls go to the second priority") {
        CHECK(tree.pick("c") == "complete b");
      }
      AND_WHEN("the server speaks after 12 s") {
        tree.advance(2s);
        tree.up("a");
        THEN("it was still the first attempt, and calls go to the first priority") {
          CHECK(tree.pick("c") == "complete a");
          CHECK(tree.connections("a") == 1);
        }
      }
      AND_WHEN("it never speaks") {
        tree.advance(10s);
        THEN("its attempt has ended after 20 s") {
          const Texts log = tree.take_log();
          CHECK(has(log, "subchannel a TRANSIENT_FAILURE"));
        }
      }
    }
  }
  GIVEN("the same, and CDS says 3 s") {
    world.eds("c", {"east:a", "west:b"}, default_lb_policy(), {.connect_timeout = 3s});
    tree.apply(manager_of({"c"}), world.config());
    WHEN("these are over") {
      tree.advance(2'999ms);
      CHECK(tree.pick("c") == "queue");
      tree.advance(1ms);
      THEN("calls go to the second priority") {
        CHECK(tree.pick("c") == "complete b");
      }
    }
  }
}
