// SPDX-License-Identifier: Apache-2.0
//
// Explanation — where a call would go and why, step by step.
//
//   lb::Router::explain(call) ─▶ [Explanation] ─▶ signalbox explain, the admin socket, the program
//
// An Explanation has verdicts on a cookie, never the cookie. It has names of headers, never values.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "messages/counting/call_stats.hpp"
#include "messages/ids.hpp"
#include "messages/pick.hpp"

namespace signalbox {

/// The source of a turn, for policies that give calls to endpoints in turn.
enum class Turns : std::uint8_t {
  kAsTheyAre,  ///< The turns of the explaining thread's picks.
  kBySeed,     ///< The call's seed, because no process runs the explained configuration.
};

struct Explanation {
  std::vector<PickStep> steps;  ///< In the order of the decisions.
  PickOutcome outcome = PickOutcome::kQueue;
  std::string cluster;  ///< The route's cluster; empty: the call was not routed.
  /// In kComplete: the leaf that takes the call, when `cluster` is an aggregate.
  std::string leaf;
  std::string address;  ///< "ip:port", in kComplete.
  Duration delay{};     ///< How long filters delay the call before the pick.
  absl::Status status;  ///< The reason, in kFail and kDrop.
};

}  // namespace signalbox
