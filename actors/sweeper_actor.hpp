// SPDX-License-Identifier: Apache-2.0
//
// The actor around lb::SweepCore, which decides when the subchannel map looks for connections that
// no session uses any more.
//
//   subchannel_map ─ IdleTimeoutSet, SweepDone ─▶ [sweeper] ─ SweepAsked ─▶ subchannel_map

#pragma once

#include "actors/environment.hpp"
#include "actors/protocol/subchannel_map.hpp"
#include "actors/protocol/sweeper.hpp"

namespace signalbox::actors {

/// Starts the sweeper of one subchannel map with session affinity: a timer that makes the map look
/// for connections that no session uses any more.
protocol::SweeperActor spawn_sweeper(caf::actor_system& system,
                                     EnvironmentPtr environment,
                                     protocol::SubchannelMapActor map);

}  // namespace signalbox::actors
