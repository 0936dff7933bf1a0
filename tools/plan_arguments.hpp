// SPDX-License-Identifier: Apache-2.0
//
// The health that `signalbox plan` is told to assume.
//
//   --health orders/0=50   --degraded orders/0=20 ─▶ [read_health] ─▶ AssumedHealth
//
// Who is told of degraded endpoints alone takes the others for healthy.

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "messages/plan.hpp"

namespace signalbox::tools {

/// Each text is CLUSTER/PRIORITY=PERCENT. INVALID_ARGUMENT names the option and the text: what is
/// no such text or no percentage, and a priority that one option has twice.
absl::StatusOr<std::vector<AssumedHealth>> read_health(const std::vector<std::string>& healthy,
                                                       const std::vector<std::string>& degraded);

}  // namespace signalbox::tools
