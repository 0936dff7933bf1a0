// SPDX-License-Identifier: Apache-2.0
//
// HealthService — grpc.health.v1.Health of a runtime, from Runtime::ready(), like the admin
// server's page /ready.
//
//   load balancer, grpc_health_probe ─▶ [HealthService] ─▶ Runtime::ready, readiness
//
//   service ""              SERVING when every target can send calls
//   service "xds:///orders" SERVING when this target can send calls
//   other services          Check: NOT_FOUND; Watch: SERVICE_UNKNOWN, until the target is in use
//
// List returns the status of "" and of every target in use. Beyond kMaxServices it ends
// RESOURCE_EXHAUSTED.
//
// Every kPeriod, a Watch sends the status if it differs from the status that was sent last. While a
// client does not read, one message waits for it, and later changes are not queued. The next
// message has the state at the time when it is sent. At most kMaxWatches are open; a further Watch
// ends RESOURCE_EXHAUSTED.
//
// Source: gRFC A90 (List).

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "channel/services/callback_service.hpp"
#include "channel/services/stream_count.hpp"
#include "messages/admin_limit.hpp"

namespace signalbox::channel {

class HealthService final : public CallbackService {
 public:
  static constexpr int kMaxWatches = 1000;
  static constexpr std::size_t kMaxServices = 10'000;
  static constexpr std::size_t kMaxName = 4096;
  static constexpr auto kPeriod = std::chrono::milliseconds(100);
  /// Runtime::ready() and the readiness of each target in use. Called on threads of gRPC and of the
  /// service; they must not block.
  using Ready = std::function<std::optional<bool>(const std::string& target)>;
  using Readiness = std::function<std::map<std::string, bool>()>;

  HealthService(Ready ready, Readiness readiness, LimitHit hit);
  ~HealthService() override;

 private:
  class Watch;

  void follow();

  const Ready ready_;
  const Readiness readiness_;
  const LimitHit hit_;
  StreamCount watches_{kMaxWatches, [this] { hit_(AdminLimit::kHealthWatches); }};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::weak_ptr<Watch>> open_;
  bool ending_ = false;
  std::thread thread_;  // Calls ready_ every kPeriod for each open watch; sleeps without watches.
};

}  // namespace signalbox::channel
