// SPDX-License-Identifier: Apache-2.0
//
// HeapTrimmer — returns freed memory to the system after thousands of subchannels have ended.
//
//   subchannel actor ends ─▶ record_end() ─▶ [TrimPlan] ─▶ a thread of its own ─▶ malloc_trim
//
// A failing subchannel uses several kB while it connects, in the arenas of several threads. glibc
// keeps freed memory in its arenas. After 100,000 refused endpoints the process would hold hundreds
// of unused MB.
//
// Invariants
//   H1  A plan of trims begins each time another TrimPlan::kMany subchannels have ended, and at no
//       other time. The new plan replaces the rest of the previous plan.
//   H2  A plan has TrimPlan::kPauses.size() trims, because some memory is freed late, such as
//       gRPC's after its back-off. The time between two trims is at least TrimPlan::kLeastPause.
//   H3  record_end() never waits for a trim. A trim holds the lock of one arena at a time, and runs
//       on no thread that serves calls or actors.
//   H4  Once kMany subchannels have ended, glibc returns the free end of an arena when a block
//       before it is freed and the end is longer than kMostAtTop bytes, unless the program changes
//       M_TRIM_THRESHOLD. The rest of a mass of subchannels that end together is freed so.

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

/// Decides when trims run. It is a plain value: its owner provides threads and time.
class TrimPlan {
 public:
  static constexpr std::uint64_t kMany = 10'000;
  /// The pauses: the first one before the first trim of a plan, the others between two trims.
  static constexpr std::array<std::chrono::seconds, 4> kPauses{std::chrono::seconds(1),
                                                               std::chrono::seconds(5),
                                                               std::chrono::seconds(25),
                                                               std::chrono::seconds(120)};
  static constexpr std::chrono::seconds kLeastPause{5};

  /// Records that kMany subchannels have ended: a new plan begins. Its first trim is due after the
  /// first pause, or later, so that kLeastPause has passed since the last trim (H2). If an earlier
  /// trim is planned already, that trim is the first of the new plan.
  void record_many(Instant now);

  /// Records the end of a due trim.
  void record_trim(Instant now);

  /// The time of the next trim; nullopt: no trim is planned.
  std::optional<Instant> next_trim() const { return next_; }

 private:
  std::size_t done_ = 0;  ///< Finished trims of the plan.
  std::optional<Instant> next_;
  std::optional<Instant> last_;
};

class HeapTrimmer {
 public:
  /// `trim` returns memory to the system. It runs on a thread that starts with the first plan, and
  /// that calls `prepare` first (H4).
  explicit HeapTrimmer(std::function<void()> trim = trim_heap,
                       std::function<void()> prepare = lower_threshold);
  /// Waits for a running trim.
  ~HeapTrimmer();
  HeapTrimmer(const HeapTrimmer&) = delete;
  HeapTrimmer& operator=(const HeapTrimmer&) = delete;

  /// Records that a subchannel has ended. Thread-safe.
  void record_end();

  /// The M_TRIM_THRESHOLD of glibc after lower_threshold(), in bytes (H4).
  static constexpr int kMostAtTop = 1 << 20;

  /// malloc_trim does not return the free end of an arena, except the first arena's. glibc returns
  /// that end when a block before it is freed, but only if the end is longer than a threshold. The
  /// threshold grows to 64 MB as large blocks are freed. So the first call of this function sets it
  /// to kMostAtTop, for the whole process. Later calls do nothing, nor does a build without glibc.
  static void lower_threshold();

  /// Returns the free pages of glibc's heap to the system. Does nothing in a build without glibc.
  static void trim_heap();

 private:
  void run();

  const std::function<void()> trim_;
  const std::function<void()> prepare_;
  std::atomic<std::uint64_t> ended_{0};
  std::mutex mutex_;  ///< Guards the members below; not held during a trim.
  std::condition_variable changed_;
  bool is_stopping_ = false;
  TrimPlan plan_;
  std::thread thread_;
};

}  // namespace signalbox::actors
