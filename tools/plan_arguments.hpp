// SPDX-License-Identifier: Apache-2.0
//
// plan_arguments — reads the health that the user of `signalbox plan` assumes, and the caller's
// zone.
//
//   --health orders/0=50   --degraded orders/0=20 ─▶ [read_health] ─▶ AssumedHealth
//   --zone north/zone-a ───────────────────────────▶ [read_zone] ───▶ LocalityName
//
// When only --degraded names a priority, its other endpoints are healthy.

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "messages/endpoints.hpp"
#include "messages/plan.hpp"

namespace signalbox::tools {

/// Each text is CLUSTER/PRIORITY=PERCENT. INVALID_ARGUMENT names the option, and the text that has
/// another form or more than 100 percent, or the priority that the option names twice.
absl::StatusOr<std::vector<AssumedHealth>> read_health(const std::vector<std::string>& healthy,
                                                       const std::vector<std::string>& degraded);

/// "zone", "region/zone" or "region/zone/sub_zone". INVALID_ARGUMENT: another form, or no zone.
absl::StatusOr<LocalityName> read_zone(const std::string& text);

}  // namespace signalbox::tools
