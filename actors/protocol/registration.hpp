// SPDX-License-Identifier: Apache-2.0
//
// Every message type of actors, registered once. Messages are never serialised: signalbox's actors
// live in one process. Large data is shared as std::shared_ptr<const T>.

#pragma once

#include "actors/protocol/caf_version.hpp"
#include "actors/protocol/runtime_messages.hpp"
#include "messages/load_events.hpp"
#include "messages/subchannel_events.hpp"
#include "messages/xds_events.hpp"

#define SIGNALBOX_MESSAGE(type) CAF_ALLOW_UNSAFE_MESSAGE_TYPE(signalbox::type)

// Messages to and from policies.
SIGNALBOX_MESSAGE(ConfigUpdated)
SIGNALBOX_MESSAGE(ChildStateChanged)
SIGNALBOX_MESSAGE(ChildApplied)
SIGNALBOX_MESSAGE(ChildAskedReresolution)
SIGNALBOX_MESSAGE(SubchannelStateChanged)
SIGNALBOX_MESSAGE(SubchannelGone)
SIGNALBOX_MESSAGE(TimerFired)
SIGNALBOX_MESSAGE(PickAsked)
SIGNALBOX_MESSAGE(IdleExitRequested)
SIGNALBOX_MESSAGE(RebuildDue)
// Messages to and from subchannels and subchannel maps.
SIGNALBOX_MESSAGE(SubchannelAcquired)
SIGNALBOX_MESSAGE(SubchannelReleased)
SIGNALBOX_MESSAGE(SubchannelConnectAsked)
SIGNALBOX_MESSAGE(HolderSettled)
SIGNALBOX_MESSAGE(MapGenerationStarted)
SIGNALBOX_MESSAGE(MapGenerationApplied)
SIGNALBOX_MESSAGE(EndpointHealthChanged)
SIGNALBOX_MESSAGE(EndpointsTracked)
SIGNALBOX_MESSAGE(SessionsKept)
SIGNALBOX_MESSAGE(SweepAsked)
SIGNALBOX_MESSAGE(HealthChecked)
SIGNALBOX_MESSAGE(ProbeEnded)
SIGNALBOX_MESSAGE(IdleTimeoutSet)
SIGNALBOX_MESSAGE(SweepDone)
SIGNALBOX_MESSAGE(ConnectRequested)
SIGNALBOX_MESSAGE(Connected)
SIGNALBOX_MESSAGE(ConnectFailed)
SIGNALBOX_MESSAGE(ConnectionClosed)
SIGNALBOX_MESSAGE(StreamsWanted)
SIGNALBOX_MESSAGE(MaxConnectionsChanged)
// Messages to and from the actors that handle xDS resources.
SIGNALBOX_MESSAGE(Subscribe)
SIGNALBOX_MESSAGE(AdsStreamOpened)
SIGNALBOX_MESSAGE(AdsBytesReceived)
SIGNALBOX_MESSAGE(AdsBytesWritten)
SIGNALBOX_MESSAGE(AdsStreamClosed)
SIGNALBOX_MESSAGE(ResourcesReceived)
SIGNALBOX_MESSAGE(SubscriptionSent)
SIGNALBOX_MESSAGE(ServerStatusChanged)
SIGNALBOX_MESSAGE(WatchesChanged)
SIGNALBOX_MESSAGE(WatcherGone)
SIGNALBOX_MESSAGE(ResourcesChanged)
SIGNALBOX_MESSAGE(NameResolved)
SIGNALBOX_MESSAGE(ClustersReferenced)
SIGNALBOX_MESSAGE(ReresolutionRequested)
SIGNALBOX_MESSAGE(ResolveName)
SIGNALBOX_MESSAGE(EmitConfig)
SIGNALBOX_MESSAGE(EmitError)
SIGNALBOX_MESSAGE(LoadReportsWanted)
// Messages that only actors use, and no core.
SIGNALBOX_MESSAGE(protocol::RestartDue)
SIGNALBOX_MESSAGE(protocol::SubchannelTimerAsked)
SIGNALBOX_MESSAGE(protocol::GracePassed)
SIGNALBOX_MESSAGE(protocol::XdsClientReplaced)
SIGNALBOX_MESSAGE(protocol::OpenChannel)
SIGNALBOX_MESSAGE(protocol::CloseChannel)
SIGNALBOX_MESSAGE(protocol::ChannelExitIdle)
SIGNALBOX_MESSAGE(protocol::DumpRequested)

#undef SIGNALBOX_MESSAGE
