// SPDX-License-Identifier: Apache-2.0
//
// The interface of the load_reporter actor: the load reports to one server.

#pragma once

#include "actors/protocol/registration.hpp"

namespace signalbox::protocol {

using LoadReporterActor = ActorOf<LoadReportsWanted,
                                  AdsStreamOpened,
                                  AdsBytesReceived,
                                  AdsBytesWritten,
                                  AdsStreamClosed,
                                  TimerFired>;

}  // namespace signalbox::protocol
