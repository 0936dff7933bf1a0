// SPDX-License-Identifier: Apache-2.0
//
// The interface of the channel actor, which serves one target. Also the part of this interface that
// the channel's xds_watcher uses.

#pragma once

#include "actors/protocol/registration.hpp"

namespace signalbox::protocol {

/// The messages of the channel actor that its xds_watcher may send.
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
