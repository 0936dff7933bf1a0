// SPDX-License-Identifier: Apache-2.0
//
// Cold start — many targets open at once, and the control plane is slow: 20 ms for each resource.
//
//   200 × OpenChannel ─▶ real actors ─▶ requests ─▶ [a server that answers each one in full]
//                            └▶ snapshots ─▶ a call of each target, which waits
//
// The server works on one request after the other, and answers whatever asks for anything, be its
// nonce old or missing. What must hold: no call fails, and requests are few, so that the server's
// work does not grow with the square of the targets.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "messages/ids.hpp"

namespace signalbox::sim {

struct ColdStart {
  std::uint64_t requests = 0;
  Duration until_last_call{};       ///< From the first channel to the last call's pick.
  std::vector<std::string> broken;  ///< Sentences; empty: all held.
};

/// `apart`: how long after a channel the next one is opened.
ColdStart run_cold_start(std::uint64_t seed, std::size_t targets, Duration apart);

}  // namespace signalbox::sim
