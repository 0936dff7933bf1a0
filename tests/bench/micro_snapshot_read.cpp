// SPDX-License-Identifier: Apache-2.0
//
// Times one read of the published snapshot while a writer publishes at most a thousand a second:
// lb::SnapshotCell compared with the standard library's means. Read the CPU column, because the
// time column is wrong with more threads than processors. Decision 7 quotes the ratios.

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include <benchmark/benchmark.h>

#include "lb/pick/snapshot_cell.hpp"

namespace signalbox::lb {
namespace {

using SnapshotPtr = std::shared_ptr<const Snapshot>;

std::unique_ptr<const Snapshot> snapshot(std::uint64_t sequence) {
  auto next = std::make_unique<Snapshot>();
  next->sequence = sequence;
  return next;
}

class Cell {
 public:
  void publish(std::uint64_t sequence) {
    const auto old = cell_.exchange(snapshot(sequence));
    SnapshotCell::wait_for_readers();
  }

  std::uint64_t read() const { return SnapshotCell::Reader(cell_)->sequence; }

 private:
  SnapshotCell cell_;
};

class AtomicSharedPtr {
 public:
  void publish(std::uint64_t sequence) { current_.store(SnapshotPtr(snapshot(sequence))); }

  std::uint64_t read() const { return current_.load()->sequence; }

 private:
  std::atomic<SnapshotPtr> current_{SnapshotPtr(snapshot(0))};
};

class SharedMutex {
 public:
  void publish(std::uint64_t sequence) {
    SnapshotPtr next = snapshot(sequence);
    const std::unique_lock lock(mutex_);
    current_.swap(next);
  }

  std::uint64_t read() const {
    const std::shared_lock lock(mutex_);
    return current_->sequence;
  }

 private:
  mutable std::shared_mutex mutex_;
  SnapshotPtr current_ = snapshot(0);
};

// A thread that publishes until the Writer is destroyed.
template <typename Way>
class Writer {
 public:
  explicit Writer(Way& way)
      : thread_([this, &way] {
          for (std::uint64_t sequence = 1; !stop_; ++sequence) {
            way.publish(sequence);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        }) {}

  ~Writer() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

template <typename Way>
void read(benchmark::State& state) {
  static Way way;
  static std::unique_ptr<Writer<Way>> writer;
  if (state.thread_index() == 0) writer = std::make_unique<Writer<Way>>(way);
  for (auto _ : state)
    benchmark::DoNotOptimize(way.read());
  if (state.thread_index() == 0) writer.reset();
}

BENCHMARK_TEMPLATE(read, Cell)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK_TEMPLATE(read, AtomicSharedPtr)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK_TEMPLATE(read, SharedMutex)->Threads(1)->Threads(2)->UseRealTime();

}  // namespace
}  // namespace signalbox::lb

BENCHMARK_MAIN();
