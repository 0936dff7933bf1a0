// SPDX-License-Identifier: Apache-2.0
//
// The top of one runtime.

#pragma once

#include "actors/protocol/registration.hpp"

namespace signalbox::protocol {

using SupervisorActor =
    ActorOf<OpenChannel, CloseChannel, ChannelExitIdle, RestartDue, DumpRequested>;

}  // namespace signalbox::protocol
