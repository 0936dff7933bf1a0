// SPDX-License-Identifier: Apache-2.0
//
// The interface of the supervisor actor: the root of one runtime's actors.

#pragma once

#include "actors/protocol/registration.hpp"

namespace signalbox::protocol {

using SupervisorActor = ActorOf<OpenChannel,
                                CloseChannel,
                                ChannelExitIdle,
                                LoadReportsWanted,
                                RestartDue,
                                DumpRequested>;

}  // namespace signalbox::protocol
