// SPDX-License-Identifier: Apache-2.0
//
// books — I10: metrics equal the world that they describe.
//
//   Instruments::collect ─▶ [books] ◀─ model: stage, fakes, calls, topology
//
// The metrics are compared when the world is at rest, and after its end. signalbox_priority_active
// has one writer for each tree that leads to a cluster, and the last writer wins. It is therefore
// compared only where one tree leads to the cluster.

#pragma once

#include <memory>

#include "metrics/instruments.hpp"
#include "tests/sim/calls.hpp"
#include "tests/sim/stage.hpp"
#include "tests/sim/topology.hpp"

namespace signalbox::sim {

/// One scrape of the metrics, with sums over its values.
class Books {
 public:
  explicit Books(const metrics::Instruments& instruments) : families_(instruments.collect()) {}

  /// The sum over the series that begin with these labels' values.
  double sum(metrics::Metric metric, const metrics::LabelValues& first_labels = {}) const;

  /// As sum(), for calls that routes sent to `cluster`, whichever leaf below it took them.
  double sum_routed(metrics::Metric metric,
                    const std::string& cluster,
                    const std::string& second_label = "") const;

  /// The number of series.
  std::size_t count(metrics::Metric metric) const;

  /// Values by all labels.
  std::map<metrics::LabelValues, double> series(metrics::Metric metric) const;

  /// Values by the label at this place.
  std::map<std::string, double> by_label(metrics::Metric metric, std::size_t place) const;

 private:
  std::vector<metrics::Family> families_;
};

/// Gauges of actors, subchannels, connections, endpoints and resources equal the number of living
/// ones.
void gauges_are_what_lives(const Books& books,
                           const Setting& setting,
                           const Stage& stage,
                           FakeComplaints& complaints);

/// Metrics count no more deaths than there were, and none of actors that did not die.
void deaths_are_those_that_happened(const Books& books,
                                    const Stage& stage,
                                    FakeComplaints& complaints);

/// A56: the gauge names the priority in use, where one tree leads to the cluster.
void active_priorities_are_the_best(const Books& books,
                                    const Topology& topology,
                                    FakeComplaints& complaints);

/// ENV-14, ENV-25: in tiered mode an aggregate's loads sum to 100 when any host is fit. Every tier
/// with a load is connected.
void loads_are_of_a_hundred(const Books& books,
                            const Setting& setting,
                            const Topology& topology,
                            FakeComplaints& complaints);

/// Picks by result, calls under way and cookies given equal the counts of the data planes, all
/// targets together.
void calls_are_counted(const Books& books,
                       const std::map<std::string, CallCounts>& counts,
                       FakeComplaints& complaints);

/// After the end: gauges of objects that have lived are zero or gone.
void gauges_end(const Books& books, FakeComplaints& complaints);

}  // namespace signalbox::sim
