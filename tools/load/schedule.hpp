// SPDX-License-Identifier: Apache-2.0
//
// schedule — the moments at which calls are due: an open loop's only input.
//
//   "100..2000/30s" ─▶ [parse_rate] ─▶ RateProfile ─▶ [Schedule] ─▶ when the next call is due
//
//   rate     = part { "," part }            the last part lasts until the end
//   part     = NUMBER [ ".." NUMBER ] [ "/" DURATION ]
//   "200"                 200 calls a second
//   "100..2000/30s"       rises evenly for 30 s, then stays at 2000
//   "100/10s,500/10s,100" steps
//
// The expected number of calls until t is the integral of the rate. Even arrivals stand where the
// integral reaches a whole number. The distances of Poisson arrivals on the integral are drawn from
// an exponential distribution. A seed gives the same moments in every process. Processes that share
// a schedule therefore need no messages: each draws all moments, and makes every n-th call.

#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace signalbox::tools {

struct RatePart {
  double from = 0;  ///< Calls a second at its beginning.
  double to = 0;    ///< Calls a second at its end.
  /// The length. The last part has no end, and its rate must not change: from == to.
  double seconds = 0;
};

using RateProfile = std::vector<RatePart>;

/// The highest rate that a part may have.
inline constexpr double kMostRate = 10'000'000;

/// INVALID_ARGUMENT names the part that is wrong. Every part but the last needs a duration; a ramp
/// always does.
absl::StatusOr<RateProfile> parse_rate(absl::string_view text);

/// The moment of `--start-at`: RFC 3339, such as 2026-11-26T13:00:00Z. INVALID_ARGUMENT if it is no
/// such text, has passed, or is more than a day away.
absl::StatusOr<absl::Time> parse_start(absl::string_view text, absl::Time now);

/// Puts a part before the profile that keeps the profile's first rate for `seconds`.
RateProfile with_warmup(RateProfile profile, double seconds);

/// The expected number of calls within the first `seconds`.
double expected_calls(const RateProfile& profile, double seconds);

enum class Arrivals : std::uint8_t { kPoisson, kEven };

/// The calls of a schedule that one of several processes makes: the calls with the numbers index,
/// index + count, index + 2 * count, and so on. The default is all calls.
struct ScheduleShare {
  std::uint64_t index = 0;
  std::uint64_t count = 1;
};

class Schedule {
 public:
  /// Precondition: `profile` is not empty, its last rate is more than 0, and `share.index` is less
  /// than `share.count`.
  Schedule(RateProfile profile, Arrivals arrivals, std::uint64_t seed, ScheduleShare share = {});

  /// When the next call of the share is due, from the beginning of the profile. Never allocates.
  std::chrono::nanoseconds next();

 private:
  std::chrono::nanoseconds draw();

  RateProfile profile_;
  Arrivals arrivals_;
  std::mt19937_64 dice_;
  ScheduleShare share_;
  std::uint64_t others_;  // Calls of other processes before the next call of this share.
  std::size_t part_ = 0;
  double part_began_ = 0;  // The beginning of the part, in seconds.
  double left_ = 0;        // Expected calls from the part's beginning to the next call.
};

}  // namespace signalbox::tools
