// SPDX-License-Identifier: Apache-2.0
//
// Any node of the policy tree, and what its parent and a subchannel map see of it.

#pragma once

#include "actors/protocol/registration.hpp"

namespace signalbox::protocol {

/// What a policy sees of the node above it.
using PolicyParent = ActorOf<ChildStateChanged, ChildApplied, ChildAskedReresolution>;

/// What a subchannel map sees of a policy that holds subchannels.
using SubchannelObserver = ActorOf<SubchannelStateChanged, SubchannelGone>;

/// Any node of the policy tree.
using PolicyActor = ActorOf<ConfigUpdated,
                            ChildStateChanged,
                            ChildApplied,
                            ChildAskedReresolution,
                            SubchannelStateChanged,
                            SubchannelGone,
                            TimerFired,
                            PickAsked,
                            IdleExitRequested,
                            RebuildDue,
                            RestartDue>;

}  // namespace signalbox::protocol
