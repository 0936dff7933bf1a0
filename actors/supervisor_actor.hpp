// SPDX-License-Identifier: Apache-2.0
//
// The root of a runtime's actors: opens and closes channels, and restarts the xds_client, the
// channels and the load_reporters when they die.

#pragma once

#include "actors/environment.hpp"
#include "actors/protocol/supervisor.hpp"

namespace signalbox::actors {

/// Starts the supervisor of one runtime. The actor owns the xds_client, the channel actors and the
/// load_reporters.
protocol::SupervisorActor spawn_supervisor(caf::actor_system& system, EnvironmentPtr environment);

}  // namespace signalbox::actors
