// SPDX-License-Identifier: Apache-2.0
//
// HeapTrimmer — gives freed memory back to the system after thousands of subchannels have ended.
//
//   subchannel actor ends ─▶ note_end() ─▶ [TrimPlan] ─▶ a thread of its own ─▶ malloc_trim
//
// A subchannel that fails costs several kB while it connects, in the arenas of several threads.
// glibc keeps what is freed there: after 100,000 refused endpoints the process would hold hundreds
// of MB that nothing uses.
//
// Invariants
//   H1  Fewer than TrimPlan::kMany ends since the last plan trim nothing.
//   H2  A plan has TrimPlan::kPauses.size() trims, and two trims are never closer than
//       TrimPlan::kLeastPause: some memory is freed late, such as gRPC's after its back-off.
//   H3  note_end() never waits for a trim. A trim holds the lock of one arena at a time, and runs
//       on no thread that serves calls or actors.

#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "messages/ids.hpp"

namespace signalbox::actors {

/// When to trim. A plain value: its owner sees to threads, and to the time.
class TrimPlan {
 public:
  static constexpr std::uint64_t kMany = 10'000;
  /// Before the first trim after many ends, and between it and the following trims.
  static constexpr std::array<std::chrono::seconds, 4> kPauses{std::chrono::seconds(1),
                                                               std::chrono::seconds(5),
                                                               std::chrono::seconds(25),
                                                               std::chrono::seconds(120)};
  static constexpr std::chrono::seconds kLeastPause{5};

  /// kMany subchannels have ended. The plan begins anew.
  void note_many(Instant now);

  /// A trim was due, and is done.
  void note_trim(Instant now);

  /// nullopt: nothing is to be trimmed until many have ended.
  std::optional<Instant> next_trim() const { return next_; }

 private:
  std::size_t done_ = 0;  ///< Of the plan's trims.
  std::optional<Instant> next_;
  std::optional<Instant> last_;
};

class HeapTrimmer {
 public:
  /// `trim`: what gives memory back; it runs on a thread that begins with the first plan.
  explicit HeapTrimmer(std::function<void()> trim = trim_heap);
  /// Waits for a trim that is under way.
  ~HeapTrimmer();
  HeapTrimmer(const HeapTrimmer&) = delete;
  HeapTrimmer& operator=(const HeapTrimmer&) = delete;

  /// A subchannel has ended. Thread-safe.
  void note_end();

  /// Gives the free pages of glibc's heap back; of another heap, nothing.
  static void trim_heap();

 private:
  void run();

  const std::function<void()> trim_;
  std::atomic<std::uint64_t> ended_{0};
  std::mutex mutex_;  ///< Guards all below; not held during a trim.
  std::condition_variable changed_;
  bool is_stopping_ = false;
  TrimPlan plan_;
  std::thread thread_;
};

}  // namespace signalbox::actors
