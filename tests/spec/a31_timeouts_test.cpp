// SPDX-License-Identifier: Apache-2.0
//
// gRFC A31, "Supported Fields": the limits of a call's duration, in the document's order.

#include <chrono>

#include <catch2/catch.hpp>

#include "lb/route/timeout.hpp"
#include "tests/support/router_fixture.hpp"

namespace signalbox::lb {
namespace {

using namespace signalbox::testing;
using namespace std::chrono_literals;

using Setting = std::optional<Duration>;
constexpr Setting kUnset = std::nullopt;
constexpr Setting kInfinite = std::nullopt;
constexpr Setting kZero = 0s;

ForwardAction action_with(Setting max_stream_duration, Setting header_max) {
  ForwardAction action = to("orders");
  action.max_stream_duration = max_stream_duration;
  action.grpc_timeout_header_max = header_max;
  return action;
}

Setting timeout_of(const ForwardAction& action, Setting of_listener) {
  const XdsConfig config = config_of({route(prefix(""), action)}, of_listener);
  const auto selector = make_config_selector(config, refs_for(config));
  return std::get<Selection>(selector->select({"/s/M"})).timeout;
}

SCENARIO("A31: the supported fields limit a call", "[spec][A31][A31-20][A31-21][A31-22]") {
  GIVEN("a route with max_stream_duration") {
    THEN("it limits the call") {
      CHECK(timeout_of(action_with(3s, kUnset), kUnset) == 3s);
    }
    THEN("the listener's does not count, be it less") {
      CHECK(timeout_of(action_with(3s, kUnset), 1s) == 3s);
    }
  }
  GIVEN("a route with grpc_timeout_header_max") {
    THEN("it limits the call") {
      CHECK(timeout_of(action_with(kUnset, 4s), kUnset) == 4s);
    }
  }
  GIVEN("a route without either") {
    THEN("the listener's max_stream_duration limits the call") {
      CHECK(timeout_of(action_with(kUnset, kUnset), 7s) == 7s);
    }
    THEN("nothing does, where the listener has none") {
      CHECK(timeout_of(action_with(kUnset, kUnset), kUnset) == kInfinite);
    }
  }
}

SCENARIO("A31: without grpc_timeout_header_max, max_stream_duration counts",
         "[spec][A31][A31-24]") {
  GIVEN("a route without grpc_timeout_header_max") {
    WHEN("max_stream_duration is set") {
      THEN("it is the most that a call gets") {
        CHECK(effective_timeout(20s, kUnset, 10s) == 10s);
        CHECK(effective_timeout(kUnset, kUnset, 10s) == 10s);
      }
    }
    WHEN("it is unset or zero") {
      THEN("the application's deadline stands") {
        CHECK(effective_timeout(20s, kUnset, kUnset) == 20s);
        CHECK(effective_timeout(20s, kUnset, kZero) == 20s);
      }
    }
  }
}

SCENARIO("A31: grpc_timeout_header_max hides max_stream_duration", "[spec][A31][A31-25]") {
  GIVEN("a route with both") {
    THEN("only grpc_timeout_header_max counts, be it more or less") {
      CHECK(timeout_of(action_with(3s, 4s), kUnset) == 4s);
      CHECK(timeout_of(action_with(5s, 4s), kUnset) == 4s);
      CHECK(timeout_of(action_with(kUnset, 4s), 1s) == 4s);
    }
    THEN("its zero leaves the application's deadline alone") {
      CHECK(timeout_of(action_with(3s, kZero), 1s) == kInfinite);
      CHECK(effective_timeout(20s, kZero, 3s) == 20s);
    }
  }
}

SCENARIO("A31: the application's timeout is never exceeded", "[spec][A31][A31-26][A31-28]") {
  GIVEN("an application that asks for less than the limit") {
    THEN("it gets what it asked for") {
      CHECK(effective_timeout(5s, kUnset, 10s) == 5s);
      CHECK(effective_timeout(5s, 10s, kUnset) == 5s);
      CHECK(effective_timeout(5s, 10s, 1s) == 5s);
    }
  }
}

TEST_CASE("A31: the table of effective timeouts", "[spec][A31][A31-27]") {
  struct Row {
    const char* row;
    Setting application;
    Setting header_max;
    std::vector<Setting> max_stream_duration;  // The row holds for each of these values.
    Setting effective;
  };

  const std::vector<Setting> any{kUnset, kZero, 1s, 10s, 30s};
  const std::vector<Row> rows{
      {"a", kUnset, kUnset, {kUnset}, kInfinite},
      {"b", kUnset, kUnset, {kZero}, kInfinite},
      {"c", kUnset, kUnset, {10s}, 10s},
      {"d", kUnset, kZero, any, kInfinite},
      {"e", kUnset, 10s, any, 10s},
      {"f", 20s, kUnset, {kUnset}, 20s},
      {"g", 20s, kUnset, {kZero}, 20s},
      {"h", 20s, kUnset, {10s}, 10s},
      {"i", 20s, kZero, any, 20s},
      {"j", 20s, 10s, any, 10s},
  };
  for (const Row& row : rows) {
    for (const Setting duration : row.max_stream_duration) {
      DYNAMIC_SECTION("row " << row.row << ", max_stream_duration "
                             << (duration ? std::to_string(duration->count()) : "unset")) {
        CHECK(effective_timeout(row.application, row.header_max, duration) == row.effective);
      }
    }
  }
}

SCENARIO("A31: a route's max_stream_duration of 0 overrides the listener's",
         "[spec][A31][A31-22][A31-28]") {
  GIVEN("a listener with a max_stream_duration") {
    WHEN("the route says 0") {
      THEN("there is no limit") {
        CHECK(timeout_of(action_with(kZero, kUnset), 10s) == kInfinite);
        CHECK(effective_max_stream_duration(kZero, 10s) == kZero);
      }
    }
    WHEN("the route says nothing") {
      THEN("the listener's counts, 0 included") {
        CHECK(effective_max_stream_duration(kUnset, 10s) == Setting(10s));
        CHECK(timeout_of(action_with(kUnset, kUnset), kZero) == kInfinite);
      }
    }
  }
}

SCENARIO("A31: the timeout is known before the pick, and covers the waiting",
         "[spec][A31][A31-30]") {
  GIVEN("a route with a limit, and a picker that makes calls wait") {
    RouterFixture channel;
    channel.publish(all_to(action_with(3s, kUnset)),
                    answering([](const PickArgs&) { return result(Queue{}); }));
    WHEN("a call waits") {
      const Pick pick = channel.router.pick({"/s/M"});
      THEN("it already knows how long it may") {
        CHECK(pick.outcome() == PickOutcome::kQueue);
        CHECK(pick.timeout() == Setting(3s));
      }
    }
  }
}

}  // namespace
}  // namespace signalbox::lb
