// SPDX-License-Identifier: Apache-2.0
//
// Stand-ins — what `signalbox explain` runs in the place of a program's own policies and filters.
//
//   --lb-policy NAME, --http-filter TYPE ─▶ [stand-in] ─▶ RuntimeOptions
//
// Only the program knows what its own code decides. A policy's stand-in is round_robin, a filter's
// lets every call pass. Each explanation says so in a step of its own.

#pragma once

#include <string>

#include "signalbox/filter.hpp"
#include "signalbox/policy.hpp"

namespace signalbox::tools {

CustomLbPolicy lb_policy_stand_in(const std::string& name);

CustomHttpFilter http_filter_stand_in(const std::string& type);

}  // namespace signalbox::tools
