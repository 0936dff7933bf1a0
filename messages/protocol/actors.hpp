// SPDX-License-Identifier: Apache-2.0
//
// The interface of every kind of actor: which messages it understands. All are one-way.
//
//   supervisor ─┬▶ xds_client ─▶ ads_stream
//               └▶ channel ─┬▶ xds_watcher ─▶ dns
//                           └▶ policy (cluster_manager) ─▶ policy … ─▶ subchannel_map
//
//   subchannel_map ─▶ subchannel, health_checker, sweeper
//
// The arrows are ownership: who spawns, monitors and restarts whom. actors/spawn.hpp makes them.

#pragma once

#include "messages/protocol/registration.hpp"

namespace signalbox::protocol {

/// Any node of the policy tree.
using PolicyActor = ActorOf<ConfigUpdated,
                            ChildStateChanged,
                            ChildApplied,
                            ChildAskedReresolution,
                            SubchannelStateChanged,
                            SubchannelGone,
                            TimerFired,
                            PickAsked,
                            IdleExitRequested,
                            RebuildDue,
                            RestartDue>;

/// What a policy sees of the node above it.
using PolicyParent = ActorOf<ChildStateChanged, ChildApplied, ChildAskedReresolution>;

/// What a subchannel map sees of a policy that holds subchannels.
using SubchannelObserver = ActorOf<SubchannelStateChanged, SubchannelGone>;

using SubchannelMapActor = ActorOf<SubchannelAcquired,
                                   SubchannelReleased,
                                   SubchannelConnectAsked,
                                   HolderSettled,
                                   MapGenerationStarted,
                                   MapGenerationApplied,
                                   EndpointHealthChanged,
                                   EndpointsTracked,
                                   SessionsKept,
                                   SweepAsked,
                                   HealthChecked,
                                   SubchannelStateChanged,
                                   SubchannelTimerAsked,
                                   RestartDue>;

/// One beside each subchannel whose cluster has health checks.
using HealthCheckerActor = ActorOf<ProbeEnded, TimerFired>;

/// One beside each subchannel map that keeps sessions.
using SweeperActor = ActorOf<IdleTimeoutSet, SweepDone, TimerFired>;

using SubchannelActor =
    ActorOf<ConnectRequested, Connected, ConnectFailed, ConnectionClosed, TimerFired>;

using ChannelActor = ActorOf<EmitConfig,
                             EmitError,
                             ChildStateChanged,
                             ChildApplied,
                             ChildAskedReresolution,
                             GracePassed,
                             TimerFired,
                             IdleExitRequested,
                             RebuildDue,
                             RestartDue,
                             XdsClientReplaced>;

/// What an xds_watcher sees of the channel.
using ConfigListener = ActorOf<EmitConfig, EmitError>;

using WatcherActor = ActorOf<ResourcesChanged,
                             NameResolved,
                             ClustersReferenced,
                             ReresolutionRequested,
                             TimerFired,
                             XdsClientReplaced>;

/// What the xds_client sees of a watcher.
using ResourceObserver = ActorOf<ResourcesChanged>;

using DnsActor = ActorOf<ResolveName>;

using XdsClientActor = ActorOf<WatchesChanged,
                               WatcherGone,
                               ResourcesReceived,
                               SubscriptionSent,
                               ServerStatusChanged,
                               TimerFired,
                               RestartDue,
                               DumpRequested>;

/// What an ads_stream sees of the xds_client.
using ResourceSink = ActorOf<ResourcesReceived, SubscriptionSent, ServerStatusChanged>;

using AdsStreamActor = ActorOf<Subscribe,
                               AdsStreamOpened,
                               AdsBytesReceived,
                               AdsBytesWritten,
                               AdsStreamClosed,
                               TimerFired>;

using SupervisorActor =
    ActorOf<OpenChannel, CloseChannel, ChannelExitIdle, RestartDue, DumpRequested>;

}  // namespace signalbox::protocol
