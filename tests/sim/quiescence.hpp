// SPDX-License-Identifier: Apache-2.0
//
// quiescence — what holds once nothing goes wrong any more and time has passed.
//
// Each function is named like its sentence, and complains with it.

#pragma once

#include "tests/sim/calls.hpp"
#include "tests/sim/stage.hpp"
#include "tests/sim/topology.hpp"

namespace signalbox::sim {

/// A37-15: the listeners, their routes, all clusters reached from them, the endpoints of the
/// leaves.
void subscribed_is_what_can_be_reached(const Setting& setting,
                                       const Topology& topology,
                                       FakeComplaints& complaints);

void every_response_was_answered(const Setting& setting, FakeComplaints& complaints);

/// A56: never a lower priority while a higher one is usable; and the configuration in use is the
/// last valid one, since only that leads there.
void calls_go_to_the_best_hosts(const Calls& calls,
                                const TargetModel& target,
                                const Topology& topology,
                                FakeComplaints& complaints);

/// Who waits is wait_for_ready, for a cluster that cannot serve, and would have been told so; not
/// for one that no route leads to any more: it would wait for ever (A31-17).
void nobody_waits_without_a_reason(const Calls& calls,
                                   const TargetModel& target,
                                   const Topology& topology,
                                   FakeComplaints& complaints);

/// A31-15: what calls hold is subscribed to, though no route leads there any more.
void clusters_of_calls_are_subscribed(const Calls& calls,
                                      const Setting& setting,
                                      FakeComplaints& complaints);

/// A88: the control plane is there, so no call that fails would say that it is not.
void no_note_is_left_of_a_lost_control_plane(const lb::Snapshot& snapshot,
                                             FakeComplaints& complaints);

/// No leaked subchannel, no leaked attempt, none missing.
void connections_are_those_that_are_needed(const Setting& setting,
                                           const Topology& topology,
                                           FakeComplaints& complaints);

/// `before`: the connections that stood before the hosts moved. Those of who picks first may go,
/// and those of who connects when asked: in another priority nobody has asked yet.
void hosts_that_move_keep_their_connections(
    const std::map<Address, std::set<std::uint64_t>>& before,
    const Setting& setting,
    const Topology& topology,
    FakeComplaints& complaints);

/// After the end: no actor, no stream, no attempt, no connection, no snapshot.
void nothing_is_left(const Setting& setting, const Stage& stage, FakeComplaints& complaints);

}  // namespace signalbox::sim
