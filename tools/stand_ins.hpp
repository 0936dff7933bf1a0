// SPDX-License-Identifier: Apache-2.0
//
// Stand-ins for a program's own policies and filters, which `signalbox explain` runs.
//
//   --lb-policy NAME, --http-filter TYPE ─▶ [stand-in] ─▶ RuntimeOptions
//
// The command does not have the program's code, so it cannot know that code's decisions. The
// stand-in for a policy is round_robin. The stand-in for a filter lets every call pass. For each
// stand-in that a call reaches, the explanation says that the code's decision is not known.

#pragma once

#include <string>

#include "signalbox/filter.hpp"
#include "signalbox/policy.hpp"

namespace signalbox::tools {

CustomLbPolicy lb_policy_stand_in(const std::string& name);

CustomHttpFilter http_filter_stand_in(const std::string& type);

}  // namespace signalbox::tools
