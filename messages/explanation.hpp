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

/// Where policies that give calls to endpoints in turn get the turn from.
enum class Turns : std::uint8_t {
  kAsTheyAre,  ///< The turn is taken from the picks of the explaining thread.
  /// The turn is taken from the call's seed, because no process runs the configuration.
  kBySeed,
};

struct Explanation {
  std::vector<PickStep> steps;  ///< In the order of the decisions.
  PickOutcome outcome = PickOutcome::kQueue;
  std::string cluster;  ///< The route's cluster; empty: the call was not routed.
  /// The leaf that takes the call, when `cluster` is an aggregate and the outcome is kComplete.
  std::string leaf;
  std::string address;  ///< "ip:port", in kComplete.
  Duration delay{};     ///< How long filters delay the call before the pick.
  absl::Status status;  ///< The reason, in kFail and kDrop.
};

}  // namespace signalbox
