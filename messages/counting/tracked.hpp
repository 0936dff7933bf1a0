// SPDX-License-Identifier: Apache-2.0
//
// Tracked, Use — a call's hold on an object. It is counted in a striped counter, not in a reference
// count that all calls would write.
//
//   pick ─▶ Use (move-only) ─▶ kept by the call ─▶ ~Use
//
// Policies, pickers and selectors own a Tracked object through a shared_ptr, which make_tracked()
// or, for a Connection, the connector has made. Once no snapshot can reach the object, no new Use
// can begin. After the last owner's release, the shared_ptr passes the object to Retirement, which
// destroys it when in_use() is false. So a Use keeps its object alive even if all owners are gone.

#pragma once

#include <memory>
#include <utility>

#include "messages/counting/use_counter.hpp"

namespace signalbox {

class Tracked {
 public:
  Tracked() : uses_(UseCounter::take()) {}

  Tracked(const Tracked&) = delete;
  Tracked& operator=(const Tracked&) = delete;

  virtual ~Tracked() { uses_.give_back(); }

  /// Whether a Use is alive. False is final once no snapshot leads to the object.
  bool in_use() const { return uses_.sum() != 0; }

  std::int64_t uses() const { return uses_.sum(); }

  /// The counter of the Use objects. With a copy of it, a pick can begin a Use without reading this
  /// object, which may not be in the CPU's cache.
  UseCounter use_counter() const { return uses_; }

 private:
  const UseCounter uses_;
};

/// Destroys Tracked objects after their last owner has released them. Thread-safe, never blocks.
class Retirement {
 public:
  virtual ~Retirement() = default;

  /// Destroys `object` when it is not in use. Precondition: no snapshot leads to it.
  virtual void retire(std::unique_ptr<const Tracked> object) = 0;
};

/// Makes a Tracked object. When its last owner releases it, `retirement` destroys it as soon as no
/// call uses it. Without a `retirement` (in tests) it is destroyed at once.
template <typename T, typename... Args>
std::shared_ptr<const T> make_tracked(const std::shared_ptr<Retirement>& retirement,
                                      Args&&... args) {
  auto object = std::make_unique<const T>(std::forward<Args>(args)...);
  return std::shared_ptr<const T>(object.release(), [retirement](const T* unused) {
    std::unique_ptr<const Tracked> owned(unused);
    if (retirement != nullptr) retirement->retire(std::move(owned));
  });
}

/// One call's hold on a Tracked object; may be released on any thread.
class Use {
 public:
  Use() = default;

  explicit Use(const Tracked& tracked) : Use(tracked, tracked.use_counter()) {}

  /// `counter` is tracked.use_counter(); `tracked` itself is not read.
  Use(const Tracked& tracked, UseCounter counter) : tracked_(&tracked), counter_(counter) {
    counter_.add(1);
  }

  Use(Use&& other) noexcept
      : tracked_(std::exchange(other.tracked_, nullptr)), counter_(other.counter_) {}

  Use& operator=(Use&& other) noexcept {
    std::swap(tracked_, other.tracked_);
    std::swap(counter_, other.counter_);
    return *this;
  }

  ~Use() {
    if (tracked_ != nullptr) counter_.add(-1);
  }

  explicit operator bool() const { return tracked_ != nullptr; }

  const Tracked* get() const { return tracked_; }

 private:
  const Tracked* tracked_ = nullptr;
  UseCounter counter_;
};

}  // namespace signalbox
