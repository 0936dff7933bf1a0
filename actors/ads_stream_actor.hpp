// SPDX-License-Identifier: Apache-2.0
//
// The actor around xds::AdsSession, the session with one control-plane server. The actor owns the
// stream. The transport's callbacks send the received bytes to the actor as messages.

#pragma once

#include "actors/environment.hpp"
#include "actors/protocol/ads_stream.hpp"
#include "actors/protocol/xds_client.hpp"
#include "messages/ids.hpp"

namespace signalbox::actors {

/// Starts the actor for `server`. The actor reports to `sink` (the xds_client). There is one such
/// actor for each control-plane server in use.
protocol::AdsStreamActor spawn_ads_stream(caf::actor_system& system,
                                          EnvironmentPtr environment,
                                          ServerId server,
                                          protocol::ResourceSink sink);

}  // namespace signalbox::actors
