// SPDX-License-Identifier: Apache-2.0
//
// The actor around lb::HealthCheckCore, which decides when one address is probed and whether it is
// healthy. The actor owns the probes. The prober's threads send the answers as messages.
//
//   subchannel_map ─ spawns ─▶ [health_checker] ─ HealthChecked ─▶ subchannel_map

#pragma once

#include "actors/environment.hpp"
#include "actors/protocol/health_checker.hpp"
#include "actors/protocol/subchannel_map.hpp"
#include "messages/subchannel_events.hpp"

namespace signalbox::actors {

/// Starts the health checker of one address of a leaf cluster with health checks. The actor probes
/// the address, and reports its health. Precondition: the environment has a prober.
protocol::HealthCheckerActor spawn_health_checker(caf::actor_system& system,
                                                  EnvironmentPtr environment,
                                                  StartHealthChecks order,
                                                  protocol::SubchannelMapActor map);

}  // namespace signalbox::actors
