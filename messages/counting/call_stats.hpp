// SPDX-License-Identifier: Apache-2.0
//
// CallStats — counters of one target's calls to one cluster. Picks and the ends of calls write
// them, a scrape of the metrics reads them.
//
//   router, data plane ─▶ count_…() ─▶ [CallStats] ─▶ metrics/exporter ─▶ Prometheus

#pragma once

#include <cstddef>

#include "messages/counting/striped.hpp"
#include "messages/counting/striped_histogram.hpp"
#include "messages/endpoints.hpp"
#include "messages/session.hpp"

namespace signalbox {

enum class PickOutcome : std::uint8_t { kComplete, kQueue, kFail, kDrop };
inline constexpr std::size_t kPickOutcomes = 4;
/// The result of an attempt that failed with a code of its route's retry policy: another attempt
/// follows, or the reason why none does (gRFC A6). kExhausted can come without such a code.
enum class RetryResult : std::uint8_t {
  kRetried,
  kExhausted,   ///< max_attempts are made, or too many attempts reached no server.
  kThrottled,   ///< Too many of the target's calls fail.
  kPushedBack,  ///< The server asked for no retry.
  kCommitted,   ///< Response headers had come, so the call cannot be made again.
  kTooLarge,    ///< The request is too large to be kept for a retry.
  kTooLate,     ///< The next attempt would begin after the call's deadline.
};
inline constexpr std::size_t kRetryResults = 7;
/// Why the response to a session's call sets a cookie. kNew: the call had no cookie that names a
/// host. kMoved: the call's cookie names other hosts or another cluster. A cookie that is only
/// sealed anew is not counted.
enum class CookieSet : std::uint8_t { kNew, kMoved };
inline constexpr std::size_t kCookieSets = 2;
/// How far an endpoint's load report (A51) was used, if a CallTracker or a LoadListener wanted it.
enum class LoadReportResult : std::uint8_t {
  kTaken,
  kPartly,  ///< Invalid values of the report were left out.
  kRefused  ///< The report was malformed or too large.
};
inline constexpr std::size_t kLoadReportResults = 3;
/// gRPC status codes 0 … 16.
inline constexpr std::size_t kStatusCodes = 17;

/// The index of a gRPC status code in an array of kStatusCodes elements. A code out of range counts
/// as UNKNOWN.
constexpr std::size_t place_of_code(int code) {
  const bool known = code >= 0 && static_cast<std::size_t>(code) < kStatusCodes;
  return static_cast<std::size_t>(known ? code : 2);
}

class CallStats {
 public:
  /// `bounds`: the histogram's bucket bounds for the durations of attempts.
  explicit CallStats(DurationBounds bounds = kLatencyBounds) : durations_(bounds) {}

  void count_pick(PickOutcome outcome) const {
    counters_.add(kPicks + static_cast<std::size_t>(outcome), 1);
  }

  /// Also counts a complete pick by its endpoint's zone.
  void count_pick(PickOutcome outcome, CallZone zone) const {
    count_pick(outcome);
    if (outcome == PickOutcome::kComplete)
      counters_.add(kZones + static_cast<std::size_t>(zone), 1);
  }

  /// Prefetches the cache line that count_pick() will write.
  void prefetch() const { counters_.prefetch(kPicks); }

  void count_started() const { counters_.add(kStarted, 1); }

  /// `code`: a gRPC status code; a code out of range counts as UNKNOWN.
  void count_completed(int code) const { counters_.add(kCompleted + place_of_code(code), 1); }

  /// The time from the start of an attempt to its end.
  void record_duration(Duration duration) const { durations_.record(duration); }

  void count_retry(RetryResult result) const {
    counters_.add(kRetries + static_cast<std::size_t>(result), 1);
  }

  void count_affinity(AffinityResult result) const {
    counters_.add(kAffinity + static_cast<std::size_t>(result), 1);
  }

  void count_cookie(CookieSet reason) const {
    counters_.add(kCookies + static_cast<std::size_t>(reason), 1);
  }

  void count_load_report(LoadReportResult result) const {
    counters_.add(kLoadReports + static_cast<std::size_t>(result), 1);
  }

  std::int64_t picks(PickOutcome outcome) const {
    return counters_.sum(kPicks + static_cast<std::size_t>(outcome));
  }

  std::int64_t zone_calls(CallZone zone) const {
    return counters_.sum(kZones + static_cast<std::size_t>(zone));
  }

  std::int64_t started() const { return counters_.sum(kStarted); }

  std::int64_t completed(std::size_t code) const { return counters_.sum(kCompleted + code); }

  const StripedHistogram& durations() const { return durations_; }

  std::int64_t retries(RetryResult result) const {
    return counters_.sum(kRetries + static_cast<std::size_t>(result));
  }

  std::int64_t affinity(AffinityResult result) const {
    return counters_.sum(kAffinity + static_cast<std::size_t>(result));
  }

  std::int64_t cookies(CookieSet reason) const {
    return counters_.sum(kCookies + static_cast<std::size_t>(reason));
  }

  std::int64_t load_reports(LoadReportResult result) const {
    return counters_.sum(kLoadReports + static_cast<std::size_t>(result));
  }

 private:
  static constexpr std::size_t kPicks = 0;
  static constexpr std::size_t kZones = kPicks + kPickOutcomes;
  static constexpr std::size_t kStarted = kZones + kCallZones;
  static constexpr std::size_t kCompleted = kStarted + 1;
  static constexpr std::size_t kRetries = kCompleted + kStatusCodes;
  static constexpr std::size_t kAffinity = kRetries + kRetryResults;
  static constexpr std::size_t kCookies = kAffinity + kAffinityResults;
  static constexpr std::size_t kLoadReports = kCookies + kCookieSets;
  StripedCounters<kLoadReports + kLoadReportResults> counters_;
  const StripedHistogram durations_;
};

}  // namespace signalbox
