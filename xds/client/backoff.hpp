// SPDX-License-Identifier: Apache-2.0
//
// Backoff — the wait before the next attempt: exponential, with jitter.
//
//   attempt n waits  min(initial × multiplier^n, max)  ±  jitter
//
// The jitter comes from a seed, so that equal seeds give equal waits. The default numbers are those
// of gRPC's connection backoff (A57).

#pragma once

#include <chrono>
#include <cstdint>

#include "messages/ids.hpp"

namespace signalbox::xds {

struct BackoffOptions {
  Duration initial = std::chrono::seconds(1);
  double multiplier = 1.6;
  double jitter = 0.2;
  Duration max = std::chrono::seconds(120);
};

class Backoff {
 public:
  Backoff(const BackoffOptions& options, std::uint64_t seed);

  /// The wait before the next attempt. Waits grow up to the maximum, apart from jitter.
  Duration next();

  /// An attempt succeeded: the next wait is the initial one again.
  void reset();

 private:
  BackoffOptions options_;
  std::uint64_t chance_;
  Duration base_;
};

}  // namespace signalbox::xds
