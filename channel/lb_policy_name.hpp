// SPDX-License-Identifier: Apache-2.0
//
// lb_policy_name — what a policy of the user's may be called.
//
//   RuntimeOptions::lb_policies, signalbox check --lb-policy ─▶ [what_is_wrong_with_lb_policy_name]

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::channel {

/// "must be …, found …"; empty: nothing is wrong. Whether it is unique, only the caller knows.
std::string what_is_wrong_with_lb_policy_name(absl::string_view name);

}  // namespace signalbox::channel
