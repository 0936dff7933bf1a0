// SPDX-License-Identifier: Apache-2.0
#include "lb/route/retry.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::lb {
namespace {

using namespace std::chrono_literals;

constexpr int kCancelled = 1;
constexpr int kDeadlineExceeded = 4;
constexpr int kResourceExhausted = 8;
constexpr int kInternal = 13;
constexpr int kUnavailable = 14;

RetryPolicy policy_of(std::uint32_t max_attempts, Duration base = 20ms, Duration most = 70ms) {
  return {{absl::StatusCode::kResourceExhausted, absl::StatusCode::kUnavailable},
          max_attempts,
          base,
          most};
}

const RetryRules kRules(policy_of(3));

TEST_CASE("retry: without a policy, nothing is retried", "[lb][retry][A44]") {
  const RetryRules none;
  CHECK(none.is_none());
  CHECK_FALSE(none.avoids_tried());
  RetryState state;
  for (int code = 0; code <= 16; ++code) {
    CHECK_FALSE(none.covers(code));
    const auto decision = state.after({.code = code}, none, 1, nullptr);
    CHECK_FALSE(decision.delay);
    CHECK_FALSE(decision.result);
  }
}

TEST_CASE("retry: a policy covers its codes and no others", "[lb][retry][A44][A6]") {
  CHECK_FALSE(kRules.is_none());
  for (int code = -1; code <= 40; ++code) {
    INFO(code);
    CHECK(kRules.covers(code) == (code == kResourceExhausted || code == kUnavailable));
  }
  RetryPolicy all = policy_of(2);
  all.retry_on = {absl::StatusCode::kCancelled,
                  absl::StatusCode::kDeadlineExceeded,
                  absl::StatusCode::kInternal};
  for (const int code : {kCancelled, kDeadlineExceeded, kInternal})
    CHECK(RetryRules(all).covers(code));
}

TEST_CASE("retry: whether another attempt follows", "[lb][retry][A44][A6]") {
  struct Row {
    const char* when;
    AttemptEnd end;
    bool again;
    std::optional<RetryResult> counted;
  };

  using R = RetryResult;
  const auto row = GENERATE(values<Row>({
      {"it was OK", {.code = 0}, false, {}},
      {"the code is none of the policy's", {.code = kInternal}, false, {}},
      {"the code is one", {.code = kUnavailable}, true, R::kRetried},
      {"headers came", {.code = kUnavailable, .is_committed = true}, false, R::kCommitted},
      {"the request is gone", {.code = kUnavailable, .is_kept = false}, false, R::kTooLarge},
      {"the server says when", {.code = kUnavailable, .pushback = "7"}, true, R::kRetried},
      {"the server says now", {.code = kUnavailable, .pushback = "0"}, true, R::kRetried},
      {"the server says no", {.code = kUnavailable, .pushback = "-1"}, false, R::kPushedBack},
      {"nobody can read it", {.code = kUnavailable, .pushback = "soon"}, false, R::kPushedBack},
      {"it says nothing", {.code = kUnavailable, .pushback = ""}, false, R::kPushedBack},
      {"it has more than 32 bits",
       {.code = kUnavailable, .pushback = "4294967296"},
       false,
       R::kPushedBack},
      {"a pushback of another code", {.code = kInternal, .pushback = "7"}, false, {}},
      {"no time is left", {.code = kUnavailable, .time_left = 0ns}, false, R::kTooLate},
      {"the deadline is over", {.code = kUnavailable, .time_left = -5ms}, false, R::kTooLate},
      {"the server wants more time than is left",
       {.code = kUnavailable, .pushback = "7", .time_left = 7ms},
       false,
       R::kTooLate},
      {"the server wants less",
       {.code = kUnavailable, .pushback = "7", .time_left = 8ms},
       true,
       R::kRetried},
  }));
  DYNAMIC_SECTION(row.when) {
    RetryState state;
    const auto decision = state.after(row.end, kRules, 1, nullptr);
    CHECK(decision.delay.has_value() == row.again);
    CHECK(decision.result == row.counted);
    CHECK(state.previous_attempts() == (row.again ? 1 : 0));
    if (row.again && row.end.pushback)
      CHECK(*decision.delay ==
            std::chrono::milliseconds(std::stoi(std::string(*row.end.pushback))));
  }
}

TEST_CASE("retry: as many attempts as the policy says", "[lb][retry][A44][A6][R1]") {
  const std::uint32_t most = GENERATE(2U, 3U, 5U);
  const RetryRules rules(policy_of(most));
  RetryState state;
  for (std::uint32_t attempt = 1; attempt < most; ++attempt) {
    CHECK(state.previous_attempts() == attempt - 1);
    CHECK(state.after({.code = kUnavailable, .pushback = "0"}, rules, 1, nullptr).delay);
  }
  const auto last = state.after({.code = kUnavailable, .pushback = "0"}, rules, 1, nullptr);
  CHECK_FALSE(last.delay);
  CHECK(last.result == RetryResult::kExhausted);
}

TEST_CASE("retry: a call that no transport ever has is not tried for ever", "[lb][retry][R1]") {
  RetryState state;
  for (std::uint32_t i = 0; i < RetryState::kMostUnsent; ++i)
    REQUIRE(state.after({.code = kUnavailable, .is_unsent = true}, kRules, 1, nullptr).delay ==
            0ns);
  const auto last = state.after({.code = kUnavailable, .is_unsent = true}, kRules, 1, nullptr);
  CHECK_FALSE(last.delay);
  CHECK(last.result == RetryResult::kExhausted);
}

TEST_CASE("retry: an attempt that no transport had follows at once, and counts for nothing",
          "[lb][retry][A6][R1]") {
  RetryThrottle throttle(2, 1);
  RetryState state;
  const RetryRules none;
  for (int i = 0; i < 20; ++i) {
    for (const RetryRules& rules : {none, kRules}) {
      const auto decision =
          state.after({.code = kUnavailable, .is_unsent = true}, rules, 1, &throttle);
      CHECK(decision.delay == 0ns);
      CHECK_FALSE(decision.result);
      CHECK(decision.is_transparent);
    }
  }
  CHECK(state.previous_attempts() == 0);
  RetryThrottle fresh(4, 1);
  CHECK(state.after({.code = kUnavailable}, kRules, 1, &fresh).delay);
}

TEST_CASE("retry: the first attempt that a server refused unseen counts for nothing, the next does",
          "[lb][retry][A6][R1]") {
  RetryThrottle throttle(1, 1);
  const AttemptEnd refused{.code = kUnavailable, .is_refused = true};
  SECTION("without a policy the second ends the call") {
    RetryState state;
    const auto first = state.after(refused, RetryRules(), 1, &throttle);
    CHECK(first.delay == 0ns);
    CHECK(first.is_transparent);
    CHECK_FALSE(first.result);
    const auto second = state.after(refused, RetryRules(), 1, &throttle);
    CHECK_FALSE(second.delay);
    CHECK_FALSE(second.is_transparent);
  }
  SECTION("with a policy the second is an attempt like others") {
    RetryState state;
    CHECK(state.after(refused, kRules, 1, nullptr).is_transparent);
    CHECK(state.previous_attempts() == 0);
    const auto second = state.after(refused, kRules, 1, nullptr);
    CHECK_FALSE(second.is_transparent);
    CHECK(second.result == RetryResult::kRetried);
    CHECK(state.previous_attempts() == 1);
  }
}

TEST_CASE("retry: delays double up to the greatest, and are drawn from a fifth around that",
          "[lb][retry][A44][A6]") {
  const RetryRules rules(policy_of(5));
  CHECK(rules.delay(0) == 20ms);
  CHECK(rules.delay(1) == 40ms);
  CHECK(rules.delay(2) == 70ms);
  CHECK(rules.delay(1'000'000) == 70ms);

  constexpr int kCalls = 4000;
  std::vector<std::vector<Duration>> delays(4);
  for (int call = 0; call < kCalls; ++call) {
    RetryState state;
    for (auto& of_retry : delays)
      of_retry.push_back(state.after({.code = kUnavailable}, rules, call, nullptr).delay.value());
  }
  for (std::uint32_t retry = 0; retry < delays.size(); ++retry) {
    INFO("retry " << retry);
    auto& drawn = delays[retry];
    std::ranges::sort(drawn);
    const Duration middle = rules.delay(retry);
    CHECK(drawn.front() >= middle / 100 * 80);
    CHECK(drawn.front() < middle / 100 * 81);
    CHECK(drawn.back() <= middle / 100 * 120);
    CHECK(drawn.back() > middle / 100 * 119);
    CHECK(drawn[kCalls / 2] > middle / 100 * 98);
    CHECK(drawn[kCalls / 2] < middle / 100 * 102);
  }
}

TEST_CASE("retry: the longest delay of all does not overflow", "[lb][retry][A6][limits]") {
  const RetryRules vast(policy_of(5, Duration::max() / 3 * 2, Duration::max()));
  CHECK(vast.delay(1) == Duration::max());
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    RetryState state;
    state.after({.code = kUnavailable}, vast, seed, nullptr);
    const auto second = state.after({.code = kUnavailable}, vast, seed, nullptr);
    // Jitter would make half of these delays longer than Duration::max(). Such a delay ends the
    // call, because the deadline comes first.
    if (second.delay) {
      CHECK(*second.delay >= Duration::max() / 5 * 4);
    } else {
      CHECK(second.result == RetryResult::kTooLate);
    }
  }
}

TEST_CASE("retry: a policy says whether retries pass over the hosts that were tried",
          "[lb][retry]") {
  RetryPolicy policy = policy_of(2);
  CHECK_FALSE(RetryRules(policy).avoids_tried());
  policy.previous_hosts = true;
  CHECK(RetryRules(policy).avoids_tried());
}

TEST_CASE("retry: the same call draws the same delays", "[lb][retry]") {
  RetryState one;
  RetryState other;
  const RetryRules rules(policy_of(5));
  for (int i = 0; i < 4; ++i) {
    CHECK(one.after({.code = kUnavailable}, rules, 42, nullptr).delay ==
          other.after({.code = kUnavailable}, rules, 42, nullptr).delay);
  }
}

TEST_CASE("retry: the delays of one call are drawn one by one", "[lb][retry][A6]") {
  RetryState state;
  const RetryRules rules(policy_of(5, 1s, 1s));
  std::set<Duration> delays;
  for (int i = 0; i < 4; ++i)
    delays.insert(state.after({.code = kUnavailable}, rules, 42, nullptr).delay.value());
  CHECK(delays.size() == 4);
}

TEST_CASE("retry: after a pushback the back-off begins anew", "[lb][retry][A6]") {
  const RetryRules rules(policy_of(5));
  Duration longest_after{};
  Duration longest_without{};
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    RetryState pushed;
    RetryState plain;
    for (const auto& pushback : {std::optional<absl::string_view>(), {"3"}}) {
      pushed.after({.code = kUnavailable, .pushback = pushback}, rules, seed, nullptr);
      plain.after({.code = kUnavailable}, rules, seed, nullptr);
    }
    const auto after = pushed.after({.code = kUnavailable}, rules, seed, nullptr);
    const auto without = plain.after({.code = kUnavailable}, rules, seed, nullptr);
    longest_after = std::max(longest_after, after.delay.value());
    longest_without = std::max(longest_without, without.delay.value());
  }
  CHECK(longest_after <= 24ms);
  CHECK(longest_without > 60ms);
}

TEST_CASE("retry throttle: half of the tokens or less forbids retries", "[lb][retry][A6]") {
  RetryThrottle throttle(4, 0.5);
  CHECK(throttle.failed());        // 3 tokens are left.
  CHECK_FALSE(throttle.failed());  // 2 tokens are left, which is the threshold: no retry.
  for (int i = 0; i < 10; ++i)
    CHECK_FALSE(throttle.failed());  // Never below 0 tokens.
  for (int i = 0; i < 7; ++i)
    throttle.succeeded();  // 3.5 tokens
  CHECK(throttle.failed());
  CHECK_FALSE(throttle.failed());  // 1.5 tokens
  for (int i = 0; i < 100; ++i)
    throttle.succeeded();  // Never above 4 tokens.
  CHECK(throttle.failed());
  CHECK_FALSE(throttle.failed());
  RetryThrottle generous(4, 3);
  CHECK(generous.failed());
  generous.succeeded();  // 4 tokens, the maximum, not 6.
  CHECK(generous.failed());
  CHECK_FALSE(generous.failed());
}

TEST_CASE("retry throttle: counts thousandths of a token", "[lb][retry][A6]") {
  RetryThrottle throttle(2, 0.001);
  CHECK_FALSE(throttle.failed());  // 1 token is left, the threshold.
  for (int i = 0; i < 1000; ++i)
    throttle.succeeded();
  CHECK_FALSE(throttle.failed());  // 1 token again: the successes had filled up 2.
  for (int i = 0; i < 1001; ++i)
    throttle.succeeded();
  CHECK_FALSE(throttle.failed());
  RetryThrottle least(4, 0.0001);  // Counts as 0.001; as 0 it would never recover.
  CHECK(least.failed());
  CHECK_FALSE(least.failed());  // 2, the threshold
  for (int i = 0; i < 1000; ++i)
    least.succeeded();
  CHECK_FALSE(least.failed());  // 2 again.
  for (int i = 0; i < 1001; ++i)
    least.succeeded();
  CHECK(least.failed());
  RetryThrottle odd(3, 0.1);
  CHECK(odd.failed());
  CHECK_FALSE(odd.failed());
}

TEST_CASE("retry throttle: what counts as a failure", "[lb][retry][A6]") {
  struct Row {
    const char* when;
    AttemptEnd end;
    bool counts;
  };

  const auto row = GENERATE(values<Row>({
      {"a code of the policy", {.code = kUnavailable}, true},
      {"another code", {.code = kInternal}, false},
      {"another code, and the server wants no retry", {.code = kInternal, .pushback = "-1"}, true},
      {"another code, and the server says when", {.code = kInternal, .pushback = "1"}, false},
      {"a committed call", {.code = kUnavailable, .is_committed = true}, true},
      {"one that was not sent", {.code = kUnavailable, .is_unsent = true}, false},
      {"success", {.code = 0}, false},
  }));
  DYNAMIC_SECTION(row.when) {
    RetryThrottle throttle(4, 1);
    RetryState().after(row.end, kRules, 1, &throttle);
    // This failure leaves 2 of 4 tokens if row.end took a token, else 3. Retries need more than 2
    // tokens.
    CHECK(throttle.failed() == !row.counts);
  }
}

TEST_CASE("retry throttle: a call that may not be retried says so", "[lb][retry][A6]") {
  RetryThrottle throttle(2, 1);
  RetryState state;
  const auto decision = state.after({.code = kUnavailable}, kRules, 1, &throttle);
  CHECK_FALSE(decision.delay);
  CHECK(decision.result == RetryResult::kThrottled);
  RetryThrottle roomy(4, 1);
  CHECK(state.after({.code = kUnavailable}, kRules, 1, &roomy).delay);  // 3 tokens are left.
  RetryState().after({.code = 0}, kRules, 1, &roomy);                   // 4 tokens.
  CHECK(roomy.failed());                                                // 3 tokens.
}

TEST_CASE("retry throttle: threads lose no token", "[lb][retry][A6]") {
  RetryThrottle throttle(1000, 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int failure = 0; failure < 100; ++failure)
        throttle.failed();
    });
  }
  for (auto& thread : threads)
    thread.join();
  for (int i = 0; i < 99; ++i)
    CHECK(throttle.failed());      // At last 501 tokens are left.
  CHECK_FALSE(throttle.failed());  // 500, the threshold.
}

}  // namespace
}  // namespace signalbox::lb
