// SPDX-License-Identifier: Apache-2.0
//
// What a cluster's load reports are made of: the CDS settings, and the counts of one interval.
//
//   xds/parse ─▶ LoadReporting ─▶ lb/tree/cluster_impl ─▶ counting/load_book
//                                                              │ LoadReading
//   control plane ◀─ LoadStatsRequest ◀─ xds/lrs ◀─────────────┘
//
// Source: gRFC A27, A64, A85.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "messages/endpoints.hpp"
#include "messages/ids.hpp"

namespace signalbox {

/// Endpoints report their load in the responses of calls (A51), which only the Pick API can read.
/// These are the values that signalbox passes on in its load reports to the control plane (A64,
/// A85).
struct LoadMetricChoice {
  bool cpu_utilization = false;
  bool mem_utilization = false;
  bool application_utilization = false;
  bool all_named = false;  ///< Every entry of named_metrics.
  std::set<std::string, std::less<>> named =
      {};  ///< The chosen entries of named_metrics, unless all_named.
  /// True: an entry of named_metrics has the prefix "named_metrics." in the report (A85). False: it
  /// has its own name (A64).
  bool prefixed = true;

  /// Whether no value is chosen.
  bool is_empty() const {
    return !cpu_utilization && !mem_utilization && !application_utilization && !all_named &&
           named.empty();
  }

  friend bool operator==(const LoadMetricChoice&, const LoadMetricChoice&) = default;
};

/// CDS lrs_server: the cluster's load is reported to `server`.
struct LoadReporting {
  ServerId server = 0;  ///< The server that sent the cluster.
  LoadMetricChoice metrics = {};
  std::string service = {};  ///< CDS eds_cluster_config.service_name; empty: CDS has none.

  friend bool operator==(const LoadReporting&, const LoadReporting&) = default;
};

/// The sum (`total`) of one metric's values, and the number of calls with a value.
struct MetricSum {
  std::uint64_t calls = 0;
  double total = 0;

  friend bool operator==(const MetricSum&, const MetricSum&) = default;
};

/// The calls to one locality in one interval. `in_progress` is the number at the interval's end.
struct LocalityLoad {
  LocalityName locality = {};
  std::uint64_t issued = 0;
  std::uint64_t succeeded = 0;
  std::uint64_t failed = 0;
  std::uint64_t in_progress = 0;
  MetricSum cpu_utilization = {};
  MetricSum mem_utilization = {};
  MetricSum application_utilization = {};
  /// The key is the metric's name in the report to the control plane.
  std::map<std::string, MetricSum> named = {};

  friend bool operator==(const LocalityLoad&, const LocalityLoad&) = default;
};

/// The load of one {cluster, EDS service} in one interval.
struct ClusterLoad {
  ClusterName cluster;
  std::string service = {};  ///< As LoadReporting::service.
  Duration interval{};       ///< The time in which the calls were counted.
  /// Calls that were dropped, by category of EDS drop_overloads.
  std::map<std::string, std::uint64_t> drops = {};
  /// Calls beyond the limit of concurrent calls. They have no category (A32).
  std::uint64_t breaker_drops = 0;
  /// Localities without calls, finished or in progress, and without values are left out.
  std::vector<LocalityLoad> localities = {};

  friend bool operator==(const ClusterLoad&, const ClusterLoad&) = default;
};

/// The clusters that a server wants load reports of.
struct LoadSelection {
  bool all = false;
  std::set<std::string> clusters = {};  ///< Their names; read only if `all` is false.

  friend bool operator==(const LoadSelection&, const LoadSelection&) = default;
};

/// The load that was not reported yet. LoadBook::settle(`number`) marks it as reported.
struct LoadReading {
  std::uint64_t number = 0;
  /// A cluster that has neither counts nor calls in progress is left out.
  std::vector<ClusterLoad> clusters = {};
  /// Whether a cluster with load reports to the server is in use.
  bool is_in_use = false;
  /// Whether there are counts that no report had, of clusters in use or not. Only answers to a
  /// ReadLoad without selection have it.
  bool is_owed = false;
  /// Names that the server asked for and that no cluster of the server has.
  std::set<std::string> unknown = {};
  /// The number of endpoints' values that are not in the report; see LocalityTotals::lost_values.
  std::uint64_t lost_values = 0;
};

}  // namespace signalbox
