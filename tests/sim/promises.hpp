// SPDX-License-Identifier: Apache-2.0
//
// promises — checks that each policy spreads calls as policies.hpp says, with picks from the
// snapshot of a world at rest.
//
//   snapshot's picker ◀─ many picks of each cluster ─▶ chosen hosts ─▶ PolicyRow::chooses
//
// No call begins: the trackers of picks are not used. Asks of pickers are passed on.

#pragma once

#include <optional>
#include <string>

#include "lb/pick/snapshot_cell.hpp"
#include "tests/sim/setting.hpp"
#include "tests/sim/topology.hpp"

namespace signalbox::sim {

/// Makes picks, so that policies which connect only on a pick (such as ring_hash) open all
/// connections that policies_keep_their_promises() needs.
void ask_by_hash(const lb::Snapshot& snapshot, const TargetModel& target, const Topology& topology);

/// Checks each policy by many picks. A policy that spreads calls reaches every host. A policy that
/// picks one host stays with it. Equal hashes go to the same host. A pick is refused only for a
/// drop or a limit. Precondition: all hosts are up, and ask_by_hash() ran some seconds ago.
void policies_keep_their_promises(const lb::Snapshot& snapshot,
                                  const TargetModel& target,
                                  const Topology& topology,
                                  FakeComplaints& complaints);

/// A host that outlier detection must set aside when calls fail there (A50).
struct Suspect {
  std::string cluster;  ///< The routed cluster.
  Address host;
};

/// The most chosen host of a cluster of the target. The cluster ejects hosts, its policy leaves
/// ejected hosts out, and it has another host. nullopt: there is no such cluster.
std::optional<Suspect> find_suspect(const lb::Snapshot& snapshot,
                                    const TargetModel& target,
                                    const Topology& topology);

/// Whether picks still choose the host.
bool is_chosen(const lb::Snapshot& snapshot, const Suspect& suspect);

}  // namespace signalbox::sim
