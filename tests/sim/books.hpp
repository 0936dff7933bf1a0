// SPDX-License-Identifier: Apache-2.0
//
// books — checks that the metrics equal the state of the simulated world (I10 in README.md).
//
//   Instruments::collect ─▶ [books] ◀─ model: stage, fakes, calls, topology
//
// The metrics are compared when the world is at rest, and after its end. A cluster may be
// several nodes of policy trees. Its signalbox_priority_active then shows the worst of the nodes'
// priorities. The metric is therefore compared only for clusters that are one node.

#pragma once

#include <memory>

#include "messages/counting/load_book.hpp"
#include "metrics/instruments.hpp"
#include "tests/sim/calls.hpp"
#include "tests/sim/stage.hpp"
#include "tests/sim/topology.hpp"

namespace signalbox::sim {

/// One scrape of the metrics, with sums over its values.
class Books {
 public:
  explicit Books(const metrics::Instruments& instruments) : families_(instruments.collect()) {}

  /// The sum over the series that have these values in their first labels.
  double sum(metrics::Metric metric, const metrics::LabelValues& first_labels = {}) const;

  /// The sum over the series of calls that routes sent to `cluster`, for all leaves below the
  /// cluster together.
  double sum_routed(metrics::Metric metric,
                    const std::string& cluster,
                    const std::string& second_label = "") const;

  /// The number of series.
  std::size_t count(metrics::Metric metric) const;

  /// The value of each series. Keys: the values of all its labels.
  std::map<metrics::LabelValues, double> series(metrics::Metric metric) const;

  /// The sums over the series that share a value of the label at index `place`. Keys: these values.
  std::map<std::string, double> by_label(metrics::Metric metric, std::size_t place) const;

 private:
  std::vector<metrics::Family> families_;
};

/// Checks that the gauges of policies, subchannels, connections, endpoints and resources equal the
/// numbers of such objects in the simulated world, and that the control plane is connected.
void gauges_are_what_lives(const Books& books,
                           const Setting& setting,
                           const Stage& stage,
                           FakeComplaints& complaints);

/// Checks that the metrics count no more deaths of a kind of actor than the simulator has caused.
void deaths_are_those_that_happened(const Books& books,
                                    const Stage& stage,
                                    FakeComplaints& complaints);

/// Checks that signalbox_priority_active names the priority in use (A56), for routed clusters that
/// are not tiered and for the leaves that serve them. Only clusters that are exactly one node of
/// the policy trees are checked.
void active_priorities_are_the_best(const Books& books,
                                    const Topology& topology,
                                    FakeComplaints& complaints);

/// Checks aggregates in tiered mode: signalbox_tier_load_percent has the loads that the model
/// computes, and all hosts of a tier with a load are connected (ENV-14, ENV-25). The second check
/// leaves out hosts of DNS leaves, and of policies that do not connect to all hosts.
void loads_are_of_a_hundred(const Books& books,
                            const Setting& setting,
                            const Topology& topology,
                            FakeComplaints& complaints);

/// Checks the metrics of picks by result, of running calls and of cookies against the counts of the
/// data planes, summed over all targets.
void calls_are_counted(const Books& books,
                       const std::map<std::string, CallCounts>& counts,
                       FakeComplaints& complaints);

/// Compares the calls to clusters with an lrs_server, their drops by category, and the values of
/// their endpoints with the reports that the load server got, plus what waits in `book` (C3, C4 and
/// C6 of docs/conformance.md). A load_reporter actor that died may have sent one report twice (C7).
void loads_are_what_was_called(const std::map<std::string, testing::CallLoad>& calls,
                               LoadBook& book,
                               const Setting& setting,
                               const Stage& stage,
                               FakeComplaints& complaints);

/// Checks, after the end of the world, that gauges are 0 or gone.
void gauges_end(const Books& books, FakeComplaints& complaints);

}  // namespace signalbox::sim
