// SPDX-License-Identifier: Apache-2.0
//
// Calls at a rate, by the engine of `signalbox load`, whether or not earlier calls have been
// answered.
//
//   rate, work ─▶ [start_load] ─▶ LoadEngine ─▶ the side's channel
//                                     └─▶ EngineRun ─▶ see(call), one call at a time
//
// On both sides of a comparison, the calls are due at the same times after the start of the load.

#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "tests/bench/side.hpp"
#include "tools/load/engine_run.hpp"
#include "tools/load/schedule.hpp"

namespace signalbox::bench {

struct RateLoad {
  double rate = 1000;  ///< In calls per second.
  tools::Arrivals arrivals = tools::Arrivals::kEven;
  /// The times for which calls keep their backends busy; the calls use these times in turn.
  std::vector<std::chrono::microseconds> work{std::chrono::microseconds(0)};
};

/// Starts the load. The end of the result stops it, and waits for the answers to the calls that
/// were sent, for at most seven seconds. `see` gets calls a few milliseconds after their ends, in
/// the order of their ends.
std::unique_ptr<tools::EngineRun> start_load(const Side& side,
                                             const RateLoad& load,
                                             std::function<void(const tools::NamedCall&)> see);

/// The time that a measurement lasts. One thread calls open() and close(), another thread has().
class Window {
 public:
  using Clock = std::chrono::steady_clock;

  void open() { begin_ = Clock::now(); }

  void close() { end_ = Clock::now(); }

  bool has(Clock::time_point time) const { return time >= begin_.load() && time < end_.load(); }

  /// Precondition: the window was opened and closed.
  double seconds() const {
    return std::chrono::duration<double>(end_.load() - begin_.load()).count();
  }

 private:
  std::atomic<Clock::time_point> begin_ = Clock::time_point::max();
  std::atomic<Clock::time_point> end_ = Clock::time_point::max();
};

}  // namespace signalbox::bench
