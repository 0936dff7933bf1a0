// SPDX-License-Identifier: Apache-2.0
//
// EngineRun — runs an engine in a program that does other work meanwhile.
//
//   OpenLoop ─ rings ─▶ [EngineRun: a thread] ─ Drained, NamedCall ─▶ the program's function
//
// `signalbox load` needs no such thread, because the process of a side does nothing else.

#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tools/load/open_loop.hpp"

namespace signalbox::tools {

/// An ended call with instants of the clock, and with names in the place of numbers. The names are
/// valid until `take` returns.
struct NamedCall {
  OpenLoop::Clock::time_point due;
  OpenLoop::Clock::time_point sent;
  OpenLoop::Clock::time_point ended;
  int code = 0;  ///< See call_code.hpp.
  bool ok = false;
  bool is_closed_loop = false;
  const std::string& address;  ///< The endpoint's; empty: the call reached none.
  const std::string& message;  ///< Why the call failed; empty: it did not, or is not counted.
};

class EngineRun {
 public:
  using Clock = OpenLoop::Clock;
  /// Gets the calls since the last time. The run's thread calls it every few milliseconds, and for
  /// the last time before finish() returns.
  using Take = std::function<void(const EngineRun& run, const OpenLoop::Drained& drained)>;

  /// Starts the engine: its warm-up begins at `begin`.
  EngineRun(std::unique_ptr<OpenLoop> engine, Clock::time_point begin, Take take);
  /// Like finish(). Calls without an answer are then cancelled.
  ~EngineRun();
  EngineRun(const EngineRun&) = delete;
  EngineRun& operator=(const EngineRun&) = delete;

  /// Sends no more calls, and waits until all sent calls have ended, for at most their timeout and
  /// two seconds. False: some calls have not ended.
  bool finish();

  /// For `take`: a call of the Drained that it got.
  NamedCall named(const EndedCall& call) const;

  /// CPU time of the engine's own work and of `take`, so far.
  std::chrono::nanoseconds own_cpu() const { return engine_->own_cpu() + taking_cpu_.load(); }

  /// The messages of failed calls, and how many calls had each. Precondition: finish() returned
  /// true.
  std::map<std::string, std::uint64_t> messages() const { return engine_->messages(); }

 private:
  void run();
  void take_drained();

  const std::unique_ptr<OpenLoop> engine_;
  const Clock::time_point measured_;  // Where the times of EndedCall begin.
  const Take take_;
  // The name of number n has index n. Only the run's thread uses them.
  std::vector<std::string> addresses_{""};
  std::vector<std::string> messages_{""};
  std::atomic<std::chrono::nanoseconds> taking_cpu_{};
  std::atomic<bool> is_finishing_ = false;
  std::atomic<bool> is_whole_ = false;
  std::thread thread_;
};

}  // namespace signalbox::tools
