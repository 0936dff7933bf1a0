// SPDX-License-Identifier: Apache-2.0
//
// How the demo tells what it saw: a line a second, a table at the end, and the same as data.
// What is shown fits a terminal of 80 columns.
//
//   CallLog, Runtime's counters ─▶ [live_line | table | to_json] ─▶ stdout, --json FILE

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include <nlohmann/json.hpp>

#include "tools/call_log.hpp"

namespace signalbox::tools {

/// A finished demo.
struct DemoResult {
  std::vector<std::string> leaves;
  std::uint64_t rpcs = 0;
  std::uint64_t failed_in_flight = 0;
  std::uint64_t in_flight_at_kill = 0;
  std::uint64_t failed_other = 0;
  std::uint64_t repicked = 0;
  std::optional<double> failover_ms;
  std::optional<double> failback_ms;
  std::uint64_t p50_us = 0;
  std::uint64_t p99_us = 0;
  std::uint64_t session_moves = 0;                   ///< While its backend drained or moved.
  std::map<std::string, std::uint64_t> per_cluster;  ///< Every leaf is there.
};

DemoResult make_result(const std::vector<std::string>& leaves,
                       const CallLog& log,
                       std::uint64_t repicked,
                       std::uint64_t session_moves);

/// Nothing failed that need not have, every cluster served, and the session stayed where it could.
bool is_success(const DemoResult& result);

nlohmann::json to_json(const DemoResult& result);
std::string table(const DemoResult& result);

/// What follows the dashed words that all leaves begin with: `primary` of `orders-primary`.
std::string short_name(const std::string& leaf, const std::vector<std::string>& leaves);

/// The names of live_line()'s columns; `state` is that of the last but one.
std::string live_header(const std::vector<std::string>& leaves, absl::string_view state);

/// `state`: what a metric says, under the name in the header; unset: unknown.
std::string live_line(std::chrono::nanoseconds since_start,
                      std::chrono::nanoseconds interval,
                      const std::vector<std::string>& leaves,
                      const CallCounts& counts,
                      std::optional<int> state);

/// The value of `name` where `label` is `value`, in Prometheus' text format.
std::optional<int> metric_value(const std::string& text,
                                absl::string_view name,
                                absl::string_view label,
                                absl::string_view value);

}  // namespace signalbox::tools
