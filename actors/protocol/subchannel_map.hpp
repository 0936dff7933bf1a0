// SPDX-License-Identifier: Apache-2.0
//
// The interface of the subchannel_map actor: the owner of the subchannels of one leaf cluster.

#pragma once

#include "actors/protocol/registration.hpp"

namespace signalbox::protocol {

using SubchannelMapActor = ActorOf<SubchannelAcquired,
                                   SubchannelReleased,
                                   SubchannelConnectAsked,
                                   HolderSettled,
                                   MapGenerationStarted,
                                   MapGenerationApplied,
                                   EndpointHealthChanged,
                                   EndpointsTracked,
                                   SessionsKept,
                                   SweepAsked,
                                   HealthChecked,
                                   SubchannelStateChanged,
                                   SubchannelTimerAsked,
                                   RestartDue>;

}  // namespace signalbox::protocol
