// SPDX-License-Identifier: Apache-2.0
//
// spawn — one function for each kind of actor; a table of contents of the runtime.
//
// The spawner of an actor monitors the actor, and never links to it. When the actor dies, the
// spawner restarts it after a RestartDelay, from the last good configuration. When the spawner
// itself ends, it stops the actor.

#pragma once

#include "actors/channel_port.hpp"
#include "actors/environment.hpp"
#include "actors/protocol/ads_stream.hpp"
#include "actors/protocol/channel.hpp"
#include "actors/protocol/dns.hpp"
#include "actors/protocol/health_checker.hpp"
#include "actors/protocol/policy.hpp"
#include "actors/protocol/subchannel.hpp"
#include "actors/protocol/subchannel_map.hpp"
#include "actors/protocol/supervisor.hpp"
#include "actors/protocol/sweeper.hpp"
#include "actors/protocol/watcher.hpp"
#include "actors/protocol/xds_client.hpp"

namespace signalbox::actors {

class SubchannelTable;

/// One per runtime, the root of its actors: owns the xds_client and the channels.
protocol::SupervisorActor spawn_supervisor(caf::actor_system& system, EnvironmentPtr environment);

/// One per bootstrap: cache, watchers, does-not-exist timers. Owns an ads_stream per server in use.
protocol::XdsClientActor spawn_xds_client(caf::actor_system& system, EnvironmentPtr environment);

/// One per control-plane server in use: the ADS session.
protocol::AdsStreamActor spawn_ads_stream(caf::actor_system& system,
                                          EnvironmentPtr environment,
                                          ServerId server,
                                          protocol::ResourceSink sink);

/// One per target: applies configurations, publishes snapshots. Owns its watcher and policy tree.
protocol::ChannelActor spawn_channel(caf::actor_system& system,
                                     EnvironmentPtr environment,
                                     std::shared_ptr<const ChannelPort> port,
                                     protocol::XdsClientActor client);

/// One per target: turns resources into complete configurations. Owns its dns actors.
protocol::WatcherActor spawn_watcher(caf::actor_system& system,
                                     EnvironmentPtr environment,
                                     std::shared_ptr<const ChannelPort> port,
                                     protocol::XdsClientActor client,
                                     protocol::ConfigListener listener);

/// One per look-up of a LOGICAL_DNS name. The actor blocks, on a thread of its own, and ends once
/// it has sent the answer.
protocol::DnsActor spawn_dns(caf::actor_system& system,
                             EnvironmentPtr environment,
                             protocol::WatcherActor listener);

/// The start values of a node of the policy tree.
struct PolicyBirth {
  LbConfigPtr config;  ///< Its type also determines the policy.
  ChildName name;      ///< The child's name at its parent.
  PolicyPath path;
  std::uint64_t incarnation = 1;
  protocol::PolicyParent parent;
  protocol::SubchannelMapActor subchannels;  ///< Null above a leaf cluster's cds.
};

/// One per node of the policy tree: hosts any lb::Policy. Owns its children, and at
/// the root of a leaf cluster its subchannel map.
protocol::PolicyActor spawn_policy(caf::actor_system& system,
                                   EnvironmentPtr environment,
                                   PolicyBirth birth);

/// One per leaf cluster: the subchannels and their holders. Owns the subchannels, their health
/// checkers if the cluster has health checks, and the sweeper if calls may belong to sessions.
/// `table`: where operators see the subchannels; null: nowhere.
protocol::SubchannelMapActor spawn_subchannel_map(caf::actor_system& system,
                                                  EnvironmentPtr environment,
                                                  std::shared_ptr<SubchannelTable> table = nullptr);

/// One per subchannel map with session affinity: a timer that makes the map look for connections
/// that no session uses any more.
protocol::SweeperActor spawn_sweeper(caf::actor_system& system,
                                     EnvironmentPtr environment,
                                     protocol::SubchannelMapActor map);

/// One per address of a leaf cluster: connects, reports the end of the connection, and backs off.
protocol::SubchannelActor spawn_subchannel(caf::actor_system& system,
                                           EnvironmentPtr environment,
                                           Address address,
                                           SubchannelSettings settings,
                                           protocol::SubchannelMapActor map);

/// One per address of a leaf cluster with health checks: probes the address, and reports its
/// health. Precondition: the environment has a prober.
protocol::HealthCheckerActor spawn_health_checker(caf::actor_system& system,
                                                  EnvironmentPtr environment,
                                                  StartHealthChecks order,
                                                  protocol::SubchannelMapActor map);

}  // namespace signalbox::actors
