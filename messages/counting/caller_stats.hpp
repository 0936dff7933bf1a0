// SPDX-License-Identifier: Apache-2.0
//
// CallerStats — what the callers of one target saw: how their calls ended, how long the calls took,
// and how long they waited for an endpoint. The counters are striped (striped.hpp).
//
//   drop-in channel, Pick API ─▶ count(), record_wait() ─▶ [CallerStats] ─▶ metrics/exporter
//
// CallStats counts attempts on a cluster. A call that reaches no cluster is counted only here.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "messages/counting/call_stats.hpp"
#include "messages/counting/striped_histogram.hpp"

namespace signalbox {

/// Why a call waits for an endpoint (gRFC A121).
enum class DelayReason : std::uint8_t {
  kResolving,    ///< There is no configuration yet.
  kConnecting,   ///< The picker waits for a connection.
  kStalePick,    ///< The picked connection has died, and the picker does not know it yet.
  kFailing,      ///< The picker fails calls, and this call is wait_for_ready.
  kFilterDelay,  ///< A filter delays the call (A33).
  kStreams,      ///< All streams of the picked endpoint's connections are in use (A105).
};
inline constexpr std::size_t kDelayReasons = 6;

/// The reason for a wait, and the priority (of a priority policy) that makes the call wait.
struct DelayType {
  /// The last priority with a counter of its own. Greater priorities are counted as this priority.
  static constexpr std::uint8_t kLastPriority = 15;

  DelayReason reason = DelayReason::kConnecting;
  std::optional<std::uint8_t> priority = std::nullopt;  ///< See Pick::priority() of lb/pick/router.

  friend bool operator==(const DelayType&, const DelayType&) = default;
};

/// "p0:connecting": the priority, then gRPC's word (A121). Without a priority only the word.
std::string to_string(const DelayType& type);

class CallerStats {
 public:
  /// `bounds`: the histograms' bucket bounds, for calls and for waits.
  explicit CallerStats(DurationBounds bounds = kLatencyBounds)
      : bounds_(bounds), durations_(bounds) {}

  ~CallerStats() {
    for (const auto& wait : waits_)
      delete wait.load(std::memory_order_acquire);
  }

  CallerStats(const CallerStats&) = delete;
  CallerStats& operator=(const CallerStats&) = delete;

  /// A call has ended for the application. `code`: a gRPC status code; a code out of range counts
  /// as UNKNOWN.
  void count_call(int code) const { codes_.add(place_of_code(code), 1); }

  /// As count_call(). `duration`: from the beginning of the call to its end.
  void count(int code, Duration duration) const {
    count_call(code);
    durations_.record(duration);
  }

  /// A call has waited for an endpoint. The first wait of a type allocates.
  void record_wait(DelayType type, Duration duration) const { waits(type).record(duration); }

  std::int64_t calls(std::size_t code) const { return codes_.sum(code); }

  const StripedHistogram& durations() const { return durations_; }

  /// Null: no wait was of this type, that is, had this reason and this priority.
  const StripedHistogram* waits_of(DelayType type) const {
    return waits_[place_of(type)].load(std::memory_order_acquire);
  }

 private:
  static constexpr std::size_t kPriorities = std::size_t{DelayType::kLastPriority} + 2;

  static std::size_t place_of(DelayType type) {
    const std::size_t priority =
        type.priority ? std::size_t{1} + std::min(*type.priority, DelayType::kLastPriority) : 0;
    return static_cast<std::size_t>(type.reason) * kPriorities + priority;
  }

  const StripedHistogram& waits(DelayType type) const {
    std::atomic<const StripedHistogram*>& place = waits_[place_of(type)];
    const StripedHistogram* known = place.load(std::memory_order_acquire);
    if (known != nullptr) return *known;
    auto made = std::make_unique<const StripedHistogram>(bounds_);
    if (!place.compare_exchange_strong(
            known, made.get(), std::memory_order_acq_rel, std::memory_order_acquire))
      return *known;  // Another thread was faster.
    return *made.release();
  }

  const DurationBounds bounds_;
  StripedCounters<kStatusCodes> codes_;
  const StripedHistogram durations_;
  mutable std::array<std::atomic<const StripedHistogram*>, kDelayReasons * kPriorities> waits_{};
};

}  // namespace signalbox
