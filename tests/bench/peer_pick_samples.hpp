// SPDX-License-Identifier: Apache-2.0
//
// The interface between the benchmark's client and peer_pick_shim, a preloaded library that times
// gRPC's picks in the client's process.
//
//   client ─▶ dlsym(kPeerPicksReset) … load … dlsym(kPeerPicksCopy) ─▶ ticks of route + pick
//
// The functions must be called while no gRPC call is under way.

#pragma once

#include <cstddef>
#include <cstdint>

namespace signalbox::bench {

inline constexpr const char* kPeerPicksReset = "signalbox_peer_picks_reset";
inline constexpr const char* kPeerPicksCopy = "signalbox_peer_picks_copy";

/// Drops all samples so far.
using PeerPicksReset = void();
/// Copies at most `room` samples into `samples`, and returns their number.
using PeerPicksCopy = std::size_t(std::uint32_t* samples, std::size_t room);

/// A sample of gRPC is the sum of two timings (route and pick), so its overhead is twice that of
/// one timing.
inline constexpr double kPeerTimings = 2;

}  // namespace signalbox::bench
