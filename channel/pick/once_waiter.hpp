// SPDX-License-Identifier: Apache-2.0
//
// OnceWaiter — a waiter that calls somebody once, unless it is cancelled before.
//
//   Router::on_change, pick_async ─▶ wait_for() ─▶ [WaitList] ─▶ wake() ─▶ is it over? ─▶ call()
//   Registration ─▶ cancel() ─┘                    a timer ─▶ end()
//
// Invariants
//   W1  call() runs at most once, with no lock held, and not after a cancel() that returned true.
//   W2  While it waits it is in the list, and keeps the list: who is to be told is told, at the
//       latest when the list is closed.
//   W3  A publication that comes while is_over() is being answered has it answered once more.

#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "channel/pick/wait_list.hpp"

namespace signalbox::channel {

class OnceWaiter : public Waiter, public std::enable_shared_from_this<OnceWaiter> {
 public:
  /// `list` may own more than the list: all that has to live until the call.
  explicit OnceWaiter(std::shared_ptr<WaitList> list) : list_(std::move(list)) {}

  /// Begins to wait, and looks at once. May call before it returns; where end() came first,
  /// nothing.
  void wait();

  void wake() override { look(/*time_is_over=*/false); }

  /// The time is over: calls, whether or not there is anything new.
  void end() { look(/*time_is_over=*/true); }

  /// Whether this has kept it from being called.
  bool cancel();

 protected:
  const WaitList& list() const { return *list_; }

 private:
  /// Whether there is nothing to wait for any more. By one thread at a time.
  virtual bool is_over() = 0;
  /// By the thread that found it to be over.
  virtual void call() = 0;

  void look(bool time_is_over);

  const std::shared_ptr<WaitList> list_;
  std::mutex mutex_;
  bool done_ = false;
};

}  // namespace signalbox::channel
