// SPDX-License-Identifier: Apache-2.0
//
// Random configurations: listeners and routes of targets, and clusters. From one configuration to
// the next, listeners and clusters come and go.

#pragma once

#include <string>
#include <vector>

#include "tests/stress/plan.hpp"
#include "xds/resource_file.hpp"

namespace signalbox::stress {

/// The timeout that some routes set for their calls.
inline constexpr milliseconds kRouteTimeout{200};

/// "xds:///t0" and so on.
const std::vector<std::string>& targets();

/// `addresses`: "ip:port" of the backends, dead or alive.
std::vector<xds::ResourceBytes> draw_resources(Random& random,
                                               const std::vector<std::string>& addresses);

}  // namespace signalbox::stress
