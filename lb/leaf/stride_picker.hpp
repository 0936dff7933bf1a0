// SPDX-License-Identifier: Apache-2.0
//
// StridePicker — the picker of endpoints that take turns by weight, for weighted_round_robin, and
// for round_robin in slow start.
//
//   ReadyEndpoints, StrideScheduler, Warmth ─▶ [make_stride_picker] ─▶ picker
//
// Each stripe of threads has a turn of its own on its own cache line, as in round_robin. A pick
// writes only that turn.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "lb/leaf/endpoint_set.hpp"
#include "lb/leaf/stride_scheduler.hpp"
#include "lb/leaf/warmth.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

struct StrideTurns {
  absl::string_view policy;      ///< The policy's name; a literal.
  absl::string_view weights_of;  ///< The origin of the weights, for explanations; a literal.
  ReadyEndpoints ready;          ///< Not empty.
  /// One for each endpoint of `ready`. Empty: the picker adds no tracker to its results.
  std::vector<CallTrackerPtr> trackers;
  StrideScheduler scheduler;
  Warmth warmth;
};

/// `seed`: the first turns are drawn from it.
PickerPtr make_stride_picker(StrideTurns turns, std::uint64_t seed);

}  // namespace signalbox::lb
