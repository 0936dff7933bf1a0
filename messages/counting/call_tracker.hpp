// SPDX-License-Identifier: Apache-2.0
//
// CallTracker — counts a call while it runs: circuit breaker, outliers, calls in flight.
//
//   Picker ─▶ PickResult::trackers ─▶ router: begun() ─▶ Tracking, kept by the call ─▶ ended()
//
// A picker that completes names its trackers, the innermost first; each wrapping picker adds its
// own. The router begins the trackers inside the read section. Each tracker is Tracked, so it
// outlives picker and policy. begun() and ended() are called once each per call, on any thread.
//
// One tracker may be a gate. The router asks the gate last, and the gate may turn the call away.

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

namespace signalbox {

/// How a call ended, as the data plane saw it.
struct CallEnd {
  /// gRPC's status code; nullopt: the call never reached the endpoint, and says nothing about it.
  std::optional<int> code;
};

class CallTracker : public Tracked {
 public:
  /// Lock-free, allocates nothing.
  virtual void begun() const noexcept {}

  virtual void ended(const CallEnd& end) const noexcept = 0;
};

using CallTrackerPtr = std::shared_ptr<const CallTracker>;

/// Limits the number of calls that run at a time (A32). The router asks the gate for a complete
/// pick, before any tracker begins. So the limit is exact, and a call that waits or fails never
/// takes a place.
class CallGate : public CallTracker {
 public:
  /// Whether the call may run. Such a call is inside until ended(). Lock-free, allocates nothing.
  virtual bool enter() const noexcept = 0;

  /// Counts a call that was turned away, and returns the status that the call is dropped with.
  virtual absl::Status refuse() const = 0;

  /// The most calls that may be inside.
  virtual std::uint32_t limit() const = 0;

  /// Whether a call would be turned away now.
  virtual bool is_full() const = 0;
};

using CallGatePtr = std::shared_ptr<const CallGate>;

/// The trackers that a pick names: a fixed number, so that a pick allocates nothing.
class TrackerList {
 public:
  static constexpr std::size_t kMost = 6;

  /// Returns false, and adds nothing, beyond kMost.
  bool add(const CallTracker& tracker) {
    if (size_ == kMost) return false;
    trackers_[size_++] = &tracker;
    return true;
  }

  /// As add(). A second gate is refused, because a call passes one cluster.
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

/// A call's hold on its trackers. Construction begins them; they end once. Move-only.
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

  /// Tells each tracker how the call ended. A second call does nothing.
  void end(const CallEnd& end) {
    while (size_ > 0) {
      const Held held = held_[--size_];
      held.tracker->ended(end);
      held.counter.add(-1);
    }
  }

 private:
  /// Like a Use, but an empty place costs nothing to destroy.
  struct Held {
    const CallTracker* tracker;
    UseCounter counter;
  };

  std::size_t size_ = 0;
  std::array<Held, TrackerList::kMost> held_;  // Only the first size_ are set.
};

}  // namespace signalbox
