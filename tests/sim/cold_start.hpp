// SPDX-License-Identifier: Apache-2.0
//
// Cold start — many targets open at once, and the control plane is slow: 20 ms for each resource.
//
//   200 × OpenChannel ─▶ real actors ─▶ requests ─▶ [a server that answers each request in full]
//                            └▶ snapshots ─▶ one waiting call per target
//
// The server handles one request after the other. It answers every request that asks for resources,
// even with an old or missing nonce. No call may fail, and requests must be few, so that the
// server's work does not grow with the square of the targets.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "messages/ids.hpp"

namespace signalbox::sim {

struct ColdStart {
  std::uint64_t requests = 0;
  /// The time from the opening of the first channel until no call waited for its pick, in steps of
  /// 100 ms. If calls still wait after two minutes, the measurement ends.
  Duration until_last_call{};
  std::vector<std::string> broken;  ///< The broken invariants; empty: all held.
};

/// `apart`: the time between the openings of two channels.
ColdStart run_cold_start(std::uint64_t seed, std::size_t targets, Duration apart);

}  // namespace signalbox::sim
