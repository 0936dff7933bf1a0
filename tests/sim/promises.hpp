// SPDX-License-Identifier: Apache-2.0
//
// promises — checks that policies spread calls as policies.hpp says, with picks from the snapshot
// of a world at rest.
//
//   snapshot's picker ◀─ many picks of a cluster ─▶ chosen hosts ─▶ PolicyRow::chooses, shares
//
// Instead of PolicyRow::chooses, a DNS cluster with a policy that does not hash must keep to one
// host, and calls to a tiered aggregate must keep to tiers with a load.
//
// The picks begin no call, so their trackers are not used. Asks (a picker's requests to its policy,
// such as "connect this host") are delivered. Policies count the picks that they drop, so the drops
// are noted in a DropBook.

#pragma once

#include <optional>
#include <string>

#include "lb/pick/snapshot_cell.hpp"
#include "tests/sim/calls.hpp"
#include "tests/sim/setting.hpp"
#include "tests/sim/topology.hpp"

namespace signalbox::sim {

/// Makes picks, so that policies which connect only on a pick (such as ring_hash) open all
/// connections that policies_keep_their_promises() needs.
void ask_by_hash(const lb::Snapshot& snapshot,
                 const TargetModel& target,
                 const Topology& topology,
                 DropBook& drops);

/// Checks each policy by many picks. A policy that spreads calls reaches every host. A policy that
/// picks one host stays with it. Equal hashes go to the same host. No pick fails or is queued, and
/// about as many are dropped as EDS says. Hosts and zones have the shares of shares.hpp, and
/// least_request avoids a busy host as its bias says. A tiered aggregate is checked in another way:
/// only hosts of tiers with a load get calls. Clusters that no host can serve are left out.
/// `calls`: those of the target. Precondition: all hosts are up, and ask_by_hash() ran some seconds
/// ago.
void policies_keep_their_promises(const lb::Snapshot& snapshot,
                                  const TargetModel& target,
                                  const Topology& topology,
                                  const Calls& calls,
                                  DropBook& drops,
                                  FakeComplaints& complaints);

/// A host on which calls will fail, so that outlier detection must eject it (A50).
struct Suspect {
  std::string cluster;  ///< The routed cluster.
  Address host;
};

/// Finds a cluster of the target that ejects hosts, with a policy that leaves ejected hosts out,
/// and with at least two hosts. Tiered aggregates are left out. Returns the host that most picks
/// choose; nullopt: no cluster is suitable.
std::optional<Suspect> find_suspect(const lb::Snapshot& snapshot,
                                    const TargetModel& target,
                                    const Topology& topology,
                                    DropBook& drops);

/// Whether picks still choose the host.
bool is_chosen(const lb::Snapshot& snapshot, const Suspect& suspect, DropBook& drops);

}  // namespace signalbox::sim
