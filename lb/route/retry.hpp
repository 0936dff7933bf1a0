// SPDX-License-Identifier: Apache-2.0
//
// Retry — decides whether a call is retried after a failed attempt, and after which delay (gRFCs
// A6, A44).
//
//   RouteConfig ─▶ RetryRules in the selector ─▶ Selection, Pick ─┐
//   data plane: AttemptEnd ─────────────────────▶ [RetryState] ◀──┘─▶ RetryDecision: again, or not
//                                                      └── RetryThrottle, of all calls of a target
//
// RetryRules are a compact copy of a RetryPolicy. Each call has its own, because it may outlive the
// configuration. The copy needs no allocation and no reference count.
//
// Invariants
//   R1  A call has at most max_attempts attempts (A6). Attempts that no server received do not
//       count, up to kMostUnsent of them; without that bound, a call with failing credentials would
//       be tried for ever. The first attempt that a server refused without looking at it does not
//       count either.
//   R2  A call is not retried when the application may have seen a part of its response. (A6)
//   R3  If a back-off or pushback would last until the call's deadline, the call is not retried.

#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

#include "messages/counting/call_stats.hpp"
#include "messages/route_config.hpp"

namespace signalbox::lb {

class RetryRules {
 public:
  /// Rules that never retry.
  RetryRules() = default;
  explicit RetryRules(const RetryPolicy& policy);

  /// Whether an attempt that ended with this gRPC status code may be retried.
  bool covers(int code) const { return code >= 0 && code < 32 && ((codes_ >> code) & 1U) != 0; }

  bool is_none() const { return codes_ == 0; }

  std::uint32_t max_attempts() const { return max_attempts_; }

  /// The back-off before the next retry, without jitter, after `earlier` back-offs in a row.
  Duration delay(std::uint32_t earlier) const;

  /// Whether the policy says that retries avoid endpoints to which the call was sent before
  /// (previous_hosts). RuntimeOptions::retry_elsewhere can demand that too.
  bool avoids_tried() const { return avoids_tried_; }

  friend bool operator==(const RetryRules&, const RetryRules&) = default;

 private:
  std::uint32_t codes_ = 0;  // One bit for each code.
  std::uint32_t max_attempts_ = 1;
  bool avoids_tried_ = false;
  Duration base_{};
  Duration max_{};
};

/// A6's token bucket: while too many calls of a target fail, no call is retried, except
/// transparently. Thread-safe. While the bucket is full, calls that succeed only read it, so they
/// do not contend.
class RetryThrottle {
 public:
  /// Precondition: both arguments are more than 0. They are rounded to thousandths.
  RetryThrottle(double max_tokens, double token_ratio);

  void succeeded();

  /// Counts a failure that the retry policy covers, or after which the server asks not to retry.
  /// Returns whether the bucket allows a retry.
  bool failed();

 private:
  const std::int64_t most_;
  const std::int64_t ratio_;
  std::atomic<std::int64_t> tokens_;
};

/// How an attempt ended.
struct AttemptEnd {
  int code = 0;               ///< A gRPC status code.
  bool is_unsent = false;     ///< Certainly no server received the call.
  bool is_refused = false;    ///< A server received the call, but certainly did not process it.
  bool is_committed = false;  ///< Response headers came, so the response is not Trailers-Only.
  bool is_kept = true;        ///< The request was kept, and can be sent again.
  /// The trailer grpc-retry-pushback-ms, if it came.
  std::optional<absl::string_view> pushback = std::nullopt;
  Duration time_left = Duration::max();  ///< The time until the call's deadline.
};

struct RetryDecision {
  std::optional<Duration> delay;  ///< Set: another attempt follows, after this delay.
  /// The result to count. nullopt: the retry is transparent, or there was nothing to decide,
  /// because the call succeeded or its retry policy does not cover the failure.
  std::optional<RetryResult> result;
  bool is_transparent = false;  ///< The attempt that has ended does not count (A6).
};

/// A call's record of its attempts.
class RetryState {
 public:
  /// The most attempts of one call that may reach no server. The next one that reaches none ends
  /// the call (kExhausted).
  static constexpr std::uint32_t kMostUnsent = 100;

  /// Decides after an attempt has ended. Precondition: no attempt of the call is running. `seed`:
  /// the source of the call's random numbers. `throttle`: may be null.
  [[gnu::hot]] RetryDecision after(const AttemptEnd& end,
                                   const RetryRules& rules,
                                   std::uint64_t seed,
                                   RetryThrottle* throttle);

  /// How many attempts were made before the next one, without those that do not count (R1): the
  /// value of grpc-previous-rpc-attempts.
  std::uint32_t previous_attempts() const { return retries_; }

 private:
  Duration back_off(const RetryRules& rules, std::uint64_t seed);

  std::uint32_t unsent_ = 0;
  bool was_refused_ = false;
  std::uint32_t retries_ = 0;
  std::uint32_t back_offs_ = 0;  // Back-offs in a row; a pushback restarts the count.
};

}  // namespace signalbox::lb
