// SPDX-License-Identifier: Apache-2.0
//
// books — I10: what the metrics say is what is there.
//
//   Instruments::collect ─▶ [books] ◀─ model: stage, fakes, calls, topology
//
// Looked at when the world is at rest, and after its end. signalbox_priority_active has one writer
// for each tree that leads to a cluster, the last one holds: it is compared where there is one.

#pragma once

#include <memory>

#include "metrics/instruments.hpp"
#include "tests/sim/calls.hpp"
#include "tests/sim/stage.hpp"
#include "tests/sim/topology.hpp"

namespace signalbox::sim {

/// A scrape, to be asked for sums of values.
class Books {
 public:
  explicit Books(const metrics::Instruments& instruments) : families_(instruments.collect()) {}

  /// Over the series whose first labels have these values.
  double sum(metrics::Metric metric, const metrics::LabelValues& first_labels = {}) const;

  /// The same for calls that routes sent to `cluster`, whichever leaf below it took them.
  double sum_routed(metrics::Metric metric,
                    const std::string& cluster,
                    const std::string& second_label = "") const;

  /// How many series there are.
  std::size_t count(metrics::Metric metric) const;

  /// By all labels.
  std::map<metrics::LabelValues, double> series(metrics::Metric metric) const;

  /// By the value of the label at this place.
  std::map<std::string, double> by_label(metrics::Metric metric, std::size_t place) const;

 private:
  std::vector<metrics::Family> families_;
};

/// Actors, subchannels, connections, endpoints, resources: gauges equal what lives.
void gauges_are_what_lives(const Books& books,
                           const Setting& setting,
                           const Stage& stage,
                           FakeComplaints& complaints);

/// No more deaths are told than there were, and of nobody else.
void deaths_are_those_that_happened(const Books& books,
                                    const Stage& stage,
                                    FakeComplaints& complaints);

/// The priority in use, where one tree leads to the cluster; A56.
void active_priorities_are_the_best(const Books& books,
                                    const Topology& topology,
                                    FakeComplaints& complaints);

/// ENV-14, ENV-25: in tiered mode the loads of an aggregate are 100 together where anybody is fit,
/// and whoever has one is connected.
void loads_are_of_a_hundred(const Books& books,
                            const Setting& setting,
                            const Topology& topology,
                            FakeComplaints& complaints);

/// Picks by result, calls under way, cookies given: as the data planes counted them, all targets
/// together.
void calls_are_counted(const Books& books,
                       const std::map<std::string, CallCounts>& counts,
                       FakeComplaints& complaints);

/// After the end: gauges of what has lived are zero or gone.
void gauges_end(const Books& books, FakeComplaints& complaints);

}  // namespace signalbox::sim
