// SPDX-License-Identifier: Apache-2.0
#include "lb/route/fault.hpp"

#include <optional>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/filter_fixture.hpp"
#include "tests/support/independent_draws.hpp"
#include "tests/support/router_fixture.hpp"

namespace signalbox::lb {
namespace {

using namespace signalbox::testing;
using testing::percent;
using namespace std::chrono_literals;

constexpr char kDelay[] = "x-envoy-fault-delay-request";
constexpr char kDelayShare[] = "x-envoy-fault-delay-request-percentage";
constexpr char kHttp[] = "x-envoy-fault-abort-request";
constexpr char kGrpc[] = "x-envoy-fault-abort-grpc-request";
constexpr char kAbortShare[] = "x-envoy-fault-abort-request-percentage";

// A router with one fault filter on its calls.
struct FaultyRouter : RouterFixture {
  FaultyRouter() {
    faults.active = std::make_shared<const RequestLimit>();
    faults.injected = std::make_shared<const FaultCount>();
  }

  void publish_fault(const FaultFilter& fault) {
    publish(with_filters(all_to(to("a")), {filter("fault", fault)}),
            answering([&](const PickArgs&) { return result(Complete{backend.get()}); }));
  }

  Pick pick(const TestHeaders& headers = {}, std::uint64_t seed = 7) const {
    return router.pick({.path = "/s/M", .headers = &headers, .seed = seed});
  }

  // The percentage of 20,000 calls for which `was` is true.
  template <typename Was>
  double share(const TestHeaders& headers, Was was) const {
    int count = 0;
    for (std::uint64_t seed = 0; seed < 20'000; ++seed)
      count += was(pick(headers, seed)) ? 1 : 0;
    return count / 200.0;
  }
};

bool is_delayed(const Pick& pick) {
  return pick.delay() > 0s;
}

bool is_aborted(const Pick& pick) {
  return pick.outcome() == PickOutcome::kDrop;
}

TEST_CASE_METHOD(FaultyRouter, "fault: a header says how long a call waits", "[lb][fault][A33]") {
  struct Row {
    const char* when;
    TestHeaders headers;
    Duration delay;
  };

  const auto row = GENERATE(values<Row>({
      {"there is none", {}, 0s},
      {"53 ms", {{kDelay, "53"}}, 53ms},
      {"0", {{kDelay, "0"}}, 0s},
      {"it is no number", {{kDelay, "soon"}}, 0s},
      {"it is no whole number", {{kDelay, "1.5"}}, 0s},
      {"it is empty", {{kDelay, ""}}, 0s},
      {"it has a unit", {{kDelay, "5ms"}}, 0s},
      {"it is negative", {{kDelay, "-1"}}, 0s},
      {"it is not ASCII", {{kDelay, "\xd9\xa3"}}, 0s},
      {"it is huge", {{kDelay, "9223372036854775808"}}, 0s},
      {"it is longer than a century",
       {{kDelay, "9223372036854775807"}},
       std::chrono::hours(24 * 365 * 100)},
      {"there are two", {{kDelay, "1"}, {kDelay, "2"}}, 1ms},
      {"the first of two makes no sense", {{kDelay, "x"}, {kDelay, "2"}}, 2ms},
      {"the first of two is negative", {{kDelay, "-1"}, {kDelay, "2"}}, 2ms},
      {"the share is 0", {{kDelay, "53"}, {kDelayShare, "0"}}, 0s},
      {"the abort's share is 0", {{kDelay, "53"}, {kAbortShare, "0"}}, 53ms},
  }));
  DYNAMIC_SECTION(row.when) {
    publish_fault(delaying(std::nullopt));
    CHECK(pick(row.headers).delay() == row.delay);
    // Headers do not change the delay of a filter that has a fixed delay.
    publish_fault(delaying(4s));
    CHECK(pick(row.headers).delay() == 4s);
  }
}

TEST_CASE_METHOD(FaultyRouter, "fault: a header says how a call ends", "[lb][fault][A33]") {
  using Code = absl::StatusCode;

  struct Row {
    const char* when;
    TestHeaders headers;
    std::optional<Code> code;
  };

  const auto row = GENERATE(values<Row>({
      {"there is none", {}, std::nullopt},
      {"HTTP 200", {{kHttp, "200"}}, Code::kUnknown},
      {"HTTP 400", {{kHttp, "400"}}, Code::kInternal},
      {"HTTP 401", {{kHttp, "401"}}, Code::kUnauthenticated},
      {"HTTP 403", {{kHttp, "403"}}, Code::kPermissionDenied},
      {"HTTP 404", {{kHttp, "404"}}, Code::kUnimplemented},
      {"HTTP 429", {{kHttp, "429"}}, Code::kUnavailable},
      {"HTTP 502", {{kHttp, "502"}}, Code::kUnavailable},
      {"HTTP 503", {{kHttp, "503"}}, Code::kUnavailable},
      {"HTTP 504", {{kHttp, "504"}}, Code::kUnavailable},
      {"HTTP 599", {{kHttp, "599"}}, Code::kUnknown},
      {"HTTP 199 is none", {{kHttp, "199"}}, std::nullopt},
      {"HTTP 600 is none", {{kHttp, "600"}}, std::nullopt},
      {"gRPC 0", {{kGrpc, "0"}}, Code::kOk},
      {"gRPC 3", {{kGrpc, "3"}}, Code::kInvalidArgument},
      {"gRPC 16", {{kGrpc, "16"}}, Code::kUnauthenticated},
      {"gRPC 17 is none", {{kGrpc, "17"}}, std::nullopt},
      {"gRPC -1 is none", {{kGrpc, "-1"}}, std::nullopt},
      {"gRPC by its name is none", {{kGrpc, "ABORTED"}}, std::nullopt},
      {"more than 32 bits are none", {{kGrpc, "4294967299"}}, std::nullopt},
      {"both: HTTP goes first", {{kGrpc, "3"}, {kHttp, "503"}}, Code::kUnavailable},
      {"both, and HTTP makes no sense", {{kGrpc, "3"}, {kHttp, "oops"}}, Code::kInvalidArgument},
      {"the share is 0", {{kGrpc, "3"}, {kAbortShare, "0"}}, std::nullopt},
      {"the delay's share is 0", {{kGrpc, "3"}, {kDelayShare, "0"}}, Code::kInvalidArgument},
  }));
  DYNAMIC_SECTION(row.when) {
    publish_fault(aborting(std::nullopt));
    const Pick by_header = pick(row.headers);
    CHECK(is_aborted(by_header) == row.code.has_value());
    if (row.code) CHECK(by_header.status().code() == *row.code);
    publish_fault(aborting(Code::kDataLoss));
    CHECK(pick(row.headers).status() == absl::DataLossError("cluster a: Fault injected"));
  }
}

TEST_CASE_METHOD(FaultyRouter,
                 "fault: a header's share is at most the configured one",
                 "[lb][fault][A33]") {
  struct Row {
    const char* header;
    double expected;
  };

  const auto row = GENERATE(values<Row>({
      {nullptr, 40},
      {"0", 0},
      {"1000", 10},
      {"4000", 40},
      {"9999", 40},
      {"4294967295", 40},
      {"-1", 40},
      {"4294967296", 40},
      {"many", 40},
  }));
  const FaultShare share_of_10000{4'000, 10'000};
  TestHeaders headers{{kDelay, "1"}, {kGrpc, "10"}};
  if (row.header != nullptr) {
    headers = TestHeaders{
        {kDelay, "1"}, {kGrpc, "10"}, {kDelayShare, row.header}, {kAbortShare, row.header}};
  }
  publish_fault(delaying(std::nullopt, share_of_10000));
  CHECK(share(headers, is_delayed) == Approx(row.expected).margin(1.5));
  publish_fault(aborting(std::nullopt, share_of_10000));
  CHECK(share(headers, is_aborted) == Approx(row.expected).margin(1.5));
}

TEST_CASE_METHOD(FaultyRouter, "fault: shares are of 100, 10,000 or a million", "[lb][A33]") {
  const auto denominator = GENERATE(100U, 10'000U, 1'000'000U);
  const FaultShare fifth{denominator / 5, denominator};
  publish_fault(delaying(1s, fifth));
  CHECK(share({}, is_delayed) == Approx(20).margin(1.5));
  publish_fault(aborting(absl::StatusCode::kAborted, fifth));
  CHECK(share({}, is_aborted) == Approx(20).margin(1.5));
}

TEST_CASE_METHOD(FaultyRouter, "fault: a share of one percent has its faults", "[lb][A33]") {
  publish_fault(delaying(1s, percent(1)));
  CHECK(share({}, is_delayed) == Approx(1).margin(0.3));
  publish_fault(aborting(absl::StatusCode::kAborted, percent(1)));
  CHECK(share({}, is_aborted) == Approx(1).margin(0.3));
}

TEST_CASE_METHOD(FaultyRouter, "fault: delay and abort are drawn independently, F1", "[lb][A33]") {
  publish_fault(both(delaying(1s, percent(20)), aborting(absl::StatusCode::kAborted, percent(50))));
  // 80 percent of the calls have no delay. Half of those are aborted: 40 percent of all calls.
  CHECK(share({}, is_delayed) == Approx(20).margin(1.5));
  CHECK(share({}, is_aborted) == Approx(40).margin(1.5));
  const auto passes = [](const Pick& pick) { return pick.outcome() == PickOutcome::kComplete; };
  CHECK(share({}, passes) == Approx(40).margin(1.5));
}

TEST_CASE_METHOD(FaultyRouter,
                 "fault: it is drawn independently of the call's other draws",
                 "[lb][A33]") {
  publish_fault(delaying(1s, percent(50)));
  test::check_independent(
      Salt::kFaultDelay, 0.5, [&](std::uint64_t seed) { return is_delayed(pick({}, seed)); });
}

TEST_CASE_METHOD(FaultyRouter, "fault: two filters of a chain draw for themselves", "[lb][A33]") {
  const FaultFilter half = aborting(absl::StatusCode::kAborted, percent(50));
  publish(with_filters(all_to(to("a")), {filter("one", half), filter("two", half)}),
          answering([&](const PickArgs&) { return result(Complete{backend.get()}); }));
  CHECK(share({}, is_aborted) == Approx(75).margin(1.5));
}

TEST_CASE_METHOD(FaultyRouter,
                 "fault: so many are active at a time, and a call beyond has none, F2",
                 "[lb][fault][A33]") {
  FaultFilter fault = both(delaying(1s), aborting(absl::StatusCode::kAborted));
  fault.max_active_faults = 2;
  publish_fault(fault);
  Pick first = pick();
  std::optional<Pick> second(pick());
  REQUIRE(is_delayed(first));
  REQUIRE(is_delayed(*second));
  CHECK(faults.active->in_flight() == 2);
  CHECK(pick().outcome() == PickOutcome::kComplete);
  CHECK(faults.injected->sum(kDelayFault) == 2);
  CHECK(faults.injected->sum(kAbortFault) == 2);

  first.end_delay();  // The fault ends with the delay, not with the call.
  CHECK(faults.active->in_flight() == 1);
  CHECK(is_delayed(pick()));
  second.reset();  // As if the call were cancelled.
  CHECK(faults.active->in_flight() == 0);
}

TEST_CASE_METHOD(FaultyRouter, "fault: all filters count together", "[lb][fault][A33]") {
  publish_fault(delaying(1s));  // This filter has no limit of active faults.
  const Pick first = pick();
  const Pick second = pick();
  FaultFilter fault = aborting(absl::StatusCode::kAborted);
  fault.max_active_faults = 2;
  publish_fault(fault);
  CHECK(pick().outcome() == PickOutcome::kComplete);
  fault.max_active_faults = 3;
  publish_fault(fault);
  CHECK(is_aborted(pick()));
  CHECK(is_aborted(pick()));  // An aborted call has ended, so it is no active fault any more.
  CHECK(faults.injected->sum(kAbortFault) == 2);
  CHECK(faults.injected->sum(kDelayFault) == 2);
  CHECK(active_faults_of_process() == active_faults_of_process());
}

TEST_CASE_METHOD(FaultyRouter, "fault: counts for itself where nobody gives it a count", "[lb]") {
  faults = {};
  FaultFilter fault = delaying(1s);
  fault.max_active_faults = 1;
  publish_fault(fault);
  const Pick first = pick();
  CHECK(is_delayed(first));
  CHECK_FALSE(is_delayed(pick()));
}

}  // namespace
}  // namespace signalbox::lb
