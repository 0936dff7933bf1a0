// SPDX-License-Identifier: Apache-2.0
//
// Collector — brings the calls of an engine and the acts of the script into the order of their
// times.
//
//   OpenLoop::drain ──▶ ended calls ──┐
//   lines of the parent ─▶ acts ──────┴▶ [Collector] ─▶ LoadRecorder
//
// A call is recorded kHold after its end or later, because the announcement of an act takes time to
// arrive. (flush() does not wait.) The parent announces an act before it does the act. So every act
// that began before the call's end is then known, unless its announcement took longer than kHold.

#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "tools/load/ended_call.hpp"
#include "tools/load/recorder.hpp"

namespace signalbox::tools {

class Collector {
 public:
  /// How long a call is held back.
  static constexpr std::chrono::milliseconds kHold{100};

  explicit Collector(LoadRecorder& recorder) : recorder_(recorder) {}

  /// The caller must add acts in the order of their times.
  void add_act(std::int64_t at_ns, bool is_fault) { acts_.push_back({at_ns, is_fault}); }

  /// The caller must add ended calls in the order of their ends.
  void add(const std::vector<SentCall>& sent,
           const std::vector<EndedCall>& ended,
           std::vector<std::string> endpoints);

  /// Records the calls that ended, and the acts that began, at or before `now_ns` - kHold.
  void advance(std::int64_t now_ns);
  /// Records all calls and acts that are still held back.
  void flush();

 private:
  struct Act {
    std::int64_t at_ns;
    bool is_fault;
  };

  void record_until(std::int64_t until_ns);

  LoadRecorder& recorder_;
  std::deque<EndedCall> held_;
  std::deque<Act> acts_;
};

}  // namespace signalbox::tools
