// SPDX-License-Identifier: Apache-2.0
//
// WaitList — the calls of one target that wait for the next publication.
//
//   queued call ─▶ add ──▶ [WaitList] ─▶ wake, from the runtime's waker thread: publish()
//   a thread    ─▶ wait ─┘
//
// No wake-up is lost: a call adds itself first and looks at Router::sequence() once more then; the
// runtime stores the snapshot first and publishes then. So one of the two sees the other.

#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "absl/functional/function_ref.h"

namespace signalbox::channel {

/// Someone who waits. Woken without any lock held, by any thread, and more often than needed.
class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual void wake() = 0;
};

class WaitList {
 public:
  void add(std::shared_ptr<Waiter> waiter);
  void remove(const Waiter* waiter);

  /// Wakes all who wait; to be called after each publication, off the scheduler's threads.
  void publish();

  /// The runtime is gone: from now on nothing is published, and calls fail. Wakes all who wait.
  void close();

  bool is_closed() const { return closed_.load(std::memory_order_acquire); }

  /// Blocks until `is_over` holds, the list is closed, or the deadline has passed. Returns whether
  /// it holds now, and the list is open: what came with the deadline still counts. `is_over` is
  /// called here, with no lock held, and once more after it has held.
  bool wait(absl::FunctionRef<bool()> is_over, std::chrono::steady_clock::time_point deadline);

  std::size_t size() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const Waiter*, std::shared_ptr<Waiter>> waiters_;
  std::atomic<bool> closed_{false};
};

}  // namespace signalbox::channel
