// SPDX-License-Identifier: Apache-2.0
//
// CallTracker — counts a call while it runs: circuit breaker, outliers, calls in flight.
//
//   Picker ─▶ PickResult::trackers ─▶ router: begun() ─▶ Tracking, kept by the call ─▶ ended()
//
// A picker that completes a pick lists its trackers in the PickResult. Each picker around it adds
// its own trackers. The router calls begun() on every listed tracker, inside the snapshot's read
// section. When the call ends, ended() is called on every one of them, on any thread. A tracker is
// Tracked (tracked.hpp): it lives until the call has ended, even if picker and policy are gone.
//
// At most one of the trackers is a gate, which may refuse the call. The router calls the gate's
// enter() after all pickers have chosen, and before any begun(). A refused call therefore begins on
// no tracker.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"

#include "messages/counting/tracked.hpp"
#include "messages/ids.hpp"
#include "messages/load_report.hpp"

namespace signalbox {

/// How a call ended, as the code that sent the call reports it.
struct CallEnd {
  /// gRPC's status code; nullopt: the call never reached the endpoint, so its end says nothing
  /// about the endpoint.
  std::optional<int> code;
  /// The load that the endpoint reported in this response (A51). Valid only during ended(). Null:
  /// none was reported, no tracker wants it, or the call is one of the drop-in channel, which reads
  /// no load reports.
  const LoadReport* load = nullptr;
  Instant now{};  ///< The time of the call's end; set only with `load`.
};

class CallTracker : public Tracked {
 public:
  /// The call begins. Lock-free, allocates nothing.
  virtual void begun() const noexcept {}

  virtual void ended(const CallEnd& end) const noexcept = 0;

  /// Whether ended() reads CallEnd::load. While no tracker of a call does, the response's load
  /// report is not read.
  virtual bool wants_load() const noexcept { return false; }
};

using CallTrackerPtr = std::shared_ptr<const CallTracker>;

/// Limits the number of calls that run at a time (A32). The router calls enter() only when the pick
/// is otherwise complete, and nothing can fail after that. The limit is therefore exact, and a call
/// that waits or fails does not count against it.
class CallGate : public CallTracker {
 public:
  /// Returns whether the call may run. The call then counts against the limit until ended().
  /// Lock-free, allocates nothing.
  virtual bool enter() const noexcept = 0;

  /// Counts a refused call, and returns the status with which the call is dropped.
  virtual absl::Status refuse() const = 0;

  /// The greatest number of calls that may run at a time.
  virtual std::uint32_t limit() const = 0;

  /// Whether a call would be refused now.
  virtual bool is_full() const = 0;
};

using CallGatePtr = std::shared_ptr<const CallGate>;

/// The trackers that a pick names: at most kMost, in a fixed array, so that a pick allocates
/// nothing.
class TrackerList {
 public:
  static constexpr std::size_t kMost = 6;

  /// Returns false and adds nothing if the list already has kMost trackers.
  bool add(const CallTracker& tracker) {
    if (size_ == kMost) return false;
    trackers_[size_++] = &tracker;
    return true;
  }

  /// Like add(). Also returns false if the list has a gate already: a call goes to one cluster, and
  /// a cluster has one gate.
  bool add_gate(const CallGate& gate) {
    if (gate_ != nullptr || !add(gate)) return false;
    gate_ = &gate;
    return true;
  }

  /// Null: no gate, the call may run.
  const CallGate* gate() const { return gate_; }

  const CallTracker* const* begin() const { return trackers_.data(); }

  const CallTracker* const* end() const { return trackers_.data() + size_; }

 private:
  std::size_t size_ = 0;
  const CallGate* gate_ = nullptr;
  std::array<const CallTracker*, kMost> trackers_;  // Only the first size_ are set.
};

/// A call's hold on its trackers. begin() calls begun() on each tracker. end(), the destructor or
/// an assignment to this object calls ended() once. Move-only.
class Tracking {
 public:
  Tracking() = default;

  explicit Tracking(const TrackerList& trackers) { begin(trackers); }

  Tracking(Tracking&& other) noexcept { *this = std::move(other); }

  Tracking& operator=(Tracking&& other) noexcept {
    if (this == &other) return *this;
    end({});
    size_ = std::exchange(other.size_, 0);
    std::copy_n(other.held_.begin(), size_, held_.begin());
    return *this;
  }

  ~Tracking() { end({}); }

  /// Preconditions: no tracker is held; the gate, if there is one, has been entered.
  void begin(const TrackerList& trackers) {
    for (const CallTracker* tracker : trackers) {
      held_[size_] = {tracker, tracker->use_counter()};
      held_[size_++].counter.add(1);
      tracker->begun();
    }
  }

  /// Holds one more tracker, which begin() has not had. Its begun() is not called. Precondition:
  /// add() was not called since begin().
  void add(const CallTracker& tracker) {
    held_[size_] = {&tracker, tracker.use_counter()};
    held_[size_++].counter.add(1);
  }

  /// Whether one of the trackers wants the call's load report. False after end().
  bool wants_load() const {
    return std::any_of(held_.begin(), held_.begin() + size_, [](const Held& held) {
      return held.tracker->wants_load();
    });
  }

  /// Tells each tracker how the call ended. A second call does nothing.
  void end(const CallEnd& end) {
    while (size_ > 0) {
      const Held held = held_[--size_];
      held.tracker->ended(end);
      held.counter.add(-1);
    }
  }

 private:
  /// Like a Use (tracked.hpp), but without a destructor, so an unused element of held_ costs
  /// nothing.
  struct Held {
    const CallTracker* tracker;
    UseCounter counter;
  };

  std::size_t size_ = 0;
  std::array<Held, TrackerList::kMost + 1> held_;  // Only the first size_ are set.
};

}  // namespace signalbox
