// SPDX-License-Identifier: Apache-2.0
//
// Explanation — where a call would go and why, step by step.
//
//   lb::Router::explain(call) ─▶ [Explanation] ─▶ signalbox explain, the admin socket, the program
//
// An Explanation has verdicts on cookies, and names of headers. It quotes no cookie and no value of
// a header, with the exceptions that xds/explanation_json.hpp lists.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "messages/counting/call_stats.hpp"
#include "messages/ids.hpp"
#include "messages/pick.hpp"

namespace signalbox {

/// How an explanation finds the next endpoint in turn, for round_robin and weighted_round_robin.
enum class Turns : std::uint8_t {
  kAsTheyAre,  ///< The turn that the next pick of the explaining thread would have.
  /// A turn drawn by the call's seed. For runtimes with kAssumed, which have no real calls.
  kBySeed,
};

struct Explanation {
  std::vector<PickStep> steps;  ///< In the order of the decisions.
  PickOutcome outcome = PickOutcome::kQueue;
  std::string cluster;  ///< Chosen by route or filter; empty: the call was not routed.
  /// The leaf that takes the call, when `cluster` is an aggregate and the outcome is kComplete.
  std::string leaf;
  std::string address;  ///< "ip:port", in kComplete.
  Duration delay{};     ///< How long filters delay the call before the pick.
  absl::Status status;  ///< The reason, in kFail and kDrop.
};

}  // namespace signalbox
