// SPDX-License-Identifier: Apache-2.0
//
// The interface of the subchannel actor: the connections to one address.

#pragma once

#include "actors/protocol/registration.hpp"

namespace signalbox::protocol {

using SubchannelActor = ActorOf<ConnectRequested,
                                Connected,
                                ConnectFailed,
                                ConnectionClosed,
                                StreamsWanted,
                                MaxConnectionsChanged,
                                TimerFired>;

}  // namespace signalbox::protocol
