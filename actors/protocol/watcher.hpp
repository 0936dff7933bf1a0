// SPDX-License-Identifier: Apache-2.0
//
// The resources of one target, and what the xds_client sees of their watcher.

#pragma once

#include "actors/protocol/registration.hpp"

namespace signalbox::protocol {

/// What the xds_client sees of a watcher.
using ResourceObserver = ActorOf<ResourcesChanged>;

using WatcherActor = ActorOf<ResourcesChanged,
                             NameResolved,
                             ClustersReferenced,
                             ReresolutionRequested,
                             TimerFired,
                             XdsClientReplaced>;

}  // namespace signalbox::protocol
