// SPDX-License-Identifier: Apache-2.0
//
// extension_name — the rules for names of custom policies and filters.
//
//   RuntimeOptions::lb_policies, signalbox check --lb-policy ─▶ [what_is_wrong_with_lb_policy_name]
//   RuntimeOptions::http_filters, check --http-filter ─▶ [what_is_wrong_with_http_filter_type]
//
// Returns "must be …, found …", or an empty text for a valid name. The caller checks uniqueness.

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::channel {

std::string what_is_wrong_with_lb_policy_name(absl::string_view name);
std::string what_is_wrong_with_http_filter_type(absl::string_view type);

}  // namespace signalbox::channel
