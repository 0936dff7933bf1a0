// SPDX-License-Identifier: Apache-2.0
//
// OnceWaiter — waits for a publication (a new snapshot for picks), and then calls the virtual
// function call() once, unless it is cancelled before.
//
//   Router::on_change, pick_async ─▶ wait() ─▶ [WaitList] ─▶ wake() ─▶ is it over? ─▶ call()
//   Registration ─▶ cancel() ─┘                a timer ─▶ end()
//
// Invariants
//   W1  call() runs at most once, with no lock held, and not after a cancel() that returned true.
//   W2  While the waiter waits, it is in the WaitList and owns the list. So call() runs at the
//       latest when the list is closed.
//   W3  A publication while is_over() runs leads to another call of is_over(), unless the first
//       call has ended the wait.

#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "channel/pick/wait_list.hpp"

namespace signalbox::channel {

class OnceWaiter : public Waiter, public std::enable_shared_from_this<OnceWaiter> {
 public:
  /// `list` may be an aliasing pointer, which points to the list and owns a larger object that must
  /// live until call().
  explicit OnceWaiter(std::shared_ptr<WaitList> list) : list_(std::move(list)) {}

  /// Begins to wait, and checks is_over() at once. May run call() on this thread, before wait()
  /// returns. If end() was called before, end() has run call(), and wait() does not run call()
  /// again.
  void wait();

  void wake() override { look(/*time_is_over=*/false); }

  /// Runs call() because the time limit has passed, with or without a new publication.
  void end() { look(/*time_is_over=*/true); }

  /// Ends the wait without call(). True: this cancellation prevented the call.
  bool cancel();

 protected:
  const WaitList& list() const { return *list_; }

 private:
  /// Whether the wait is over. Two threads never run it at the same time.
  virtual bool is_over() = 0;
  /// Runs on the thread that got true from is_over(), or that called end().
  virtual void call() = 0;

  void look(bool time_is_over);

  const std::shared_ptr<WaitList> list_;
  std::mutex mutex_;
  bool done_ = false;
};

}  // namespace signalbox::channel
