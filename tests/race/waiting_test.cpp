// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "actors/reclaimer.hpp"
#include "actors/waker.hpp"
#include "channel/pick/once_waiter.hpp"
#include "lb/pick/router.hpp"

namespace signalbox::waiting_test {
namespace {

constexpr int kThreads = 3;

class Sleeper final : public channel::Waiter {
 public:
  void wake() override {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }

  /// Waits for wake(). Returns false if none came in 30 s: then a wake-up was lost.
  bool sleep() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] { return woken_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
};

// Waits as Router::wait() and channel/grpc/queued_call.cpp do: enters the list first, and looks at
// the snapshot's sequence again after that.
bool wait_for_newer(channel::WaitList& waiting, const lb::Router& router, std::uint64_t seen) {
  bool arrived = true;
  while (arrived && router.sequence() == seen && !waiting.is_closed()) {
    const auto sleeper = std::make_shared<Sleeper>();
    waiting.add(sleeper);
    arrived = router.sequence() != seen || waiting.is_closed() || sleeper->sleep();
    waiting.remove(sleeper.get());
  }
  return arrived;
}

}  // namespace

TEST_CASE("wait_list: no publication is missed, and its end wakes all", "[channel][race]") {
  const auto cell = std::make_shared<lb::SnapshotCell>();
  const auto waiting = std::make_shared<channel::WaitList>();
  const lb::Router router(cell);
  constexpr std::uint64_t kPublications = 2'000;
  std::atomic<int> lost{0};
  std::vector<std::thread> callers;
  callers.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    callers.emplace_back([&] {
      while (!waiting->is_closed()) {
        if (!wait_for_newer(*waiting, router, router.sequence())) ++lost;
      }
    });
  }
  {
    actors::ReclaimerThread reclaimer;
    actors::Waker waker;
    for (std::uint64_t sequence = 1; sequence <= kPublications; ++sequence) {
      auto snapshot = std::make_unique<lb::Snapshot>();
      snapshot->sequence = sequence;
      reclaimer.handle()->retire(cell->exchange(std::move(snapshot)), [] {});
      waker.post([waiting] { waiting->publish(); });
    }
  }
  waiting->close();
  for (std::thread& caller : callers)
    caller.join();
  CHECK(lost == 0);
  CHECK(waiting->size() == 0);
}

// Each waiter waits for one publication. Every other waiter gets a cancel(), perhaps during or
// after the call of its callback.
TEST_CASE("once_waiter: calls once or is cancelled, never both, and is never forgotten",
          "[channel][race]") {
  const auto cell = std::make_shared<lb::SnapshotCell>();
  const auto waiting = std::make_shared<channel::WaitList>();
  const lb::Router router(cell);
  constexpr std::size_t kWaiters = 5'000;  // The number of waiters of each thread.

  struct Counted final : channel::OnceWaiter {
    Counted(std::shared_ptr<channel::WaitList> list, const lb::Router& from)
        : OnceWaiter(std::move(list)), router(from), seen(from.sequence()) {}

    bool is_over() override { return router.sequence() != seen || list().is_closed(); }

    void call() override { ++calls; }

    const lb::Router router;
    const std::uint64_t seen;
    std::atomic<int> calls{0};
    std::atomic<bool> cancelled{false};
  };

  std::vector<std::vector<std::shared_ptr<Counted>>> waiters(kThreads);
  std::atomic<int> running{kThreads};
  std::vector<std::thread> callers;
  callers.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    callers.emplace_back([&, thread] {
      auto& mine = waiters[static_cast<std::size_t>(thread)];
      while (mine.size() < kWaiters) {
        mine.push_back(std::make_shared<Counted>(waiting, router));
        mine.back()->wait();
        if (mine.size() % 2 == 0 && mine.back()->cancel()) mine.back()->cancelled = true;
      }
      --running;
    });
  }
  {
    std::atomic<std::uint64_t> woken{0};
    actors::ReclaimerThread reclaimer;
    actors::Waker waker;
    for (std::uint64_t sequence = 1; running > 0; ++sequence) {
      auto snapshot = std::make_unique<lb::Snapshot>();
      snapshot->sequence = sequence;
      reclaimer.handle()->retire(cell->exchange(std::move(snapshot)), [] {});
      waker.post([waiting, &woken] {
        waiting->publish();
        ++woken;
      });
      // Publications are at most 64 ahead of the waker. Without this limit, a busy machine lets the
      // jobs pile up, and the waker takes the list's lock so often that the callers rarely get it.
      while (sequence - woken > 64)
        std::this_thread::yield();
    }
  }
  for (std::thread& caller : callers)
    caller.join();
  waiting->close();
  int wrong = 0;
  for (const auto& mine : waiters) {
    for (const auto& waiter : mine)
      wrong += waiter->calls + (waiter->cancelled ? 1 : 0) == 1 ? 0 : 1;
  }
  CHECK(wrong == 0);
  CHECK(waiting->size() == 0);
}

TEST_CASE("waker: what threads post runs, each thread's in its order", "[actors][race]") {
  constexpr int kJobs = 2'000;
  std::vector<std::vector<int>> ran(kThreads);
  {
    actors::Waker waker;
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        auto& mine = ran[static_cast<std::size_t>(thread)];
        for (int i = 0; i < kJobs; ++i)
          waker.post([&mine, i] { mine.push_back(i); });
      });
    }
    for (std::thread& thread : threads)
      thread.join();
  }
  for (const auto& jobs : ran) {
    CHECK(jobs.size() == kJobs);
    CHECK(std::is_sorted(jobs.begin(), jobs.end()));
  }
}

}  // namespace signalbox::waiting_test
