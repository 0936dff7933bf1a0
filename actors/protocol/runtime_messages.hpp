// SPDX-License-Identifier: Apache-2.0
//
// Messages that only actors use, and no core: supervision, replacement, timers, dumps, opening and
// closing of channels.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <caf/actor.hpp>

#include "messages/ids.hpp"

namespace signalbox::actors {
struct ChannelPort;
class DumpReply;
}  // namespace signalbox::actors

namespace signalbox::protocol {

/// Tells a parent that the back-off of a dead child is over: the child may be restarted. The
/// xds_client waits in the same way after it has stopped an ads_stream. `what` is the parent's name
/// for the child. A subchannel map also sends this message to itself when a timer
/// of a subchannel is due.
struct RestartDue {
  std::string what;
  /// Distinguishes an old RestartDue from a newer one with the same `what`.
  std::uint64_t number = 0;
};

/// Asks a subchannel's map to send the subchannel TimerFired after `delay`. A subchannel has one
/// timer: a new request replaces the earlier one.
struct SubchannelTimerAsked {
  Address address;
  TimerId timer;
  Duration delay{};
};

/// No reader can see the snapshot with this sequence, or an earlier snapshot, any more.
struct GracePassed {
  std::uint64_t sequence = 0;
};

/// The xds_client died, and `client` replaces it (a protocol::XdsClientActor).
struct XdsClientReplaced {
  caf::actor client;
};

/// Opens a channel; see actors/channel_port.hpp.
struct OpenChannel {
  std::shared_ptr<const actors::ChannelPort> port;
};

struct CloseChannel {
  std::shared_ptr<const actors::ChannelPort> port;
};

/// Asks the port's channel to leave IDLE, that is, to connect.
struct ChannelExitIdle {
  std::shared_ptr<const actors::ChannelPort> port;
};

/// Asks the xds_client for a dump. If the last copy is dropped without an answer, the answer is
/// UNAVAILABLE: see actors/dump_reply.hpp.
struct DumpRequested {
  std::shared_ptr<actors::DumpReply> reply;
};

}  // namespace signalbox::protocol
