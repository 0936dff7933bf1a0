// SPDX-License-Identifier: Apache-2.0
//
// promises — what each policy promises of its picks, asked of the snapshot once all is quiet.
//
//   snapshot's picker ◀─ many picks of each cluster ─▶ who was chosen ─▶ PolicyRow::chooses
//
// No call begins: the trackers that picks name are left alone. What pickers ask for is told.

#pragma once

#include <optional>
#include <string>

#include "lb/pick/snapshot_cell.hpp"
#include "tests/sim/setting.hpp"
#include "tests/sim/topology.hpp"

namespace signalbox::sim {

/// Asks for whatever policies_keep_their_promises() will: some connect only for that.
void ask_by_hash(const lb::Snapshot& snapshot, const TargetModel& target);

/// Where hosts are up, and it was asked some seconds ago: who spreads reaches each of them, who
/// picks one stays with it, equal hashes go to the same; and nothing is refused without a reason,
/// so that no breaker holds what ended calls once took.
void policies_keep_their_promises(const lb::Snapshot& snapshot,
                                  const TargetModel& target,
                                  const Topology& topology,
                                  FakeComplaints& complaints);

/// A host that calls can be failed at, so that outlier detection must set it aside (A50).
struct Suspect {
  std::string cluster;  ///< As routed.
  Address host;
};

/// The host that is chosen most, of a cluster of the target that ejects, whose policy minds it,
/// with another host to go to; none: there is no such cluster.
std::optional<Suspect> find_suspect(const lb::Snapshot& snapshot,
                                    const TargetModel& target,
                                    const Topology& topology);

/// Whether calls would still go to it.
bool is_chosen(const lb::Snapshot& snapshot, const Suspect& suspect);

}  // namespace signalbox::sim
