// SPDX-License-Identifier: Apache-2.0
//
// SocketProber — probes by HTTP and TCP: a connection for each, on one thread for all of them.
//
//   Probe::begin ─▶ [one thread, epoll] ─▶ connect ─▶ send ─▶ receive until answered ─▶ close
//
// Of an HTTP answer the status line is all that is read. The thread is there from the first probe
// on.

#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"

#include "actors/io/health_prober.hpp"

namespace signalbox::actors {

class SocketProber final : public HealthProber {
 public:
  /// Of an answer more is not read.
  static constexpr std::size_t kMostReceived = std::size_t{64} << 10U;

  /// An error where the system has no open files left.
  static absl::StatusOr<std::unique_ptr<SocketProber>> make();

  /// Joins its thread; so it is not called from an Answer.
  ~SocketProber() override;

  /// `check` is of HTTP or TCP; the address is "1.2.3.4:80" or "[::1]:80".
  std::unique_ptr<Probe> prepare(const Target& target, const HealthCheck& check) override;

 private:
  class Loop;

  explicit SocketProber(std::shared_ptr<Loop> loop) : loop_(std::move(loop)) {}

  const std::shared_ptr<Loop> loop_;
};

}  // namespace signalbox::actors
