// SPDX-License-Identifier: Apache-2.0
//
// The tiered drill's log: each step's computed loads, and the clusters that answered its calls.
//
//   script ─▶ begin, settled ─▶ [TierLog] ─▶ tier_report
//   load ─▶ add(FinishedCall) ─▶
//
//   killed ────────────▶ settled ───────────────────────▶ the next backend is killed
//     the client notices   calls that begin and end here are measured
//
// A measured share passes if it differs from the computed share by at most 5 standard deviations,
// computed for random draws of as many calls. If the calls are many, chance alone makes less than
// one share in a million differ more.
//
// Not thread-safe: the owner guards it with a mutex.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/call_log.hpp"

namespace signalbox::tools {

struct TierStep {
  std::string killed;                      ///< A backend's name; empty: all backends run.
  std::map<std::string, double> computed;  ///< Percent of all calls; every cluster has an entry.
  CallTime begun;
  std::optional<CallTime> settled;  ///< From here on the client uses the computed loads.
  std::uint64_t calls = 0;          ///< Measured calls, all of them answered.
  std::map<std::string, std::uint64_t> per_cluster;
  std::uint64_t failed = 0;  ///< Failed calls that ended in the step, before or after `settled`.

  /// The percentage of the step's measured calls that each cluster answered, for every cluster with
  /// a computed load; 0 if no call was measured.
  std::map<std::string, double> measured() const;
  /// The largest allowed difference between the cluster's measured and computed share, in percent
  /// of all calls.
  double tolerance(const std::string& cluster) const;
  bool is_as_computed() const;
};

class TierLog {
 public:
  /// Begins a step. Call this before the backend is killed.
  void begin(CallTime now, std::string killed, std::map<std::string, double> computed);
  void settled(CallTime now);
  void add(const FinishedCall& call);

  const std::vector<TierStep>& steps() const { return steps_; }

 private:
  std::vector<TierStep> steps_;
};

/// The load of each leaf of an aggregate: the sum of signalbox_tier_load_percent over the leaf's
/// tiers. `metrics` is in Prometheus' text format.
std::map<std::string, double> tier_loads(const std::string& metrics, const std::string& aggregate);

}  // namespace signalbox::tools
