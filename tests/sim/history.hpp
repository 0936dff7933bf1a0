// SPDX-License-Identifier: Apache-2.0
//
// history — how a topology begins, and how it changes at random.
//
//   chance ─▶ make_topology ─▶ Topology ◀─ mutate, by a table of kinds of change ◀─ chance
//
// What the control plane says stays valid: no gap between priorities, no locality twice in one, no
// host in two places.

#pragma once

#include <set>
#include <string>

#include "tests/sim/topology.hpp"
#include "tests/support/fake_chance.hpp"

namespace signalbox::sim {

using testing::FakeChance;

/// A first world: one target or two, routes to a few clusters of every kind.
Topology make_topology(FakeChance& chance);

/// What a mutation touched: names of clusters, or "" for listeners and routes.
std::set<std::string> mutate(Topology& topology, FakeChance& chance);

/// What routes and aggregates name exists from now on (but for the ghost, which never does), and
/// nobody is left out.
void complete(Topology& topology);

/// As complete(), and changes a little of every leaf, so that each policy is told something new.
void touch_everything(Topology& topology);

/// So that whoever is kept for a session's sake is let go within ten minutes.
void shorten_idle_timeouts(Topology& topology);

/// Every host of every leaf moves to another locality of its priority's place.
void move_all_hosts(Topology& topology);

}  // namespace signalbox::sim
