// SPDX-License-Identifier: Apache-2.0
//
// Back-off — the numbers and the arithmetic of waits that grow from attempt to attempt.
//
//   first ─▶ longer_wait ─▶ longer_wait ─▶ … ─▶ longest      each one ─▶ jittered ─▶ a timer
//
// The callers (xds/client/backoff, lb/subchannel, lb/route/retry and actors/supervision) differ in
// what they count, and in their source of random numbers.
//
// Source: gRPC connection-backoff.md.

#pragma once

#include <chrono>
#include <cstdint>

#include "messages/ids.hpp"

namespace signalbox {

/// The waits before attempts at a connection, a stream or a look-up. The default numbers are those
/// of connection-backoff.md.
struct BackoffOptions {
  Duration initial = std::chrono::seconds(1);
  double multiplier = 1.6;
  double jitter = 0.2;  ///< The fraction by which a wait is changed at random, to both sides.
  Duration max = std::chrono::seconds(120);  ///< The longest wait without jitter.
};

/// Returns the wait that follows `last`: `factor` times as long, but no longer than `longest`.
template <typename Rep, typename Period>
constexpr std::chrono::duration<Rep, Period> longer_wait(
    std::chrono::duration<Rep, Period> last,
    double factor,
    std::chrono::duration<Rep, Period> longest) {
  const double grown = static_cast<double>(last.count()) * factor;
  if (grown >= static_cast<double>(longest.count())) return longest;
  return std::chrono::duration<Rep, Period>(static_cast<Rep>(grown));
}

/// A random number in [-1, 1) from 64 random bits: from the upper 53, which a double represents
/// exactly.
constexpr double chance_of(std::uint64_t bits) {
  return static_cast<double>(bits >> 11U) * 0x1.0p-52 - 1.0;
}

/// Returns `wait`, made longer or shorter by up to the fraction `jitter` of `wait`. `chance` is a
/// random number from -1 to 1.
template <typename Rep, typename Period>
constexpr std::chrono::duration<Rep, Period> jittered(std::chrono::duration<Rep, Period> wait,
                                                      double jitter,
                                                      double chance) {
  const double spread = static_cast<double>(wait.count()) * (1.0 + jitter * chance);
  return std::chrono::duration<Rep, Period>(static_cast<Rep>(spread));
}

}  // namespace signalbox
