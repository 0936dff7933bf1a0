// SPDX-License-Identifier: Apache-2.0
#include "tools/top_view.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "messages/log_line.hpp"

namespace signalbox::tools {
namespace {

// The sums of one cluster's or one process's call metrics at one instant.
struct CallSums {
  double started = 0;
  double ended = 0;
  double failed = 0;
  double active = 0;
  /// For each upper bound in seconds, the number of calls that took at most so long.
  std::map<double, double> buckets;
};

// Names the sums of an aggregate's leaf, or of a cluster without an aggregate.
using CallKey = std::pair<std::string, std::string>;  // Aggregate (empty: none), cluster.

struct Sums {
  std::map<CallKey, CallSums> calls;
  std::map<std::string, int> priority;
  /// For each cluster, the numbers of READY and of all endpoints.
  std::map<std::string, std::pair<int, int>> endpoints;
  std::map<std::string, double> failovers;
};

std::string label(const MetricSample& sample, const std::string& name) {
  const auto found = sample.labels.find(name);
  return found == sample.labels.end() ? "" : found->second;
}

double bound_of(const MetricSample& sample) {
  double bound = std::numeric_limits<double>::infinity();
  const std::string text = label(sample, "le");
  if (text != "+Inf") static_cast<void>(absl::SimpleAtod(text, &bound));
  return bound;
}

void add_calls(const MetricSample& sample, Sums& sums) {
  const auto of = [&]() -> CallSums& {
    return sums.calls[{label(sample, "aggregate"), label(sample, "cluster")}];
  };
  if (sample.name == "signalbox_rpcs_started_total") of().started += sample.value;
  if (sample.name == "signalbox_rpcs_active") of().active += sample.value;
  if (sample.name == "signalbox_rpc_duration_seconds_bucket")
    of().buckets[bound_of(sample)] += sample.value;
  if (sample.name == "signalbox_rpcs_completed_total") {
    of().ended += sample.value;
    if (label(sample, "code") != "OK") of().failed += sample.value;
  }
}

void add_cluster(const MetricSample& sample, Sums& sums) {
  const std::string cluster = label(sample, "cluster");
  if (sample.name == "signalbox_priority_active")
    sums.priority[cluster] = static_cast<int>(sample.value);
  if (sample.name == "signalbox_failovers_total") sums.failovers[cluster] += sample.value;
  if (sample.name == "signalbox_endpoints") {
    auto& [ready, all] = sums.endpoints[cluster];
    all += static_cast<int>(sample.value);
    if (label(sample, "state") == "ready") ready += static_cast<int>(sample.value);
  }
}

Sums sums_of(const std::vector<MetricSample>& samples) {
  Sums sums;
  for (const MetricSample& sample : samples) {
    add_calls(sample, sums);
    add_cluster(sample, sums);
  }
  return sums;
}

bool is_counter(const std::string& name) {
  return absl::EndsWith(name, "_total") || absl::EndsWith(name, "_bucket");
}

using SeriesKey = std::pair<std::string, std::map<std::string, std::string>>;

// Whether the samples are those of a process that was started after `before`: a counter has fallen.
bool was_restarted(const std::vector<MetricSample>& before, const std::vector<MetricSample>& now) {
  std::map<SeriesKey, double> earlier;
  for (const MetricSample& sample : before) {
    if (is_counter(sample.name)) earlier[{sample.name, sample.labels}] = sample.value;
  }
  return std::ranges::any_of(now, [&](const MetricSample& sample) {
    const auto found = earlier.find({sample.name, sample.labels});
    return found != earlier.end() && sample.value < found->second;
  });
}

CallSums operator-(CallSums now, const CallSums& before) {
  now.started -= before.started;
  now.ended -= before.ended;
  now.failed -= before.failed;
  for (const auto& [bound, count] : before.buckets)
    now.buckets[bound] -= count;
  return now;
}

void add(CallSums& sum, const CallSums& more) {
  sum.started += more.started;
  sum.ended += more.ended;
  sum.failed += more.failed;
  sum.active += more.active;
  for (const auto& [bound, count] : more.buckets)
    sum.buckets[bound] += count;
}

// The time in seconds that `share` (0 to 1) of the calls do not exceed; nullopt: there are no
// calls. Computed as Prometheus' histogram_quantile does: linear within a bucket. The last bucket
// has no upper bound; there the result is its lower bound.
std::optional<double> quantile(const std::map<double, double>& buckets, double share) {
  if (buckets.empty() || buckets.rbegin()->second <= 0) return std::nullopt;
  const double rank = share * buckets.rbegin()->second;
  double lower = 0;
  double below = 0;
  for (const auto& [bound, count] : buckets) {
    if (count >= rank) {
      if (std::isinf(bound)) return lower;
      return count == below ? bound : lower + (bound - lower) * (rank - below) / (count - below);
    }
    lower = bound;
    below = count;
  }
  return lower;
}

TopCalls calls_of(const CallSums& now, const CallSums& grown, std::optional<double> seconds) {
  TopCalls calls;
  calls.active = now.active;
  if (!seconds) return calls;
  calls.per_second = grown.started / *seconds;
  if (grown.ended > 0) calls.error_percent = 100 * grown.failed / grown.ended;
  calls.p50_seconds = quantile(grown.buckets, 0.5);
  calls.p99_seconds = quantile(grown.buckets, 0.99);
  return calls;
}

template <typename Map>
std::optional<typename Map::mapped_type> value_in(const Map& map, const std::string& key) {
  const auto found = map.find(key);
  if (found == map.end()) return std::nullopt;
  return found->second;
}

// An aggregate's row sums its own calls, which reached no leaf, and those of its leaves.
class Rows {
 public:
  Rows(const Sums& now, const Sums& before, std::optional<double> seconds)
      : now_(now), before_(before), seconds_(seconds) {}

  std::vector<TopRow> all() const {
    std::set<std::string> aggregates;
    std::set<std::string> leaves;
    std::set<std::string> top;
    for (const auto& [key, sums] : now_.calls) {
      if (!key.first.empty()) aggregates.insert(key.first);
      if (!key.first.empty()) leaves.insert(key.second);
      top.insert(key.first.empty() ? key.second : key.first);
    }
    for (const auto& [cluster, priority] : now_.priority) {
      if (!leaves.contains(cluster)) top.insert(cluster);
    }
    std::vector<TopRow> rows;
    for (const std::string& cluster : top) {
      rows.push_back(row(cluster, ""));
      if (!aggregates.contains(cluster)) continue;
      for (const auto& [key, sums] : now_.calls) {
        if (key.first == cluster) rows.push_back(row(key.second, cluster));
      }
    }
    return rows;
  }

  TopCalls total() const {
    return calls([](const CallKey&) { return true; });
  }

 private:
  template <typename Counts>
  TopCalls calls(Counts counts) const {
    if (now_.calls.empty()) return {};
    CallSums sum;
    CallSums grown;
    for (const auto& [key, sums] : now_.calls) {
      if (!counts(key)) continue;
      const auto earlier = before_.calls.find(key);
      add(sum, sums);
      add(grown, sums - (earlier == before_.calls.end() ? CallSums() : earlier->second));
    }
    return calls_of(sum, grown, seconds_);
  }

  TopRow row(const std::string& cluster, const std::string& aggregate) const {
    TopRow row;
    row.cluster = cluster;
    row.aggregate = aggregate;
    row.calls = calls([&](const CallKey& key) {
      return key == CallKey{aggregate, cluster} || (aggregate.empty() && key.first == cluster);
    });
    row.priority = value_in(now_.priority, cluster);
    if (const auto endpoints = value_in(now_.endpoints, cluster)) {
      row.ready = endpoints->first;
      row.endpoints = endpoints->second;
    }
    row.failovers = value_in(now_.failovers, cluster).value_or(0);
    return row;
  }

  const Sums& now_;
  const Sums& before_;
  const std::optional<double> seconds_;
};

std::map<SeriesKey, double> failovers_in(const std::vector<MetricSample>& samples) {
  std::map<SeriesKey, double> found;
  for (const MetricSample& sample : samples) {
    if (sample.name == "signalbox_failovers_total")
      found[{sample.name, sample.labels}] = sample.value;
  }
  return found;
}

std::optional<int> priority_in(const std::vector<MetricSample>& samples,
                               const std::string& cluster) {
  return value_in(sums_of(samples).priority, cluster);
}

}  // namespace

TopFrame TopView::step(const std::vector<MetricSample>& samples, absl::Time now) {
  const bool has_before = before_time_ != absl::InfinitePast() && now > before_time_ &&
                          !was_restarted(before_, samples);
  if (!has_before) before_.clear();
  const Sums sums = sums_of(samples);
  const Sums before = sums_of(before_);
  const Rows rows(
      sums,
      before,
      has_before ? std::optional(absl::ToDoubleSeconds(now - before_time_)) : std::nullopt);
  TopFrame frame;
  frame.time = now;
  for (const MetricSample& sample : samples) {
    if (sample.name != "signalbox_xds_connected") continue;
    ++frame.xds_servers;
    if (sample.value > 0) ++frame.xds_connected;
  }
  frame.all = rows.total();
  frame.rows = rows.all();
  if (has_before) note_failovers(samples, frame);
  frame.history = history_;
  before_ = samples;
  before_time_ = now;
  return frame;
}

void TopView::note_failovers(const std::vector<MetricSample>& samples, TopFrame& frame) {
  const auto before = failovers_in(before_);
  for (const auto& [key, count] : failovers_in(samples)) {
    const auto earlier = before.find(key);
    const double fresh = count - (earlier == before.end() ? 0 : earlier->second);
    if (fresh <= 0) continue;
    const MetricSample sample{key.first, key.second, count};
    const std::string cluster = label(sample, "cluster");
    frame.fresh.push_back({frame.time,
                           cluster,
                           label(sample, "direction"),
                           label(sample, "reason"),
                           fresh,
                           priority_in(before_, cluster),
                           priority_in(samples, cluster)});
  }
  history_.insert(history_.begin(), frame.fresh.begin(), frame.fresh.end());
  if (history_.size() > kHistory) history_.resize(kHistory);
}

namespace {

constexpr std::size_t kColumns = 9;
using Cells = std::array<std::string, kColumns>;

std::string number(std::optional<double> value, const char* unit = "") {
  if (!value) return "-";
  return absl::StrCat(
      *value >= 100 ? absl::StrFormat("%.0f", *value) : absl::StrFormat("%.1f", *value), unit);
}

std::string whole(std::optional<double> value) {
  return value ? absl::StrFormat("%.0f", *value) : "-";
}

std::string time_text(std::optional<double> seconds) {
  if (!seconds) return "-";
  return *seconds >= 1 ? number(seconds, " s") : number(*seconds * 1e3, " ms");
}

std::string priority_text(std::optional<int> priority) {
  if (!priority) return "-";
  return *priority < 0 ? "none" : absl::StrCat(*priority);
}

Cells cells_of(const TopRow& row) {
  return {absl::StrCat(row.aggregate.empty() ? "" : "  ", one_line(row.cluster)),
          priority_text(row.priority),
          number(row.calls.per_second),
          number(row.calls.error_percent, " %"),
          whole(row.calls.active),
          time_text(row.calls.p50_seconds),
          time_text(row.calls.p99_seconds),
          row.endpoints ? absl::StrCat(*row.ready, "/", *row.endpoints) : "-",
          absl::StrFormat("%.0f", row.failovers)};
}

// The number of characters of UTF-8.
std::size_t width_of(absl::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80; }));
}

std::string clipped(absl::string_view text, std::size_t columns) {
  std::size_t end = 0;
  for (std::size_t width = 0; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80;
    if (begins && ++width > columns) break;
  }
  return std::string(text.substr(0, end));
}

// Names to the left, numbers to the right.
std::vector<std::string> table(const std::vector<Cells>& rows) {
  std::array<std::size_t, kColumns> widths{};
  for (const Cells& row : rows) {
    for (std::size_t i = 0; i < kColumns; ++i)
      widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::vector<std::string> lines;
  for (const Cells& row : rows) {
    std::string line = row[0] + std::string(widths[0] - width_of(row[0]), ' ');
    for (std::size_t i = 1; i < kColumns; ++i)
      absl::StrAppend(&line, std::string(widths[i] - width_of(row[i]) + 2, ' '), row[i]);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string clock_text(absl::Time time) {
  return absl::FormatTime("%H:%M:%SZ", time, absl::UTCTimeZone());
}

std::string failover_text(const TopFailover& failover) {
  return absl::StrCat(clock_text(failover.seen),
                      "  ",
                      one_line(failover.cluster),
                      ": ",
                      failover.direction,
                      ", ",
                      failover.reason,
                      ", priority ",
                      priority_text(failover.from),
                      " → ",
                      priority_text(failover.to),
                      failover.times > 1 ? absl::StrFormat(", %.0f times", failover.times) : "");
}

// A value of a line of pairs. Empty text, and text with spaces, quotes or '=', is quoted. Control
// characters are escaped.
std::string pair_value(const std::string& text) {
  const std::string line = one_line(text);
  if (!line.empty() && line.find_first_of(" \"=") == std::string::npos) return line;
  std::string quoted = "\"";
  for (const char c : line)
    absl::StrAppend(&quoted, c == '"' ? "\\" : "", std::string(1, c));
  return quoted + "\"";
}

std::string pair(const char* name, std::optional<double> value, double factor = 1) {
  return value ? absl::StrFormat(" %s=%.6g", name, *value * factor) : "";
}

std::string pair(const char* name, std::optional<int> value) {
  return value ? absl::StrCat(" ", name, "=", *value) : "";
}

}  // namespace

std::vector<std::string> top_screen(const TopFrame& frame,
                                    const std::string& process,
                                    std::size_t columns,
                                    std::size_t rows) {
  std::vector<std::string> lines;
  lines.push_back(absl::StrCat(clock_text(frame.time),
                               "  ",
                               one_line(process),
                               "  control plane ",
                               frame.xds_connected,
                               "/",
                               frame.xds_servers,
                               "  calls/s ",
                               number(frame.all.per_second),
                               "  errors ",
                               number(frame.all.error_percent, " %"),
                               "  active ",
                               whole(frame.all.active)));
  lines.emplace_back();
  std::vector<Cells> cells{
      {"CLUSTER", "PRIORITY", "CALLS/S", "ERRORS", "ACTIVE", "P50", "P99", "READY", "FAILOVERS"}};
  for (const TopRow& row : frame.rows)
    cells.push_back(cells_of(row));
  for (std::string& line : table(cells))
    lines.push_back(std::move(line));
  if (!frame.history.empty()) lines.emplace_back();
  for (const TopFailover& failover : frame.history)
    lines.push_back(failover_text(failover));
  if (lines.size() > rows) lines.resize(rows);
  for (std::string& line : lines)
    line = clipped(line, columns);
  return lines;
}

std::string top_lines(const TopFrame& frame) {
  const std::string time = absl::StrCat(
      "time=", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", frame.time, absl::UTCTimeZone()));
  std::string lines;
  for (const TopRow& row : frame.rows) {
    absl::StrAppend(&lines, time, " cluster=", pair_value(row.cluster));
    if (!row.aggregate.empty()) absl::StrAppend(&lines, " aggregate=", pair_value(row.aggregate));
    absl::StrAppend(&lines,
                    pair("priority", row.priority),
                    pair("calls_per_second", row.calls.per_second),
                    pair("error_percent", row.calls.error_percent),
                    pair("active", row.calls.active));
    absl::StrAppend(&lines,
                    pair("p50_ms", row.calls.p50_seconds, 1e3),
                    pair("p99_ms", row.calls.p99_seconds, 1e3),
                    pair("ready", row.ready),
                    pair("endpoints", row.endpoints),
                    pair("failovers", std::optional(row.failovers)),
                    "\n");
  }
  for (const TopFailover& failover : frame.fresh) {
    absl::StrAppend(&lines,
                    time,
                    " cluster=",
                    pair_value(failover.cluster),
                    " failover=",
                    pair_value(failover.direction),
                    " reason=",
                    pair_value(failover.reason),
                    pair("times", std::optional(failover.times)));
    absl::StrAppend(&lines, pair("from", failover.from), pair("to", failover.to), "\n");
  }
  return lines;
}

}  // namespace signalbox::tools
