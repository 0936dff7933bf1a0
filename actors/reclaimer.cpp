// SPDX-License-Identifier: Apache-2.0
#include "actors/reclaimer.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

namespace signalbox::actors {
namespace {

// The interval between two checks whether calls still use an object.
constexpr auto kLookAgain = std::chrono::milliseconds(20);

using TrackedList = std::vector<std::unique_ptr<const Tracked>>;

// The longest interval between two checks of an orphan (an object that calls still use after their
// runtime has ended). An orphan may be in use for hours, so the interval doubles after each check.
constexpr auto kLongestPause = std::chrono::milliseconds(500);

// The longest wait for running destructors at the exit of the process.
constexpr auto kExitPatience = std::chrono::seconds(1);

// Objects that calls still used when their runtime ended, and the thread that destroys them. The
// thread lives while there are such objects.
class Orphans {
 public:
  // The instance is never destroyed, because a call may end at any time.
  static Orphans& instance() {
    static auto* const all = new Orphans;
    static const AtExit at_exit;
    return *all;
  }

  void add(TrackedList objects) {
    if (objects.empty()) return;
    const std::lock_guard lock(mutex_);
    std::move(objects.begin(), objects.end(), std::back_inserter(arrived_));
    changed_.notify_all();
    if (is_exiting_ || std::exchange(is_running_, true)) return;
    // An earlier thread may still have to be joined; its run() has ended.
    if (thread_.joinable()) thread_.join();
    thread_ = std::thread([this] { run(); });
  }

 private:
  // Ends the thread at the exit of the process. Objects that are still in use are not destroyed.
  struct AtExit {
    ~AtExit() { instance().exit(); }
  };

  void exit() {
    std::unique_lock lock(mutex_);
    is_exiting_ = true;
    changed_.notify_all();
    const bool is_over = changed_.wait_for(lock, kExitPatience, [this] { return !is_running_; });
    if (is_over && thread_.joinable()) thread_.join();
  }

  void run() {
    std::unique_lock lock(mutex_);
    auto pause = kLookAgain;
    while (!is_exiting_ && !(in_use_.empty() && arrived_.empty())) {
      if (!arrived_.empty()) pause = kLookAgain;
      std::move(arrived_.begin(), arrived_.end(), std::back_inserter(in_use_));
      arrived_.clear();
      lock.unlock();
      std::erase_if(in_use_, [](const auto& object) { return !object->in_use(); });
      lock.lock();
      if (in_use_.empty()) continue;
      changed_.wait_for(lock, pause, [this] { return is_exiting_ || !arrived_.empty(); });
      pause = std::min(2 * pause, kLongestPause);
    }
    is_running_ = false;
    changed_.notify_all();
  }

  TrackedList in_use_;  ///< Only the orphans' thread uses this list.
  std::mutex mutex_;    ///< Guards the members below.
  std::condition_variable changed_;
  TrackedList arrived_;
  std::thread thread_;
  bool is_running_ = false;
  bool is_exiting_ = false;
};

}  // namespace

class ReclaimerThread::Queue final : public Reclaimer {
 public:
  void retire(std::unique_ptr<const lb::Snapshot> old, std::function<void()> done) override {
    {
      const std::lock_guard lock(mutex_);
      if (!stopping_) {
        snapshots_.push_back({std::move(old), std::move(done)});
        changed_.notify_all();
        return;
      }
    }
    lb::SnapshotCell::wait_for_readers();
    old.reset();
    done();
  }

  void retire(std::unique_ptr<const Tracked> object) override {
    if (!object->in_use()) return;
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      TrackedList orphan;
      orphan.push_back(std::move(object));
      Orphans::instance().add(std::move(orphan));
      return;
    }
    arrived_.push_back(std::move(object));
    changed_.notify_all();
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }

  void run() {
    TrackedList in_use;
    bool stopped = false;
    while (!stopped) {
      std::vector<Retired> snapshots;
      {
        std::unique_lock lock(mutex_);
        wait_for_work(lock, !in_use.empty());
        snapshots.swap(snapshots_);
        std::move(arrived_.begin(), arrived_.end(), std::back_inserter(in_use));
        arrived_.clear();
        stopped = stopping_ && snapshots.empty();
      }
      reclaim(std::move(snapshots));
      std::erase_if(in_use, [](const auto& object) { return !object->in_use(); });
    }
    Orphans::instance().add(std::move(in_use));
  }

 private:
  struct Retired {
    std::unique_ptr<const lb::Snapshot> snapshot;
    std::function<void()> done;
  };

  void wait_for_work(std::unique_lock<std::mutex>& lock, bool look_again) {
    const auto work = [this] { return stopping_ || !snapshots_.empty() || !arrived_.empty(); };
    if (look_again) {
      changed_.wait_for(lock, kLookAgain, work);
    } else {
      changed_.wait(lock, work);
    }
  }

  // One wait for the readers is enough for all snapshots that were retired before the wait began.
  static void reclaim(std::vector<Retired> retired) {
    if (retired.empty()) return;
    lb::SnapshotCell::wait_for_readers();
    for (Retired& one : retired) {
      one.snapshot.reset();
      one.done();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::vector<Retired> snapshots_;
  TrackedList arrived_;
};

ReclaimerThread::ReclaimerThread()
    : queue_(std::make_shared<Queue>()), thread_([queue = queue_] { queue->run(); }) {}

ReclaimerThread::~ReclaimerThread() {
  queue_->stop();
  thread_.join();
}

std::shared_ptr<Reclaimer> ReclaimerThread::handle() const {
  return queue_;
}

}  // namespace signalbox::actors
