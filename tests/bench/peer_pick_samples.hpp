// SPDX-License-Identifier: Apache-2.0
//
// How the client asks the shim that is preloaded into the peer's process for what it has timed.
//
//   client ─▶ dlsym(kPeerPicksReset) … load … dlsym(kPeerPicksCopy) ─▶ ticks of route + pick
//
// To be called while no call is under way.

#pragma once

#include <cstddef>
#include <cstdint>

namespace signalbox::bench {

inline constexpr const char* kPeerPicksReset = "signalbox_peer_picks_reset";
inline constexpr const char* kPeerPicksCopy = "signalbox_peer_picks_copy";

/// Forgets what was timed so far.
using PeerPicksReset = void();
/// The samples, at most `room` of them; how many.
using PeerPicksCopy = std::size_t(std::uint32_t* samples, std::size_t room);

/// A sample of the peer is a sum of two timings: its overhead is twice that of one.
inline constexpr double kPeerTimings = 2;

}  // namespace signalbox::bench
