// SPDX-License-Identifier: Apache-2.0
//
// The interface of the ads_stream actor: the ADS session with one server.

#pragma once

#include "actors/protocol/registration.hpp"

namespace signalbox::protocol {

using AdsStreamActor = ActorOf<Subscribe,
                               AdsStreamOpened,
                               AdsBytesReceived,
                               AdsBytesWritten,
                               AdsStreamClosed,
                               TimerFired>;

}  // namespace signalbox::protocol
