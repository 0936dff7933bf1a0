// SPDX-License-Identifier: Apache-2.0
//
// Happened — a queue of events that another thread reports to a test.
//
//   other thread ─▶ add() ─▶ [Happened] ─▶ next(): waits; fails the test after kPatience ─▶ event

#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include <catch2/catch.hpp>

#include "tests/support/process.hpp"

namespace signalbox::test {

/// Any thread may add; one thread waits for the next event.
template <typename T>
class Happened {
 public:
  void add(T what) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(what));
    changed_.notify_all();
  }

  T next() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kPatience, [this] { return !all_.empty(); })) {
      FAIL("nothing happened");
    }
    T what = std::move(all_.front());
    all_.pop_front();
    return what;
  }

  bool is_empty() const {
    const std::lock_guard lock(mutex_);
    return all_.empty();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> all_;
};

}  // namespace signalbox::test
