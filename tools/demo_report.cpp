// SPDX-License-Identifier: Apache-2.0
#include "tools/demo_report.hpp"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace signalbox::tools {
namespace {

std::optional<double> in_ms(std::optional<std::chrono::nanoseconds> duration) {
  if (!duration) return std::nullopt;
  return std::chrono::duration<double, std::milli>(*duration).count();
}

nlohmann::json number_or_null(const std::optional<double>& number) {
  return number ? nlohmann::json(*number) : nlohmann::json(nullptr);
}

std::string ms_or_none(const std::optional<double>& number) {
  return number ? absl::StrFormat("%.1f ms", *number) : "none";
}

std::uint64_t calls_of(const std::map<std::string, std::uint64_t>& per_cluster,
                       const std::string& leaf) {
  const auto place = per_cluster.find(leaf);
  return place == per_cluster.end() ? 0 : place->second;
}

// A column is wide enough for the name and for "100 %".
int column_width(const std::string& name) {
  return static_cast<int>(std::max<std::size_t>(name.size(), 5)) + 2;
}

double share(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(all);
}

}  // namespace

std::string short_name(const std::string& leaf, const std::vector<std::string>& leaves) {
  const auto dash = leaf.rfind('-');
  if (dash == std::string::npos) return leaf;
  const std::string prefix = leaf.substr(0, dash + 1);
  const bool is_shared = std::all_of(leaves.begin(), leaves.end(), [&](const std::string& other) {
    return absl::StartsWith(other, prefix);
  });
  return is_shared ? leaf.substr(prefix.size()) : leaf;
}

DemoResult make_result(const std::vector<std::string>& leaves,
                       const CallLog& log,
                       std::uint64_t repicked,
                       std::uint64_t session_moves) {
  DemoResult result{.leaves = leaves,
                    .rpcs = log.totals().calls,
                    .failed_in_flight = log.failed_in_flight(),
                    .in_flight_at_kill = log.in_flight_at_kill(),
                    .failed_other = log.failed_other(),
                    .repicked = repicked,
                    .failover_ms = in_ms(log.failover()),
                    .failback_ms = in_ms(log.failback()),
                    .p50_us = log.totals().latency.percentile(50) / 1000,
                    .p99_us = log.totals().latency.percentile(99) / 1000,
                    .session_moves = session_moves,
                    .per_cluster = log.totals().per_cluster};
  for (const std::string& leaf : leaves)
    result.per_cluster.try_emplace(leaf, 0);
  return result;
}

bool is_success(const DemoResult& result) {
  return result.failed_other == 0 && result.session_moves == 0 &&
         std::all_of(result.leaves.begin(), result.leaves.end(), [&](const std::string& leaf) {
           return calls_of(result.per_cluster, leaf) > 0;
         });
}

nlohmann::json to_json(const DemoResult& result) {
  return {{"rpcs", result.rpcs},
          {"failed_in_flight", result.failed_in_flight},
          {"in_flight_at_kill", result.in_flight_at_kill},
          {"failed_other", result.failed_other},
          {"repicked", result.repicked},
          {"failover_ms", number_or_null(result.failover_ms)},
          {"failback_ms", number_or_null(result.failback_ms)},
          {"p50_us", result.p50_us},
          {"p99_us", result.p99_us},
          {"session_moves", result.session_moves},
          {"per_cluster", result.per_cluster}};
}

std::string table(const DemoResult& result) {
  std::string text;
  const auto row = [&](absl::string_view name, const std::string& value, absl::string_view what) {
    text += absl::StrFormat("  %-20s %12s", name, value);
    text += what.empty() ? "\n" : absl::StrCat("  ", what, "\n");
  };
  row("calls", absl::StrCat(result.rpcs), "");
  for (const std::string& leaf : result.leaves) {
    const std::uint64_t calls = calls_of(result.per_cluster, leaf);
    row(absl::StrCat("  ", leaf),
        absl::StrCat(calls),
        absl::StrFormat("%.1f %%", share(calls, result.rpcs)));
  }
  row("failed in flight",
      absl::StrCat(result.failed_in_flight),
      absl::StrCat("of ", result.in_flight_at_kill, " that a killed backend had"));
  row("failed otherwise", absl::StrCat(result.failed_other), "must be 0");
  row("picked again", absl::StrCat(result.repicked), "bound, but never sent");
  row("failover", ms_or_none(result.failover_ms), "first kill to the next cluster's answer");
  row("failback", ms_or_none(result.failback_ms), "first cluster back to its first answer");
  row("session moves",
      absl::StrCat(result.session_moves),
      "must be 0: its backend drained, and moved");
  row("p50", absl::StrCat(result.p50_us, " us"), "from when a call was due");
  row("p99", absl::StrCat(result.p99_us, " us"), "");
  return text;
}

std::vector<std::string> notes(const DemoResult& result) {
  return {absl::StrCat(result.failed_in_flight,
                       " calls failed in flight, with those of the session, of ",
                       result.in_flight_at_kill,
                       " that a killed backend had; ",
                       result.repicked,
                       " were bound but never sent, and picked again"),
          absl::StrCat("failover ",
                       ms_or_none(result.failover_ms),
                       ", from the first kill to the next cluster's answer; failback ",
                       ms_or_none(result.failback_ms),
                       ", from the first cluster's return to its first answer"),
          absl::StrCat("no other number here has calls of the session; it moved ",
                       result.session_moves,
                       " times, and must not")};
}

std::string live_header(const std::vector<std::string>& leaves, absl::string_view state) {
  std::string line = absl::StrFormat("%8s %7s", "time", "rps");
  for (const std::string& leaf : leaves) {
    const std::string name = short_name(leaf, leaves);
    absl::StrAppendFormat(&line, "%*s", column_width(name), name);
  }
  return line + absl::StrFormat("  failed%10s       p99", state);
}

std::string live_line(std::chrono::nanoseconds since_start,
                      std::chrono::nanoseconds interval,
                      const std::vector<std::string>& leaves,
                      const CallCounts& counts,
                      std::optional<int> state) {
  const auto seconds = [](std::chrono::nanoseconds duration) {
    return std::chrono::duration<double>(duration).count();
  };
  const double rate =
      interval.count() == 0 ? 0 : static_cast<double>(counts.calls) / seconds(interval);
  std::string line = absl::StrFormat("%6.1f s %7.0f", seconds(since_start), rate);
  for (const std::string& leaf : leaves) {
    absl::StrAppendFormat(&line,
                          "%*.0f %%",
                          column_width(short_name(leaf, leaves)) - 2,
                          share(calls_of(counts.per_cluster, leaf), counts.calls));
  }
  absl::StrAppendFormat(&line,
                        "%8u%10s%7.1f ms",
                        counts.failed,
                        state ? absl::StrCat(*state) : "?",
                        static_cast<double>(counts.latency.percentile(99)) / 1e6);
  return line;
}

}  // namespace signalbox::tools
