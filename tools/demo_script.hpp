// SPDX-License-Identifier: Apache-2.0
//
// The demo's scripts, and what they share: waiting, announcing, ending.
//
//   run_demo ─▶ [play_failover | play_…_drill] ─▶ exit status
//                  └─▶ Narrator: acts, and a line a second in between ─▶ stdout

#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include <nlohmann/json.hpp>

#include "tools/commands.hpp"
#include "tools/demo_stage.hpp"

namespace signalbox::tools {

// --- the scripts: each runs on a DemoStage after its set(), and returns the exit status ----------

/// Clusters are killed and come back.
int play_failover(const DemoOptions& options, DemoStage& stage);

/// The control plane is killed, stopped and replaced.
int play_control_plane_drill(const DemoOptions& options, DemoStage& stage);

/// The first cluster's backends are killed one by one, and calls are spread by health.
int play_tiered_drill(const DemoOptions& options, DemoStage& stage);

// --- what they share -----------------------------------------------------------------------------

class Narrator {
 public:
  using Clock = std::chrono::steady_clock;
  /// The text of a live line, about the interval since the previous line.
  using Line = std::function<std::string(std::chrono::nanoseconds since_start,
                                         std::chrono::nanoseconds interval)>;

  /// Starts the clock.
  explicit Narrator(Line line);

  /// Prints a line a second until `due`, or until `holds` returns true. `holds` is called every 20
  /// milliseconds. A stop signal ends the wait, and is returned; else returns nullopt.
  std::optional<int> wait_until(Clock::time_point due, const std::function<bool()>& holds = {});

  /// Prints what happens now, with the time.
  void announce(const std::string& act) const;
  /// Prints the line of the last, shorter interval, unless it is very short.
  void end();

  Clock::time_point start() const { return start_; }

 private:
  void tell(Clock::time_point now);

  const Line line_;
  const Clock::time_point start_;
  Clock::time_point reported_;
  Clock::time_point next_;
};

/// Prints why the demo ends early. Returns the exit status.
int end_early(const absl::Status& status, int exit_status = kExitFailed);
/// Prints that a stop signal ends the demo early. Returns the exit status.
int end_early(int signal);

/// The result of a finished script, for publish().
struct DemoOutcome {
  std::string table;
  nlohmann::json data;
  std::string failure;                  ///< Empty: all went well.
  std::vector<std::string> notes = {};  ///< Rows of the table that the HTML page shows as notes.
};

/// Prints the table, and writes the data if --json names a file, and the page if --html does.
/// Returns the exit status.
int publish(const DemoOptions& options, DemoStage& stage, const DemoOutcome& outcome);

}  // namespace signalbox::tools
