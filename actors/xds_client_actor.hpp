// SPDX-License-Identifier: Apache-2.0
//
// The actor around xds::ClientCore: cache, watchers and does-not-exist timers of one bootstrap. The
// actor knows each watcher's actor, and owns an ads_stream actor for each server in use.

#pragma once

#include "actors/environment.hpp"
#include "actors/protocol/xds_client.hpp"

namespace signalbox::actors {

/// Starts the xds_client of one bootstrap. The actor owns an ads_stream actor for each server in
/// use.
protocol::XdsClientActor spawn_xds_client(caf::actor_system& system, EnvironmentPtr environment);

}  // namespace signalbox::actors
