// SPDX-License-Identifier: Apache-2.0
//
// channelz_view — a RuntimeStatus in the messages of channelz.
//
//   Runtime::status ─▶ RuntimeStatus ─▶ [channelz_view] ─▶ ChannelzService
//
//   top channel   a target: "xds:///orders"; its trace has the last changes of priority
//     └ subchannel  an address of a leaf: "CLUSTER/ADDRESS" or "AGGREGATE/CLUSTER/ADDRESS"
//         └ socket    the connection, while there is one
//
// An id is a hash of the names, so a target, subchannel or socket has the same id in every status.
// All ids are kFirstId or more. gRPC numbers its own channels from 1 and never reaches kFirstId.
//
// calls_started counts only calls that have ended, because a RuntimeStatus has no number of started
// calls. A socket has an option with the number of calls in flight, from all targets that share the
// connection.
//
// Pure; any thread.
//
// Source: grpc/channelz/v1/channelz.proto.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "channel/services/proto/channelz.pb.h"
#include "signalbox/runtime_status.hpp"

namespace signalbox::channel {

inline constexpr std::int64_t kFirstId = std::int64_t{1} << 62;
/// The most subchannels that a top channel lists, so that the message stays below 1 MiB or so.
inline constexpr std::size_t kMaxSubchannelRefs = 10'000;

/// Adds the targets with the id `start` or a higher one, in the order of their ids, until the
/// response has `max` channels. Sets the response's `end`: whether no further target follows.
void add_top_channels(const RuntimeStatus& status,
                      std::int64_t start,
                      std::size_t max,
                      channelz::GetTopChannelsResponse& response);

/// Each function returns nullopt if the status has nothing with this id.
std::optional<channelz::Channel> find_channel(const RuntimeStatus& status, std::int64_t id);
std::optional<channelz::Subchannel> find_subchannel(const RuntimeStatus& status, std::int64_t id);
std::optional<channelz::Socket> find_socket(const RuntimeStatus& status, std::int64_t id);

/// Sets an absent local address to 0.0.0.0:0 or [::]:0, and the absent timestamps and flow-control
/// windows in `data` to empty messages: grpcdebug reads these fields, and crashes when one is
/// absent.
void fill_gaps(channelz::Socket& socket);

}  // namespace signalbox::channel
