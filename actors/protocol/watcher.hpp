// SPDX-License-Identifier: Apache-2.0
//
// The interface of the xds_watcher actor, which watches the resources of one target. Also the part
// of this interface that the xds_client uses.

#pragma once

#include "actors/protocol/registration.hpp"

namespace signalbox::protocol {

/// The messages that the xds_client sends to a watcher.
using ResourceObserver = ActorOf<ResourcesChanged>;

using WatcherActor = ActorOf<ResourcesChanged,
                             NameResolved,
                             ClustersReferenced,
                             ReresolutionRequested,
                             TimerFired,
                             XdsClientReplaced>;

}  // namespace signalbox::protocol
