// SPDX-License-Identifier: Apache-2.0
#include "lb/route/retry.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"

#include "messages/back_off.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {
namespace {

// A retry token, counted in thousandths: A6 gives numbers of tokens three decimal places.
constexpr std::int64_t kToken = 1000;

std::int64_t thousandths(double tokens) {
  return std::max<std::int64_t>(1, std::llround(tokens * kToken));
}

// The delay in grpc-retry-pushback-ms. nullopt: the value is negative or no 32-bit number, which
// asks the client not to retry (A6).
std::optional<Duration> pushed_back(absl::string_view value) {
  std::int32_t delay_ms = 0;
  if (!absl::SimpleAtoi(value, &delay_ms) || delay_ms < 0) return std::nullopt;
  return std::chrono::milliseconds(delay_ms);
}

}  // namespace

RetryRules::RetryRules(const RetryPolicy& policy)
    : max_attempts_(policy.max_attempts),
      avoids_tried_(policy.previous_hosts),
      base_(policy.base_interval),
      max_(policy.max_interval) {
  for (const absl::StatusCode code : policy.retry_on)
    codes_ |= std::uint32_t{1} << static_cast<std::uint32_t>(code);
}

Duration RetryRules::delay(std::uint32_t earlier) const {
  Duration delay = base_;
  for (; earlier > 0 && delay < max_; --earlier)
    delay = longer_wait(delay, 2, max_);
  return delay;
}

RetryThrottle::RetryThrottle(double max_tokens, double token_ratio)
    : most_(thousandths(max_tokens)), ratio_(thousandths(token_ratio)), tokens_(most_) {}

void RetryThrottle::succeeded() {
  std::int64_t tokens = tokens_.load(std::memory_order_relaxed);
  while (tokens < most_ &&
         !tokens_.compare_exchange_weak(
             tokens, std::min(most_, tokens + ratio_), std::memory_order_relaxed)) {
  }
}

bool RetryThrottle::failed() {
  std::int64_t tokens = tokens_.load(std::memory_order_relaxed);
  std::int64_t left = 0;
  do {
    left = std::max<std::int64_t>(0, tokens - kToken);
  } while (!tokens_.compare_exchange_weak(tokens, left, std::memory_order_relaxed));
  return left > most_ / 2;
}

// A6: min(base * 2^(n-1), max) * random(0.8, 1.2).
Duration RetryState::back_off(const RetryRules& rules, std::uint64_t seed) {
  const auto middle = static_cast<std::uint64_t>(rules.delay(back_offs_++).count());
  const std::uint64_t fifth = middle / 5;
  const std::uint64_t drawn = draw_below(seed, Salt::kRetryBackOff, 2 * fifth + 1, retries_);
  constexpr auto kLongest = static_cast<std::uint64_t>(Duration::max().count());
  return Duration(static_cast<Duration::rep>(std::min(middle - fifth + drawn, kLongest)));
}

RetryDecision RetryState::after(const AttemptEnd& end,
                                const RetryRules& rules,
                                std::uint64_t seed,
                                RetryThrottle* throttle) {
  const auto no_more = [](RetryResult why) { return RetryDecision{std::nullopt, why}; };
  // A6: a transparent retry does not count as an attempt, and says nothing about the server's load.
  if (end.is_unsent) {
    if (unsent_ == kMostUnsent) return no_more(RetryResult::kExhausted);
    ++unsent_;
    return {Duration::zero(), std::nullopt, true};
  }
  if (end.is_refused && !std::exchange(was_refused_, true))
    return {Duration::zero(), std::nullopt, true};
  if (end.code == 0) {
    if (throttle != nullptr) throttle->succeeded();
    return {};
  }
  const std::optional<Duration> pushback = end.pushback ? pushed_back(*end.pushback) : std::nullopt;
  const bool refuses = end.pushback && !pushback;
  const bool covered = rules.covers(end.code);
  // Failures that the rules cover, or after which the server asks not to retry, count in the
  // throttle. They count even if something else, such as a limit, prevents the retry.
  const bool throttled = (covered || refuses) && throttle != nullptr && !throttle->failed();
  if (!covered) return {};
  if (end.is_committed) return no_more(RetryResult::kCommitted);
  if (!end.is_kept) return no_more(RetryResult::kTooLarge);
  if (retries_ + 1 >= rules.max_attempts()) return no_more(RetryResult::kExhausted);
  if (throttled) return no_more(RetryResult::kThrottled);
  if (refuses) return no_more(RetryResult::kPushedBack);
  if (pushback) back_offs_ = 0;
  const Duration delay = pushback ? *pushback : back_off(rules, seed);
  if (delay >= end.time_left) return no_more(RetryResult::kTooLate);
  ++retries_;
  return {delay, RetryResult::kRetried};
}

}  // namespace signalbox::lb
