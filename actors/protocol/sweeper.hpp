// SPDX-License-Identifier: Apache-2.0
//
// The interface of the sweeper actor, which decides when a subchannel map looks for connections
// that no session uses any more.

#pragma once

#include "actors/protocol/registration.hpp"

namespace signalbox::protocol {

/// There is one sweeper for each subchannel map that keeps sessions.
using SweeperActor = ActorOf<IdleTimeoutSet, SweepDone, TimerFired>;

}  // namespace signalbox::protocol
