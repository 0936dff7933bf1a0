// SPDX-License-Identifier: Apache-2.0
//
// gRFC A44, with its parts of gRFC A6: which calls are retried, in the documents' order.
// tests/unit/xds/parse_route_action_test.cpp has the parsing of an Envoy RetryPolicy.

#include <chrono>

#include <catch2/catch.hpp>

#include "lb/route/retry.hpp"
#include "tests/support/router_fixture.hpp"

namespace signalbox::lb {
namespace {

using namespace signalbox::testing;
using namespace std::chrono_literals;

constexpr int kUnavailable = 14;

ForwardAction retrying(ForwardAction action, std::uint32_t max_attempts) {
  action.retry = RetryPolicy{{absl::StatusCode::kUnavailable}, max_attempts, 10ms, 40ms};
  return action;
}

RetryDecision fail(RetryState& state, const RetryRules& rules, AttemptEnd end = {}) {
  end.code = kUnavailable;
  return state.after(end, rules, /*seed=*/7, nullptr);
}

SCENARIO("A44: supported features", "[spec][A44]") {
  GIVEN("a policy of three attempts") {
    const RetryRules rules(*retrying(to("orders"), 3).retry);
    RetryState state;
    THEN("it retries on its codes, and no others") {
      CHECK(fail(state, rules).delay);
      CHECK_FALSE(RetryState().after({.code = 13}, rules, 7, nullptr).delay);
    }
    THEN("it backs off between retries, by a base that doubles up to a maximum") {
      CHECK(rules.delay(0) == 10ms);
      CHECK(rules.delay(1) == 20ms);
      CHECK(rules.delay(5) == 40ms);
    }
    THEN("it stops after three") {
      CHECK(fail(state, rules).delay);
      CHECK(fail(state, rules).delay);
      CHECK_FALSE(fail(state, rules).delay);
    }
  }
}

SCENARIO("A44: the workflow of a retry", "[spec][A44][A31-4][A31-10][A54]") {
  RouterFixture world;
  const auto ready =
      answering([&](const PickArgs&) { return result(Complete(world.backend.get())); });
  GIVEN("a route with a policy, and one without") {
    world.publish(config_of({route(prefix("/retried/"), retrying(to("orders"), 3)),
                             route(prefix(""), to("orders"))}),
                  ready);
    THEN("the selector gives each call its own route's") {
      const Pick retried = world.router.pick({"/retried/M"});
      CHECK(retried.retry() == RetryRules(*retrying(to("orders"), 3).retry));
      CHECK(world.router.pick({"/other/M"}).retry().is_none());
    }
    WHEN("the route changes while a call backs off") {
      Pick pick = world.router.pick({"/retried/M"});
      pick.put_off();
      CHECK_FALSE(world.backend->in_use());
      std::vector<ClusterName> asked;
      world.publish(config_of({route(prefix(""), to("elsewhere"))}),
                    answering([&](const PickArgs& args) {
                      asked.push_back(*args.cluster);
                      return result(Complete(world.backend.get()));
                    }));
      world.router.repick(pick, {"/retried/M"});
      THEN(
          "the retry is picked by the newest picker, for the cluster that was chosen, as its "
          "policy was") {
        CHECK(pick.outcome() == PickOutcome::kComplete);
        CHECK(asked == std::vector<ClusterName>{ClusterName("orders")});
        CHECK(pick.retry().max_attempts() == 3);
      }
    }
    WHEN("a picker fails with a code that only servers may send") {
      world.publish(std::nullopt, nullptr);
      ForwardAction action = to("orders");
      action.retry = RetryPolicy{{absl::StatusCode::kInternal}, 2, 10ms, 40ms};
      world.publish(config_of({route(prefix(""), action)}), answering([](const PickArgs&) {
                      return result(Fail{absl::NotFoundError("no such thing")});
                    }));
      const Pick pick = world.router.pick({"/retried/M"});
      THEN("it is matched as the INTERNAL that it becomes (A54)") {
        const int code = static_cast<int>(pick.status().code());
        CHECK(RetryState().after({.code = code}, pick.retry(), 7, nullptr).delay);
      }
    }
    WHEN("a call backs off") {
      Pick pick = world.router.pick({"/retried/M"});
      pick.put_off();
      THEN("it keeps its cluster") {
        CHECK(world.ref("orders").in_use());
      }
    }
  }
}

SCENARIO("A6: server pushback", "[spec][A6]") {
  const RetryRules rules(*retrying(to("orders"), 3).retry);
  GIVEN("a server that names a delay") {
    RetryState state;
    THEN("that is the delay") {
      CHECK(fail(state, rules, {.pushback = "1234"}).delay == Duration(1234ms));
    }
    THEN("it grants no attempt beyond the policy's") {
      fail(state, rules);
      fail(state, rules);
      CHECK_FALSE(fail(state, rules, {.pushback = "1"}).delay);
    }
  }
  GIVEN("a server that wants no retry") {
    RetryState state;
    THEN("there is none") {
      CHECK_FALSE(fail(state, rules, {.pushback = "-1"}).delay);
      CHECK_FALSE(fail(state, rules, {.pushback = "never"}).delay);
    }
  }
}

SCENARIO("A6: when retries are valid", "[spec][A6]") {
  const RetryRules rules(*retrying(to("orders"), 3).retry);
  GIVEN("a call that has received response headers") {
    RetryState state;
    THEN("it is committed") {
      CHECK_FALSE(fail(state, rules, {.is_committed = true}).delay);
    }
  }
  GIVEN("a call whose request does not fit the buffer") {
    RetryState state;
    THEN("it is committed") {
      CHECK_FALSE(fail(state, rules, {.is_kept = false}).delay);
    }
  }
}

SCENARIO("A6: exposed retry metadata", "[spec][A6]") {
  const RetryRules rules(*retrying(to("orders"), 3).retry);
  RetryState state;
  THEN("the number of previous attempts is that of retries, transparent ones left out") {
    CHECK(state.previous_attempts() == 0);
    fail(state, rules, {.is_unsent = true});
    CHECK(state.previous_attempts() == 0);
    fail(state, rules);
    CHECK(state.previous_attempts() == 1);
    fail(state, rules, {.is_unsent = true});
    fail(state, rules);
    CHECK(state.previous_attempts() == 2);
  }
}

}  // namespace
}  // namespace signalbox::lb
