// SPDX-License-Identifier: Apache-2.0
//
// Messages that only shells exchange: supervision, replacement, opening and closing of channels.

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

/// The back-off before restarting `what` is over.
struct RestartDue {
  std::string what;
  /// Where one `what` may be awaited more than once: which of the orders this is.
  std::uint64_t number = 0;
};

/// A subchannel's map is to tell the subchannel, after `delay`, that the timer fired. One timer for
/// each subchannel: the newest counts.
struct SubchannelTimerAsked {
  Address address;
  TimerId timer;
  Duration delay{};
};

/// No reader can see the snapshot with this sequence, or an earlier one, any more.
struct GracePassed {
  std::uint64_t sequence = 0;
};

/// The xds_client died and this one took its place (a protocol::XdsClientActor).
struct XdsClientReplaced {
  caf::actor client;
};

/// Opens a channel; what it is made of stands in actors/channel_port.hpp.
struct OpenChannel {
  std::shared_ptr<const actors::ChannelPort> port;
};

struct CloseChannel {
  std::shared_ptr<const actors::ChannelPort> port;
};

/// Somebody wants the channel out of IDLE.
struct ChannelExitIdle {
  std::shared_ptr<const actors::ChannelPort> port;
};

/// Somebody outside wants to know what the xds_client knows. Whoever holds this message last has
/// answered, or the asker hears that nobody did: actors/dump_reply.hpp.
struct DumpRequested {
  std::shared_ptr<actors::DumpReply> reply;
};

}  // namespace signalbox::protocol
