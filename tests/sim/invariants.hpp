// SPDX-License-Identifier: Apache-2.0
//
// invariants — conditions that hold after every step, whatever the order and the faults.
//
// The name of each function is its condition. A function records a broken condition as a complaint.
// The fakes check further conditions where they can see them: FakeControlPlane (each response has
// one answer; one stream a second), FakeConnector and FakeReclaimer (nothing in use is destroyed).
// So do Calls (each call ends once, on a connection of its cluster) and Stage (no actor dies unless
// it is killed).

#pragma once

#include <map>
#include <string>

#include "lb/request_limit.hpp"
#include "tests/sim/calls.hpp"
#include "tests/sim/drops.hpp"

namespace signalbox::sim {

/// The numbers of a target's newest published snapshot. The next snapshot must have a higher
/// sequence, and its generation must not be lower.
struct LastPublished {
  std::uint64_t sequence = 0;
  Generation generation = 0;
};

/// Every cluster that the snapshot's routes can choose is one that the snapshot's picker knows
/// (A31-7, A31-18). Picks once of each; dropped picks are noted in `drops`.
void clusters_of_the_selector_are_clusters_of_the_picker(const lb::Snapshot& snapshot,
                                                         DropBook& drops,
                                                         FakeComplaints& complaints);

void sequence_and_generation_never_fall(const lb::Snapshot& snapshot,
                                        LastPublished& last,
                                        FakeComplaints& complaints);

/// A31-15: if a call, or a slow reader (calls.hpp), holds an lb::ClusterRef to a cluster, the
/// cluster is in the snapshot's policy tree.
void a_cluster_in_use_is_in_the_tree(const lb::Snapshot& snapshot,
                                     const Calls& calls,
                                     DropBook& drops,
                                     FakeComplaints& complaints);

void uses_of_a_cluster_are_the_calls_that_hold_it(const Calls& calls, FakeComplaints& complaints);

/// Checks circuit breakers (A32), over all targets together: the count of a leaf's running calls is
/// right, and never exceeds its limit. `limits`: for each leaf, the highest limit under which a
/// running call may have begun.
void calls_in_flight_are_within_the_limit(const std::map<std::string, std::int64_t>& in_flight,
                                          const std::map<std::string, unsigned>& limits,
                                          lb::RequestLimits& counted,
                                          FakeComplaints& complaints);

void no_call_waits_past_its_deadline(const Calls& calls, Instant now, FakeComplaints& complaints);

}  // namespace signalbox::sim
