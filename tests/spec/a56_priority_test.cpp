// SPDX-License-Identifier: Apache-2.0
// gRFC A56, in the order of its own headings.
#include <catch2/catch.hpp>

#include "lb/policy/priority.hpp"
#include "tests/support/policy_harness.hpp"
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
          CHECK(policy.pick() == "fail UNAVAILABLE: p1 TRANSIENT_FAILURE");
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
    const Texts done = policy.update(priorities({"p1", "p0"}));
    THEN("the children are updated, never recreated, and the new order holds") {
      CHECK(done == Texts{"update p0", "update p1", "timer deactivation/p0 900s", "active c 0"});
      CHECK(policy.pick() == "fail UNAVAILABLE: p1 READY");
    }
  }
  WHEN("a child is no longer named") {
    THEN("it is stopped at once (A115)") {
      CHECK(has(policy.update(priorities({"p1"})), "stop p0"));
    }
  }
  WHEN("the child in use is no longer named") {
    const Texts done = policy.update(priorities({"p0"}));
    THEN("it is stopped, with its picker out of use in the same step") {
      CHECK(has(done, "stop p1"));
      CHECK(policy.pick() == "fail UNAVAILABLE: p0 TRANSIENT_FAILURE");
    }
  }
  WHEN("several children are updated") {
    const Texts done = policy.update(priorities({"p2", "p1", "p0"}));
    THEN("all are updated before one choice is made") {
      CHECK(done == Texts{"update p0",
                          "update p1",
                          "start p2",
                          "timer failover/p2 10s",
                          "active c -1",
                          "publish CONNECTING"});
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
