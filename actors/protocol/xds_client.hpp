// SPDX-License-Identifier: Apache-2.0
//
// The interface of the xds_client actor, which caches the resources of one bootstrap. Also the part
// of this interface that an ads_stream uses.

#pragma once

#include "actors/protocol/registration.hpp"

namespace signalbox::protocol {

/// The messages that an ads_stream sends to the xds_client.
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
