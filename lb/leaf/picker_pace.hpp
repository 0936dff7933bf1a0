// SPDX-License-Identifier: Apache-2.0
//
// PickerPace — decides when a leaf policy builds its next picker.
//
//   changes, by need ─▶ need() ─┐
//   end of a burst, last cost ──┼─▶ [PickerPace] ─▶ build now, or start a timer
//   fired timer ────────────────┘        ▲
//                                        └ built()
//
// A picker of n endpoints costs O(n). One picker for each of n endpoints that become READY would
// cost O(n²), and most of them would be replaced before any pick uses them. So a change waits if
// picks by the old picker do no harm meanwhile:
//
//   change                                           a pick with the picker before       need
//   an endpoint is READY beside other READY ones     goes to another READY endpoint      kMayWait
//   an endpoint for which calls wait (maglev)        waits, or takes another endpoint    kMayWait
//   other weights (slow start, load reports)         follows the old weights             kMayWait
//   another text of a failure, still all failed      fails with the text before          kMayWait
//   a READY endpoint is lost, unfit or removed       goes to a dead or unfit endpoint    kNow
//   the connection of a READY endpoint is replaced   goes to a dead connection           kNow
//   the configuration, or data of a READY endpoint   follows the old configuration       kNow
//   an endpoint for which calls wait (ring_hash)     waits                               kNow
//
// A change of the policy's state (the first READY, the last loss, TRANSIENT_FAILURE) is not paced:
// the policy publishes it in the same step.
//
// Invariants
//   I1  A picker with the need kNow is built at the end of the burst, without a wait.
//   I2  A picker with only the need kMayWait is built at the earliest max(interval, kShare × cost)
//       after the previous picker, whatever the need of the previous picker was. The cost is the
//       duration of the step that built the previous picker. A high cost makes the wait at most
//       kLongestWait.
//   I3  At most one timer runs. Each need ends in a picker: a burst end or a timer is always under
//       way while a need is open.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "messages/ids.hpp"

namespace signalbox::lb {

/// The `interval` of PickerPace's constructor that runtimes use.
inline constexpr Duration kPickerInterval = std::chrono::milliseconds(5);

class PickerPace {
 public:
  /// How urgently a picker is needed; a later value outranks an earlier one.
  enum class Need : std::uint8_t { kNone, kMayWait, kNow };

  /// Building pickers for Need::kMayWait takes at most about 1/kShare of the time, unless one
  /// picker costs more than kLongestWait / kShare.
  static constexpr int kShare = 20;
  /// The longest time between two pickers that a high cost can cause. Costs are measured, so a
  /// pause of the process can look like a cost.
  static constexpr Duration kLongestWait = std::chrono::seconds(1);

  struct Order {
    bool build = false;             ///< Build and publish a picker; built() must follow.
    std::optional<Duration> timer;  ///< Start a timer; timer_fired() must follow.

    friend bool operator==(const Order&, const Order&) = default;
  };

  /// `interval`: the least time between a picker and the next one, if the next one has
  /// Need::kMayWait.
  explicit PickerPace(Duration interval) : interval_(interval) {}

  /// Must be called when something changes that the published picker does not know.
  void need(Need need);

  /// Whether burst_ended() must be called at the end of this burst of events.
  bool awaits_burst() const;

  /// Whether a needed picker waits for the timer.
  bool waits() const { return need_ == Need::kMayWait && is_timed_; }

  /// Must be called at the end of a burst of events, if awaits_burst(). `cost`: the duration of the
  /// step that built the last picker; 0: unknown.
  Order burst_ended(Instant now, Duration cost);

  Order timer_fired(Instant now);

  /// Must be called after a picker was built, for an Order or for another reason. The picker must
  /// include all changes so far, because the need is then over.
  void built(Instant now);

 private:
  Order order(Instant now);
  Duration distance() const;

  Duration interval_;
  Duration cost_{};
  Need need_ = Need::kNone;
  bool is_timed_ = false;
  std::optional<Instant> built_;
};

}  // namespace signalbox::lb
