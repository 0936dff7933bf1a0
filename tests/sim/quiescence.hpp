// SPDX-License-Identifier: Apache-2.0
//
// quiescence — conditions that hold once faults have ended and time has passed.
//
// The name of each function is its condition. A function records a broken condition as a complaint.

#pragma once

#include "tests/sim/calls.hpp"
#include "tests/sim/stage.hpp"
#include "tests/sim/topology.hpp"

namespace signalbox::sim {

/// A37-15: the client is subscribed to exactly the listeners, their routes, all clusters reached
/// from the routes, and the endpoints of the EDS clusters among these.
void subscribed_is_what_can_be_reached(const Setting& setting,
                                       const Topology& topology,
                                       FakeComplaints& complaints);

void every_response_was_answered(const Setting& setting, FakeComplaints& complaints);

/// A56: calls never go to a lower priority while a higher one is usable. This also shows that the
/// last valid configuration is in use, unless an older one leads to the same hosts.
void calls_go_to_the_best_hosts(const Calls& calls,
                                const TargetModel& target,
                                const Topology& topology,
                                FakeComplaints& complaints);

/// A call may wait only if it is wait_for_ready and its cluster cannot serve now: a call without
/// wait_for_ready would fail. A call of a cluster that no route names any more must not wait: it
/// would wait for ever (A31-17).
void nobody_waits_without_a_reason(const Calls& calls,
                                   const TargetModel& target,
                                   const Topology& topology,
                                   FakeComplaints& complaints);

/// A31-15: a cluster that calls hold is subscribed to, even when no route names it any more.
void clusters_of_calls_are_subscribed(const Calls& calls,
                                      const Setting& setting,
                                      FakeComplaints& complaints);

/// Checks that no error text of the snapshot says that the control plane cannot be reached: it is
/// reachable again (A88).
void no_note_is_left_of_a_lost_control_plane(const lb::Snapshot& snapshot,
                                             FakeComplaints& complaints);

/// Checks the number of subchannels and attempts to connect of each host: Topology and
/// PolicyRow::connects say which are needed or allowed. Hosts that may serve tiered aggregates are
/// left out.
void connections_are_those_that_are_needed(const Setting& setting,
                                           const Topology& topology,
                                           FakeComplaints& complaints);

/// Checks that hosts which moved kept their connections. `before`: the open connections before the
/// move. Only EDS clusters with a policy that connects to all hosts are checked, and none that
/// tiered aggregates use. In unchecked clusters a host that moves may lose its connection.
void hosts_that_move_keep_their_connections(
    const std::map<Address, std::set<std::uint64_t>>& before,
    const Setting& setting,
    const Topology& topology,
    FakeComplaints& complaints);

/// Checks, after the end of the world, that no actor, stream, watch of load, attempt, connection,
/// snapshot or retired object is left.
void nothing_is_left(const Setting& setting, const Stage& stage, FakeComplaints& complaints);

}  // namespace signalbox::sim
