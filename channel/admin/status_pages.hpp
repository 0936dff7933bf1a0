// SPDX-License-Identifier: Apache-2.0
//
// status_pages — a RuntimeStatus as HTML: what is wrong, and every cluster down to its endpoints.
//
//   RuntimeStatus ─▶ [home_page] ─────▶ GET /
//                └─▶ [clusters_page] ─▶ GET /clusters
//
// Pure. /clusters shows at most kMostEndpoints addresses of endpoints, and says how many it leaves
// out; JSON has all of them.

#pragma once

#include <cstddef>
#include <string>

#include "signalbox/runtime_status.hpp"

namespace signalbox::channel {

inline constexpr std::size_t kMostEndpoints = 500;

std::string home_page(const RuntimeStatus& status);

std::string clusters_page(const RuntimeStatus& status);

/// A change in one line of HTML: "priority 0 (near) → 1 (far), failed".
std::string change_in_words(const PriorityChange& change);

/// "all/near": aggregate and cluster; without an aggregate, the cluster alone.
std::string place_of(const ClusterName& cluster, const ClusterName& aggregate);

}  // namespace signalbox::channel
