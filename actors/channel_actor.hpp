// SPDX-License-Identifier: Apache-2.0
//
// The actor around lb::ChannelCore, which serves one target. The actor owns the xds_watcher and the
// root of the policy tree, and publishes snapshots to the data plane.

#pragma once

#include <memory>

#include "actors/channel_port.hpp"
#include "actors/environment.hpp"
#include "actors/protocol/channel.hpp"
#include "actors/protocol/xds_client.hpp"

namespace signalbox::actors {

/// Starts the channel actor of one target. The actor applies configurations and publishes
/// snapshots. It owns the target's xds_watcher and policy tree.
protocol::ChannelActor spawn_channel(caf::actor_system& system,
                                     EnvironmentPtr environment,
                                     std::shared_ptr<const ChannelPort> port,
                                     protocol::XdsClientActor client);

}  // namespace signalbox::actors
