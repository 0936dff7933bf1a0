// SPDX-License-Identifier: Apache-2.0
//
// FaultProxy — a TCP proxy in front of one endpoint, which can harm its connections without root.
//
//   client ─▶ 127.0.0.1:PORT ─▶ [one thread: poll] ─▶ endpoint
//                                    ▲ set(Harm)
//
// A connection has a queue for each direction. Pacer says when a chunk leaves its queue.

#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

namespace signalbox::tools {

/// The faults that the proxy applies to all of its connections.
struct Harm {
  std::chrono::nanoseconds delay{};  ///< The delay of every byte, in each direction.
  /// The limit for each direction of each connection; 0: no limit.
  double bytes_per_second = 0;
  bool is_blackhole = false;  ///< Nothing passes, and nothing is closed.
  bool is_reset = false;      ///< Open connections are reset, and new ones at once.
};

/// Computes when the bytes of one direction of a connection may leave the proxy.
class Pacer {
 public:
  using Clock = std::chrono::steady_clock;

  Clock::time_point leaves(const Harm& harm, Clock::time_point arrived, std::size_t bytes);

 private:
  Clock::time_point free_;  // The time at which all earlier bytes have left.
};

class FaultProxy {
 public:
  /// `endpoint`: "ip:port".
  static absl::StatusOr<std::unique_ptr<FaultProxy>> start(const std::string& endpoint);
  /// Resets the open connections.
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  /// "127.0.0.1:PORT"
  const std::string& address() const { return address_; }

  void set(const Harm& harm);

 private:
  class Loop;

  FaultProxy() = default;

  std::string address_;
  std::mutex mutex_;  // Guards harm_ and is_ending_.
  Harm harm_;
  bool is_ending_ = false;
  int bell_ = -1;  // An eventfd that wakes the loop.
  std::thread thread_;
};

}  // namespace signalbox::tools
