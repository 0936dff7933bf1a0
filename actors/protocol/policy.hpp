// SPDX-License-Identifier: Apache-2.0
//
// The interface of the policy actor, which is any node of the policy tree. Also the interface of
// its parent as the policy sees it, and the part of a policy that a subchannel map sees.

#pragma once

#include "actors/protocol/registration.hpp"

namespace signalbox::protocol {

/// The node above a policy, as the policy sees it.
using PolicyParent = ActorOf<ChildStateChanged, ChildApplied, ChildAskedReresolution>;

/// A policy with subchannels, as the subchannel map sees it.
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
