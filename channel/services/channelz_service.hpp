// SPDX-License-Identifier: Apache-2.0
//
// ChannelzService — grpc.channelz.v1.Channelz of a program with a runtime.
//
//   grpcdebug, Python stubs ─▶ [ChannelzService] ─┬─ ids below kFirstId ─▶ gRPC's own registry
//                                                 └─ other ids ─▶ channelz_view ◀─ Runtime::status
//
// GetTopChannels lists gRPC's own channels first, and then the runtime's targets. GetServers lists
// gRPC's own servers only. A page of a list has at most kMaxResults entries.

#pragma once

#include <cstdint>
#include <functional>

#include "channel/services/callback_service.hpp"
#include "signalbox/runtime_status.hpp"

namespace signalbox::channel {

class ChannelzService final : public CallbackService {
 public:
  static constexpr std::int64_t kMaxResults = 100;

  /// `status` is called on the thread of `worker`, which must outlive the service.
  ChannelzService(Worker& worker, std::function<RuntimeStatus()> status);

 private:
  const std::function<RuntimeStatus()> status_;
};

}  // namespace signalbox::channel
