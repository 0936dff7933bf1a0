// SPDX-License-Identifier: Apache-2.0
//
// CallTracker — what counts a call while it runs: circuit breaker, outliers, calls in flight.
//
//   Picker ─▶ PickResult::trackers ─▶ router: begun() ─▶ Tracking, kept by the call ─▶ ended()
//
// A picker that completes names its trackers, the innermost first; whoever wraps it adds its own.
// The router begins them inside the read section, so that they outlive picker and policy (each is
// Tracked). begun() and ended() are called once each per call, on any threads.
//
// One of them may be a gate: it is asked when all else is settled, and may turn the call away.

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
  /// gRPC's status code; nullopt: it never reached the endpoint, and says nothing about it.
  std::optional<int> code;
};

class CallTracker : public Tracked {
 public:
  /// Lock-free, allocates nothing.
  virtual void begun() const noexcept {}

  virtual void ended(const CallEnd& end) const noexcept = 0;
};

using CallTrackerPtr = std::shared_ptr<const CallTracker>;

/// Lets a number of calls run at a time (A32). Asked by the router, for a pick that is complete and
/// before anybody begins: so the number is exact, and a place is never taken for a call that waits
/// or fails.
class CallGate : public CallTracker {
 public:
  /// Whether the call may run; it is inside then, until ended(). Lock-free, allocates nothing.
  virtual bool enter() const noexcept = 0;

  /// Counts a call that was turned away, and says why: what it is dropped with.
  virtual absl::Status refuse() const = 0;

  /// How many may be inside.
  virtual std::uint32_t limit() const = 0;

  /// Whether a call would be turned away now.
  virtual bool is_full() const = 0;
};

using CallGatePtr = std::shared_ptr<const CallGate>;

/// The trackers that a pick names: a fixed number, so that a pick allocates nothing.
class TrackerList {
 public:
  static constexpr std::size_t kMost = 6;

  /// False, and nothing is added, beyond kMost.
  bool add(const CallTracker& tracker) {
    if (size_ == kMost) return false;
    trackers_[size_++] = &tracker;
    return true;
  }

  /// As add(). Of two gates the second is refused: a call passes one cluster.
  bool add_gate(const CallGate& gate) {
    if (gate_ != nullptr || !add(gate)) return false;
    gate_ = &gate;
    return true;
  }

  /// Null: the call may run.
  const CallGate* gate() const { return gate_; }

  const CallTracker* const* begin() const { return trackers_.data(); }

  const CallTracker* const* end() const { return trackers_.data() + size_; }

 private:
  std::size_t size_ = 0;
  const CallGate* gate_ = nullptr;
  std::array<const CallTracker*, kMost> trackers_;  // The first size_ mean something.
};

/// What a call holds of its trackers: begun by construction, ended once. Move-only.
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

  /// Preconditions: it holds none; the gate, where there is one, has been entered.
  void begin(const TrackerList& trackers) {
    for (const CallTracker* tracker : trackers) {
      held_[size_] = {tracker, tracker->use_counter()};
      held_[size_++].counter.add(1);
      tracker->begun();
    }
  }

  /// Tells each how the call ended; a second time: nobody is left to be told.
  void end(const CallEnd& end) {
    while (size_ > 0) {
      const Held held = held_[--size_];
      held.tracker->ended(end);
      held.counter.add(-1);
    }
  }

 private:
  /// What a Use is, but that nothing has to be done for places that hold none.
  struct Held {
    const CallTracker* tracker;
    UseCounter counter;
  };

  std::size_t size_ = 0;
  std::array<Held, TrackerList::kMost> held_;  // The first size_ mean something.
};

}  // namespace signalbox
