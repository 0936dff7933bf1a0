// SPDX-License-Identifier: Apache-2.0
//
// The actor around lb::SubchannelCore, which decides about the connections to one address of one
// leaf cluster. The actor owns the attempts to connect. The connector's threads send the outcomes
// as messages.

#pragma once

#include "actors/environment.hpp"
#include "actors/protocol/subchannel.hpp"
#include "actors/protocol/subchannel_map.hpp"
#include "messages/ids.hpp"
#include "messages/subchannel_events.hpp"

namespace signalbox::actors {

/// Starts the subchannel actor of one address of a leaf cluster. The actor connects when a
/// ConnectRequested asks for it, reports each state to `map`, and waits (back-off) after a failed
/// attempt.
protocol::SubchannelActor spawn_subchannel(caf::actor_system& system,
                                           EnvironmentPtr environment,
                                           Address address,
                                           SubchannelSettingsPtr settings,
                                           protocol::SubchannelMapActor map);

}  // namespace signalbox::actors
