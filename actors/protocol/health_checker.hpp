// SPDX-License-Identifier: Apache-2.0
//
// The interface of the health_checker actor: the probes of one address.

#pragma once

#include "actors/protocol/registration.hpp"

namespace signalbox::protocol {

/// There is one health checker for each address that its subchannel map probes.
using HealthCheckerActor = ActorOf<ProbeEnded, TimerFired>;

}  // namespace signalbox::protocol
