// SPDX-License-Identifier: Apache-2.0
//
// CsdsService — envoy.service.status.v3.ClientStatusDiscoveryService of a runtime.
//
//   grpcdebug, Python stubs ─▶ [CsdsService] ─▶ Worker ─▶ Runtime::dump ─▶ xds/client_status
//
// StreamClientStatus answers each request of the stream. The next request is read only after the
// last answer was sent, so a client that does not read costs the memory of one answer. At most
// kMaxStreams are open; a further stream ends RESOURCE_EXHAUSTED.
//
// Source: gRFC A40.

#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"

#include "channel/services/callback_service.hpp"
#include "channel/services/stream_count.hpp"
#include "messages/admin_limit.hpp"
#include "messages/resource_dump.hpp"

namespace signalbox::channel {

class CsdsService final : public CallbackService {
 public:
  static constexpr int kMaxStreams = 100;
  using Dump = std::function<absl::StatusOr<ResourceDump>()>;

  /// `dump` is called on the thread of `worker`, which must outlive the service.
  CsdsService(Worker& worker, Dump dump, LimitHit hit);

 private:
  const Dump dump_;
  StreamCount streams_;
};

}  // namespace signalbox::channel
