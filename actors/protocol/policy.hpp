// SPDX-License-Identifier: Apache-2.0
//
// The interface of the policy actor, which is any node of the policy tree. Also two parts of
// interfaces: the messages that a policy may send to its parent, and the messages that a subchannel
// map may send to a policy.

#pragma once

#include "actors/protocol/registration.hpp"

namespace signalbox::protocol {

/// The messages that a policy sends to the node above it.
using PolicyParent = ActorOf<ChildStateChanged, ChildApplied, ChildAskedReresolution>;

/// The messages that a subchannel map sends to a policy with subchannels.
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
