// SPDX-License-Identifier: Apache-2.0
//
// The cache of one bootstrap, and what an ads_stream sees of it.

#pragma once

#include "actors/protocol/registration.hpp"

namespace signalbox::protocol {

/// What an ads_stream sees of the xds_client.
using ResourceSink = ActorOf<ResourcesReceived, SubscriptionSent, ServerStatusChanged>;

using XdsClientActor = ActorOf<WatchesChanged,
                               WatcherGone,
                               ResourcesReceived,
                               SubscriptionSent,
                               ServerStatusChanged,
                               TimerFired,
                               RestartDue,
                               DumpRequested>;

}  // namespace signalbox::protocol
