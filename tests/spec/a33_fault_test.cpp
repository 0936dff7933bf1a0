// SPDX-License-Identifier: Apache-2.0
//
// gRFC A33, "Fault Injection Features" to "Evaluate Possibility Fraction", in the document's order.
// tests/unit/lb/fault_test has the effect of each header; tests/e2e/runtime_faults_test has faults
// on drop-in calls.

#include <chrono>

#include <catch2/catch.hpp>

#include "tests/support/filter_fixture.hpp"
#include "tests/support/router_fixture.hpp"

namespace signalbox::lb {
namespace {

using namespace signalbox::testing;
using namespace std::chrono_literals;

// A channel with one fault filter. `picked` counts the picks that reach its picker. A call that is
// delayed at the moment, or aborted, does not reach it.
struct Channel : RouterFixture {
  Channel() { faults.active = std::make_shared<const RequestLimit>(); }

  void configure(const FaultFilter& fault) {
    publish(with_filters(all_to(to("a")), {filter("fault", fault)}),
            answering([this](const PickArgs&) {
              ++picked;
              return result(Complete{backend.get()});
            }));
  }

  Pick call(const TestHeaders& headers = {}, std::uint64_t seed = 7) const {
    return router.pick({.path = "/s/M", .headers = &headers, .seed = seed});
  }

  void after_delay(Pick& pick) const {
    pick.end_delay();
    router.repick(pick, {.path = "/s/M", .seed = 7});
  }

  int picked = 0;
};

SCENARIO("A33: a delay is injected before any traffic is sent", "[spec][A33]") {
  GIVEN("a filter that delays every call by 3 s") {
    Channel channel;
    channel.configure(delaying(3s));
    WHEN("a call is made") {
      Pick pick = channel.call();
      THEN("it waits, and nothing has been picked for it") {
        CHECK(pick.outcome() == PickOutcome::kQueue);
        CHECK(pick.delay() == 3s);
        CHECK(channel.picked == 0);
      }
      THEN("it is picked when it has waited, and delayed no more") {
        channel.after_delay(pick);
        CHECK(pick.outcome() == PickOutcome::kComplete);
        CHECK(channel.picked == 1);
        pick.put_off();
        channel.router.repick(pick, {.path = "/s/M", .seed = 7});
        CHECK(pick.outcome() == PickOutcome::kComplete);
      }
    }
  }
}

SCENARIO("A33: an abort happens before any traffic is sent, and after the delay", "[spec][A33]") {
  GIVEN("a filter that aborts every call") {
    Channel channel;
    channel.configure(aborting(absl::StatusCode::kNotFound));
    THEN("a call ends at once with that code, and is never picked") {
      const Pick pick = channel.call();
      CHECK(pick.outcome() == PickOutcome::kDrop);
      CHECK(pick.status() == absl::NotFoundError("cluster a: Fault injected"));
      CHECK(channel.picked == 0);
    }
  }
  GIVEN("a filter that delays and aborts") {
    Channel channel;
    channel.configure(both(delaying(3s), aborting(absl::StatusCode::kDataLoss)));
    WHEN("a call is made") {
      Pick pick = channel.call();
      THEN("it waits first, and ends then") {
        CHECK(pick.outcome() == PickOutcome::kQueue);
        CHECK(pick.delay() == 3s);
        channel.after_delay(pick);
        CHECK(pick.status() == absl::DataLossError("cluster a: Fault injected"));
        CHECK(channel.picked == 0);
      }
    }
  }
}

SCENARIO("A33: the number of active faults is limited", "[spec][A33]") {
  GIVEN("a limit of one, and a call that is being delayed") {
    FaultFilter fault = both(delaying(3s), aborting(absl::StatusCode::kAborted));
    fault.max_active_faults = 1;
    Channel channel;
    channel.configure(fault);
    Pick first = channel.call();
    REQUIRE(first.delay() == 3s);
    THEN("another is neither delayed nor aborted") {
      CHECK(channel.call().outcome() == PickOutcome::kComplete);
    }
    THEN("another is, once the first has waited") {
      channel.after_delay(first);
      CHECK(channel.call().delay() == 3s);
    }
    THEN("another is, once the first has ended") {
      first = Pick();
      CHECK(channel.call().delay() == 3s);
    }
  }
}

SCENARIO("A33: headers decide where the configuration leaves it to them", "[spec][A33]") {
  const TestHeaders headers{{"x-envoy-fault-abort-grpc-request", "3"},
                            {"x-envoy-fault-delay-request", "53"}};
  GIVEN("header_delay and header_abort") {
    Channel channel;
    channel.configure(both(delaying(std::nullopt), aborting(std::nullopt)));
    THEN("they do") {
      Pick pick = channel.call(headers);
      CHECK(pick.delay() == 53ms);
      channel.after_delay(pick);
      CHECK(pick.status().code() == absl::StatusCode::kInvalidArgument);
    }
    THEN("a call without them has no fault") {
      CHECK(channel.call().outcome() == PickOutcome::kComplete);
    }
    THEN("what makes no sense is ignored") {
      const TestHeaders nonsense{{"x-envoy-fault-abort-grpc-request", "seventeen"},
                                 {"x-envoy-fault-delay-request", "-1"}};
      CHECK(channel.call(nonsense).outcome() == PickOutcome::kComplete);
    }
  }
  GIVEN("a fixed delay and status") {
    Channel channel;
    channel.configure(both(delaying(1s), aborting(absl::StatusCode::kAborted)));
    THEN("they do not") {
      Pick pick = channel.call(headers);
      CHECK(pick.delay() == 1s);
      channel.after_delay(pick);
      CHECK(pick.status().code() == absl::StatusCode::kAborted);
    }
  }
}

SCENARIO("A33: 200 is UNKNOWN, and OK is OK", "[spec][A33]") {
  GIVEN("a header that says HTTP status 200") {
    Channel channel;
    channel.configure(aborting(std::nullopt));
    const TestHeaders headers{{"x-envoy-fault-abort-request", "200"}};
    THEN("the call ends UNKNOWN") {
      CHECK(channel.call(headers).status().code() == absl::StatusCode::kUnknown);
    }
  }
  GIVEN("grpc_status 0") {
    Channel channel;
    channel.configure(aborting(absl::StatusCode::kOk));
    THEN("the call ends OK, without ever being picked") {
      const Pick pick = channel.call();
      CHECK(pick.outcome() == PickOutcome::kDrop);
      CHECK(pick.status().ok());
      CHECK(channel.picked == 0);
    }
  }
}

SCENARIO("A33: delay and abort have a random number each", "[spec][A33]") {
  GIVEN("20 % of delays and 5 % of aborts") {
    Channel channel;
    channel.configure(
        both(delaying(1s, percent(20)), aborting(absl::StatusCode::kAborted, percent(5))));
    THEN("24 % of the calls are affected") {
      int affected = 0;
      for (std::uint64_t seed = 0; seed < 50'000; ++seed)
        affected += channel.call({}, seed).outcome() == PickOutcome::kComplete ? 0 : 1;
      CHECK(affected == Approx(12'000).margin(400));
    }
  }
}

}  // namespace
}  // namespace signalbox::lb
