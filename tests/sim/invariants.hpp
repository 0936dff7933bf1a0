// SPDX-License-Identifier: Apache-2.0
//
// invariants — conditions that hold after every step, whatever the order and the faults.
//
// Each function has its sentence's name, and complains with that sentence. The fakes check further
// conditions of every step where they can see them: FakeControlPlane (each response has one answer;
// one stream a second), FakeConnector and FakeReclaimer (nothing in use is destroyed), Calls (one
// end per call, connections of the chosen cluster), Stage (no actor dies of itself).

#pragma once

#include <map>
#include <string>

#include "lb/request_limit.hpp"
#include "tests/sim/calls.hpp"

namespace signalbox::sim {

/// The parts of the last publication that the next publication is compared with.
struct LastPublished {
  std::uint64_t sequence = 0;
  Generation generation = 0;
};

/// A31-7, A31-18.
void clusters_of_the_selector_are_clusters_of_the_picker(const lb::Snapshot& snapshot,
                                                         FakeComplaints& complaints);

void sequence_and_generation_never_fall(const lb::Snapshot& snapshot,
                                        LastPublished& last,
                                        FakeComplaints& complaints);

/// A31-15.
void a_cluster_in_use_is_in_the_tree(const lb::Snapshot& snapshot,
                                     const Calls& calls,
                                     FakeComplaints& complaints);

void uses_of_a_cluster_are_the_calls_that_hold_it(const Calls& calls, FakeComplaints& complaints);

/// A32, over all targets: no token is lost with a policy, a configuration or a call, and none is
/// given twice. `limits`: the most that each leaf was allowed since its last calls began.
void calls_in_flight_are_within_the_limit(const std::map<std::string, std::int64_t>& in_flight,
                                          const std::map<std::string, unsigned>& limits,
                                          lb::RequestLimits& counted,
                                          FakeComplaints& complaints);

void no_call_waits_past_its_deadline(const Calls& calls, Instant now, FakeComplaints& complaints);

}  // namespace signalbox::sim
