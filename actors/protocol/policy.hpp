// SPDX-License-Identifier: Apache-2.0
//
// Any node of the policy tree, and the parts that its parent and a subchannel map see.

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
