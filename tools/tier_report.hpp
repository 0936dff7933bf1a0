// SPDX-License-Identifier: Apache-2.0
//
// The report of `signalbox demo --drill tiered`: a table at the end, and its data as JSON. Only the
// JSON says when the loads of a step were in effect (settled_ms).
//
//   CallLog, TierLog ─▶ TierResult ─┬▶ [table] ──────▶ stdout
//                                   ├▶ [to_json] ────▶ --json FILE
//                                   └▶ [why_failed] ─▶ stderr, exit status

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/tier_log.hpp"

namespace signalbox::tools {

/// A finished drill.
struct TierResult {
  std::vector<std::string> leaves;
  std::uint64_t rpcs = 0;
  std::uint64_t failed_in_flight = 0;  ///< Calls lost with the killed backend that had them.
  std::uint64_t failed_other = 0;
  std::string first_error;  ///< The error of the first call in failed_other.
  std::uint64_t p50_us = 0;
  std::uint64_t p99_us = 0;
  std::vector<TierStep> steps;
};

TierResult make_result(const std::vector<std::string>& leaves,
                       const CallLog& calls,
                       const TierLog& tiers);

/// Empty if the drill went well: every step's shares were as computed, and no call failed but those
/// that a killed backend had.
std::string why_failed(const TierResult& result);

/// `drill`, `rpcs`, `failed_in_flight`, `failed_other`, `p50_us`, `p99_us`, and `steps`. Each step
/// has `step` (its number), `killed` (null: no backend yet), `computed` and `measured` (percent by
/// cluster), `calls` (measured), `failed`, `settled_ms` (null: the loads were never in effect).
nlohmann::json to_json(const TierResult& result);
std::string table(const TierResult& result);

}  // namespace signalbox::tools
