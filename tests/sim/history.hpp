// SPDX-License-Identifier: Apache-2.0
//
// history — how a topology begins, and how it changes at random.
//
//   FakeChance ─▶ make_topology ─▶ Topology ◀─ mutate, by a table of kinds of change ◀─ FakeChance
//
// The control plane's configuration stays valid: no gap between priorities, no locality twice in a
// priority, no host in two localities.

#pragma once

#include <set>
#include <string>

#include "tests/sim/topology.hpp"
#include "tests/support/fake_chance.hpp"

namespace signalbox::sim {

using testing::FakeChance;

/// A first topology: one target or two, routes to a few clusters of random kinds.
Topology make_topology(FakeChance& chance);

/// Makes a random change. Returns the touched clusters' names, or "" for listeners and routes.
std::set<std::string> mutate(Topology& topology, FakeChance& chance);

/// Adds every cluster that is missing and that can be reached from a route, except kGhost. Gives
/// every target a virtual host.
void complete(Topology& topology);

/// Does complete(), and makes a small change to every leaf, so that each policy gets an update.
void touch_everything(Topology& topology);

/// Shortens the idle timeouts to ten minutes at most, so that every host that only sessions keep is
/// released soon after ten minutes.
void shorten_idle_timeouts(Topology& topology);

/// Gives every locality of every EDS leaf a new name. So every host of these leaves moves to
/// another locality of its priority.
void move_all_hosts(Topology& topology);

}  // namespace signalbox::sim
