// SPDX-License-Identifier: Apache-2.0
//
// Backoff — the wait before the next attempt: exponential, with jitter.
//
//   attempt n waits  min(initial × multiplier^n, max)  ±  jitter
//
// The jitter comes from a seed, so that equal seeds give equal waits. A57 takes the numbers of
// gRPC's connection backoff. They are the defaults of BackoffOptions.

#pragma once

#include <cstdint>

#include "messages/back_off.hpp"
#include "messages/ids.hpp"

namespace signalbox::xds {

class Backoff {
 public:
  Backoff(const BackoffOptions& options, std::uint64_t seed);

  /// The wait before the next attempt. Waits grow up to the maximum, apart from jitter.
  Duration next();

  /// Must be called when an attempt succeeded. The next wait is then the initial one again.
  void reset();

 private:
  BackoffOptions options_;
  std::uint64_t chance_;
  Duration base_;
};

}  // namespace signalbox::xds
