// SPDX-License-Identifier: Apache-2.0
//
// The actor around xds::DependencyManager, which collects the resources of one target's
// configuration. When the xds_client is replaced, this actor repeats all watches at the new client.
// It owns the dns actors.

#pragma once

#include <memory>

#include "actors/channel_port.hpp"
#include "actors/environment.hpp"
#include "actors/protocol/channel.hpp"
#include "actors/protocol/watcher.hpp"
#include "actors/protocol/xds_client.hpp"

namespace signalbox::actors {

/// Starts the xds_watcher of one target. The actor turns resources into complete configurations,
/// and owns its dns actors.
protocol::WatcherActor spawn_watcher(caf::actor_system& system,
                                     EnvironmentPtr environment,
                                     std::shared_ptr<const ChannelPort> port,
                                     protocol::XdsClientActor client,
                                     protocol::ConfigListener listener);

}  // namespace signalbox::actors
