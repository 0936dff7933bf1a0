// SPDX-License-Identifier: Apache-2.0
//
// One target, and what its watcher sees of it.

#pragma once

#include "actors/protocol/registration.hpp"

namespace signalbox::protocol {

/// What an xds_watcher sees of the channel.
using ConfigListener = ActorOf<EmitConfig, EmitError>;

using ChannelActor = ActorOf<EmitConfig,
                             EmitError,
                             ChildStateChanged,
                             ChildApplied,
                             ChildAskedReresolution,
                             GracePassed,
                             TimerFired,
                             IdleExitRequested,
                             RebuildDue,
                             RestartDue,
                             XdsClientReplaced>;

}  // namespace signalbox::protocol
