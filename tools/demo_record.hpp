// SPDX-License-Identifier: Apache-2.0
//
// DemoRecord — the demo's run as a load report, for --html.
//
//   DemoLoad ─▶ FinishedCall ─┐
//   script ─▶ DemoAct ────────┼▶ [DemoRecord] ─▶ LoadRecorder ─▶ finish() ─▶ LoadReport
//   runtime's status ─ place ─┘
//
// Calls of the session are left out: its loop is closed, and so has no schedule. Not thread-safe:
// the owner guards it with a mutex.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/call_log.hpp"
#include "tools/load/collector.hpp"
#include "tools/load/ended_call.hpp"
#include "tools/load/recorder.hpp"
#include "tools/load/report.hpp"
#include "tools/load/tallies.hpp"

namespace signalbox::tools {

/// One act of a demo script: a change to backends or to the control plane.
struct DemoAct {
  /// A verb of the scripts of `signalbox load` ("kill", "restart", "drain", …), or "lower".
  std::string verb;
  std::string on;    ///< What the act changes: a cluster, a backend, or "control-plane".
  std::string what;  ///< The act as a sentence for people.
  bool is_fault = true;
};

/// The result of the demo, for the verdict on the page.
struct DemoVerdict {
  std::uint64_t failed_other = 0;  ///< CallLog::failed_other().
  std::string failure;             ///< Why the demo failed; empty: all went well.
  std::vector<std::string> notes;  ///< Rows of the demo's table that the load report lacks.
};

class DemoRecord {
 public:
  /// `begin`: when the load begins. `seconds`: the expected length of the load, which may run
  /// longer.
  DemoRecord(CallTime begin, double seconds);
  DemoRecord(const DemoRecord&) = delete;
  DemoRecord& operator=(const DemoRecord&) = delete;

  /// The caller must add calls in the order of their ends. A call may be added up to
  /// Collector::kHold late.
  void add(const FinishedCall& call);
  void place(const std::string& address, const RankedPlace& place);
  /// The caller must call this before it does an act, in the order of the acts' times.
  void act_begins(CallTime now, const DemoAct& act);

  /// `end`: when the load stopped sending. finish() sets the duration of `configuration`. Call
  /// nothing after finish().
  LoadReport finish(CallTime end, LoadConfiguration configuration, const DemoVerdict& verdict);

 private:
  std::int64_t since_begin(CallTime time) const;
  std::uint32_t endpoint_of(const std::string& peer);
  void pass_on(std::int64_t until_ns);

  const CallTime begin_;
  LoadRecorder recorder_;
  Collector collector_;
  std::vector<EndedCall> waiting_;  // Calls that collector_ does not have yet.
  std::int64_t passed_on_ns_ = 0;   // The `until_ns` of the last pass_on().
  EndpointNumbers endpoints_;
  MessageCounts messages_;
  std::vector<LoadFault> acts_;
};

}  // namespace signalbox::tools
