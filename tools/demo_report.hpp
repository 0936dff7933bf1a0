// SPDX-License-Identifier: Apache-2.0
//
// The demo's report: a live line a second, then a table and JSON data at the end. With the built-in
// resources, lines and table fit a terminal of 80 columns.
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
  std::uint64_t session_moves = 0;                   ///< Moves after DemoSession::settle().
  std::map<std::string, std::uint64_t> per_cluster;  ///< Has an entry for every leaf.
};

DemoResult make_result(const std::vector<std::string>& leaves,
                       const CallLog& log,
                       std::uint64_t repicked,
                       std::uint64_t session_moves);

/// True if only calls in flight at a kill failed, every cluster answered calls, and the session did
/// not move while its backend was usable.
bool is_success(const DemoResult& result);

nlohmann::json to_json(const DemoResult& result);
std::string table(const DemoResult& result);
/// Facts in the rows of table() that have no place in a load report, as texts for its notes.
std::vector<std::string> notes(const DemoResult& result);

/// `leaf` without the prefix, up to its last dash, that all leaves share: `primary` for
/// `orders-primary`.
std::string short_name(const std::string& leaf, const std::vector<std::string>& leaves);

/// The line of headings above the columns of live_line(). `state` is the heading of the column with
/// live_line()'s `state`.
std::string live_header(const std::vector<std::string>& leaves, absl::string_view state);

/// One live line. `state`: the value for the column that live_header() heads with its `state`;
/// nullopt: the value is not known.
std::string live_line(std::chrono::nanoseconds since_start,
                      std::chrono::nanoseconds interval,
                      const std::vector<std::string>& leaves,
                      const CallCounts& counts,
                      std::optional<int> state);

}  // namespace signalbox::tools
