// SPDX-License-Identifier: Apache-2.0
//
// Tracked, Use — what a call holds while it runs, without a shared reference count.
//
//   pick ─▶ Use (move-only) ─▶ kept by the call ─▶ ~Use
//
// A Tracked object is owned by the control plane, through shared_ptr. Once no snapshot can reach
// it any more, no new Use can begin; its owner then waits until in_use() is false before the
// object is destroyed (actors/reclaimer). So a Use outlives picker, policy and snapshot.

#pragma once

#include <utility>

#include "messages/striped.hpp"

namespace signalbox {

class Tracked {
 public:
  Tracked() = default;
  Tracked(const Tracked&) = delete;
  Tracked& operator=(const Tracked&) = delete;
  virtual ~Tracked() = default;

  /// Whether a Use is alive. False is final once no snapshot leads here.
  bool in_use() const { return uses_.sum(0) != 0; }

  std::int64_t uses() const { return uses_.sum(0); }

 private:
  friend class Use;
  StripedCounters<1> uses_;
};

/// One call's hold on a Tracked object; may be released on any thread.
class Use {
 public:
  Use() = default;

  explicit Use(const Tracked& tracked) : tracked_(&tracked) { tracked_->uses_.add(0, 1); }

  Use(Use&& other) noexcept : tracked_(std::exchange(other.tracked_, nullptr)) {}

  Use& operator=(Use&& other) noexcept {
    std::swap(tracked_, other.tracked_);
    return *this;
  }

  ~Use() {
    if (tracked_ != nullptr) tracked_->uses_.add(0, -1);
  }

  explicit operator bool() const { return tracked_ != nullptr; }

  const Tracked* get() const { return tracked_; }

 private:
  const Tracked* tracked_ = nullptr;
};

}  // namespace signalbox
