// SPDX-License-Identifier: Apache-2.0
//
// The control-plane drill's report: a table at the end, and its data as JSON. The table does not
// name the cluster that each phase puts first (brings).
//
//   CallLog, DrillLog ─▶ DrillResult ─┬▶ [table] ──────▶ stdout
//                                     ├▶ [to_json] ────▶ --json FILE
//                                     └▶ [why_failed] ─▶ stderr, exit status

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/drill_log.hpp"

namespace signalbox::tools {

/// A finished drill.
struct DrillResult {
  struct Phase {
    std::string name;
    std::string brings;
    double away_ms = 0;
    std::uint64_t calls_meanwhile = 0;
    std::uint64_t too_early = 0;
    std::optional<double> reconvergence_ms;
    double bound_ms = 0;
  };

  std::uint64_t rpcs = 0;
  std::uint64_t failed_other = 0;  ///< All failed calls: this drill kills no backend.
  std::string first_error;
  std::uint64_t p50_us = 0;
  std::uint64_t p99_us = 0;
  std::vector<Phase> phases;
};

DrillResult make_result(const CallLog& calls, const DrillLog& drill);

/// Empty if the drill went well: no call failed, and each phase's change was in effect after the
/// control plane's return and within the bound.
std::string why_failed(const DrillResult& result);

nlohmann::json to_json(const DrillResult& result);
std::string table(const DrillResult& result);

}  // namespace signalbox::tools
