// SPDX-License-Identifier: Apache-2.0
//
// The actor around lb::SubchannelMapCore: the subchannels of one leaf cluster, and the policies
// that hold them. The actor knows the actors of holders, subchannels, health checkers and the
// sweeper. It restarts all of these but holders. The core decides everything else.

#pragma once

#include <memory>

#include "actors/environment.hpp"
#include "actors/protocol/subchannel_map.hpp"

namespace signalbox::actors {

class SubchannelTable;

/// Starts the subchannel map of one leaf cluster. The actor owns the subchannels, their health
/// checkers if the cluster has health checks, and the sweeper if calls may belong to sessions.
/// `table`: receives the subchannels' states for operators; null: they are not shown.
protocol::SubchannelMapActor spawn_subchannel_map(caf::actor_system& system,
                                                  EnvironmentPtr environment,
                                                  std::shared_ptr<SubchannelTable> table = nullptr);

}  // namespace signalbox::actors
