// SPDX-License-Identifier: Apache-2.0
//
// What the tiered drill sees: of each step the loads that were computed, and who had the calls.
//
//   script ─▶ killed, settled ─▶ [TierLog] ─▶ tier_report
//   load ─▶ add(FinishedCall) ─▶
//
//   killed ────────────▶ settled ───────────────────────▶ the next one is killed
//     the client notices   calls that begin and end here are measured
//
// A measured share is as it should be if it is off by no more than chance allows: 5 standard
// deviations of so many draws, which one step in a million exceeds.
//
// A value; its owner guards it.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/call_log.hpp"

namespace signalbox::tools {

struct TierStep {
  std::string killed;                      ///< A backend's name; empty: all are there.
  std::map<std::string, double> computed;  ///< Percent of all calls by cluster; every one is there.
  CallTime begun;
  std::optional<CallTime> settled;  ///< The client goes by the computed loads.
  std::uint64_t calls = 0;          ///< Measured ones, all of them answered.
  std::map<std::string, std::uint64_t> per_cluster;
  std::uint64_t failed = 0;  ///< Ended within the step, measured or not.

  /// In percent, of every cluster that has a computed load; 0 where nothing was measured.
  std::map<std::string, double> measured() const;
  /// By how much a share may be off, in percent.
  double tolerance(const std::string& cluster) const;
  bool is_as_computed() const;
};

class TierLog {
 public:
  /// A step begins: before the backend is killed.
  void begin(CallTime now, std::string killed, std::map<std::string, double> computed);
  void settled(CallTime now);
  void add(const FinishedCall& call);

  const std::vector<TierStep>& steps() const { return steps_; }

 private:
  std::vector<TierStep> steps_;
};

/// What signalbox_tier_load_percent says in Prometheus' text format: the loads of an aggregate's
/// leaves, over all of their priorities.
std::map<std::string, double> tier_loads(const std::string& metrics, const std::string& aggregate);

}  // namespace signalbox::tools
