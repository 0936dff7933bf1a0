// SPDX-License-Identifier: Apache-2.0
//
// apportion — divides a share of calls by weights, in integers that add up.
//
//   share, weights ─▶ [apportion] ─▶ parts that sum to the share
//
// What rounding has left over goes to the parts that lost most by it (of equal ones, the first).

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "messages/plan.hpp"

namespace signalbox::lb {

/// Divides `share` in proportion to `weights`. All parts are 0 when all weights are 0.
std::vector<CallShare> apportion(CallShare share, std::span<const std::uint64_t> weights);

}  // namespace signalbox::lb
