// SPDX-License-Identifier: Apache-2.0
//
// WaitList — the calls of one target that wait for the next publication.
//
//   queued call ─▶ add ──▶ [WaitList] ─▶ wake, from the runtime's waker thread: publish()
//   a thread    ─▶ wait ─┘
//
// No wake-up is lost. A call first adds itself to the list, and then reads Router::sequence()
// again. The runtime first stores the snapshot, and then calls publish(). So the call reads the new
// sequence, or publish() finds the call in the list.

#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "absl/functional/function_ref.h"

namespace signalbox::channel {

/// An entry of the list. wake() runs on any thread, which then holds no lock, and may also run
/// without a new snapshot.
class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual void wake() = 0;
};

class WaitList {
 public:
  void add(std::shared_ptr<Waiter> waiter);
  void remove(const Waiter* waiter);

  /// Wakes all waiters. Called after each publication, never on a thread of the actors' scheduler,
  /// because waiters run the application's code.
  void publish();

  /// Closes the list because the runtime has ended, or because the target is invalid: nothing is
  /// published from now on, and calls fail. Wakes all waiters.
  void close();

  bool is_closed() const { return closed_.load(std::memory_order_acquire); }

  /// Blocks until `is_over` returns true, the list is closed, or the deadline has passed. Returns
  /// true if `is_over` returns true at the end and the list is open, even if the deadline has
  /// passed. `is_over` runs on this thread, without a lock, and once more after it has first
  /// returned true.
  bool wait(absl::FunctionRef<bool()> is_over, std::chrono::steady_clock::time_point deadline);

  std::size_t size() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const Waiter*, std::shared_ptr<Waiter>> waiters_;
  std::atomic<bool> closed_{false};
};

}  // namespace signalbox::channel
