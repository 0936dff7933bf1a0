// SPDX-License-Identifier: Apache-2.0
#include "actors/reclaimer.hpp"

#include <chrono>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <vector>

namespace signalbox::actors {
namespace {

// How often objects that calls still use are looked at again.
constexpr auto kLookAgain = std::chrono::milliseconds(20);

using TrackedList = std::vector<std::unique_ptr<const Tracked>>;

// Objects that calls still used when their runtime ended. Never destroyed, so that a call may end
// as late as it likes; the next runtime of the process adopts them.
struct Orphans {
  std::mutex mutex;
  TrackedList objects;
};

Orphans& orphans() {
  static auto* const all = new Orphans;
  return *all;
}

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
      const std::lock_guard all(orphans().mutex);
      orphans().objects.push_back(std::move(object));
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
    {
      const std::lock_guard all(orphans().mutex);
      in_use.swap(orphans().objects);
    }
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
    const std::lock_guard all(orphans().mutex);
    std::move(in_use.begin(), in_use.end(), std::back_inserter(orphans().objects));
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

  // One grace period serves all that were waiting when it began.
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
