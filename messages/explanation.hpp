// SPDX-License-Identifier: Apache-2.0
//
// Explanation — why a call would go where it would, told step by step.
//
//   lb::Router::explain(call) ─▶ [Explanation] ─▶ signalbox explain, the admin socket, the program
//
// What it holds of a cookie are verdicts, never the cookie; of headers it holds names alone.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "messages/counting/call_stats.hpp"
#include "messages/ids.hpp"
#include "messages/pick.hpp"

namespace signalbox {

/// What decides a turn, where endpoints take calls by turns.
enum class Turns : std::uint8_t {
  kAsTheyAre,  ///< The turns of the explaining thread's picks.
  kBySeed,     ///< The call's seed: the explanation is of a configuration, and no process runs it.
};

struct Explanation {
  std::vector<PickStep> steps;  ///< In the order of the decisions.
  PickOutcome outcome = PickOutcome::kQueue;
  std::string cluster;  ///< That of the route; empty: the call was not routed.
  std::string leaf;     ///< In kComplete: what takes the call, where `cluster` is an aggregate.
  std::string address;  ///< "ip:port", in kComplete.
  Duration delay{};     ///< What filters let the call wait for, before it is picked as told.
  absl::Status status;  ///< Why, in kFail and kDrop.
};

}  // namespace signalbox
