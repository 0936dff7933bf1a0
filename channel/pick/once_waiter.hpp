// SPDX-License-Identifier: Apache-2.0
//
// OnceWaiter — a waiter that makes one call, unless it is cancelled before.
//
//   Router::on_change, pick_async ─▶ wait() ─▶ [WaitList] ─▶ wake() ─▶ is it over? ─▶ call()
//   Registration ─▶ cancel() ─┘                a timer ─▶ end()
//
// Invariants
//   W1  call() runs at most once, with no lock held, and not after a cancel() that returned true.
//   W2  While the waiter waits, it is in the list and owns the list. So call() runs at the latest
//       when the list is closed.
//   W3  A publication while is_over() runs leads to another call of is_over().

#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "channel/pick/wait_list.hpp"

namespace signalbox::channel {

class OnceWaiter : public Waiter, public std::enable_shared_from_this<OnceWaiter> {
 public:
  /// `list` may be an aliasing pointer. It then owns the list and everything else that must live
  /// until call().
  explicit OnceWaiter(std::shared_ptr<WaitList> list) : list_(std::move(list)) {}

  /// Begins to wait, and checks is_over() at once. May run call() before it returns. Does not run
  /// call() if end() was called before, because end() has run it.
  void wait();

  void wake() override { look(/*time_is_over=*/false); }

  /// Runs call() because the time limit has passed, with or without a new publication.
  void end() { look(/*time_is_over=*/true); }

  /// Ends the wait without call(). True: this cancellation prevented the call.
  bool cancel();

 protected:
  const WaitList& list() const { return *list_; }

 private:
  /// Whether the wait is over. Run by one thread at a time.
  virtual bool is_over() = 0;
  /// Run by the thread that found the wait to be over.
  virtual void call() = 0;

  void look(bool time_is_over);

  const std::shared_ptr<WaitList> list_;
  std::mutex mutex_;
  bool done_ = false;
};

}  // namespace signalbox::channel
