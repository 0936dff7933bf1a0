// SPDX-License-Identifier: Apache-2.0
//
// SocketProber — probes by HTTP and TCP: one connection per probe, one thread for all probes.
//
//   Probe::begin ─▶ [one thread, epoll] ─▶ connect ─▶ send ─▶ receive until decided ─▶ close
//
// The status line of an HTTP response decides. An interim response (1xx, but not 101) is skipped,
// unless the check expects its status. The first prepare() starts the thread.

#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"

#include "actors/io/health_prober.hpp"

namespace signalbox::actors {

class SocketProber final : public HealthProber {
 public:
  /// A probe fails once it has received more bytes than this without a decision.
  static constexpr std::size_t kMostReceived = std::size_t{64} << 10U;

  /// Returns an error if the operating system has no file descriptor left for this process.
  static absl::StatusOr<std::unique_ptr<SocketProber>> make();

  /// Joins the thread, so it must not be called from an Answer.
  ~SocketProber() override;

  /// `check` must be an HTTP or TCP check; the address is "1.2.3.4:80" or "[::1]:80".
  std::unique_ptr<Probe> prepare(const Target& target, const HealthCheck& check) override;

 private:
  class Loop;

  explicit SocketProber(std::shared_ptr<Loop> loop) : loop_(std::move(loop)) {}

  const std::shared_ptr<Loop> loop_;
};

}  // namespace signalbox::actors
