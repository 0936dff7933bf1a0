// SPDX-License-Identifier: Apache-2.0
//
// A plan as an HTML page: one file, which loads nothing and has no script.
//
//   Plan, PlanView ─▶ [plan_html] ─▶ a file for any browser, light and dark
//
// The page begins with a bar for each answer (a mode, now or then), which has a part for each
// cluster. Below the bars is the whole tree. Names come from resources, and are escaped.

#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "messages/plan.hpp"
#include "tools/plan_report.hpp"

namespace signalbox::tools {

/// Escapes text for HTML content and double-quoted attributes.
std::string escape_html(absl::string_view text);

std::string plan_html(const Plan& plan, const PlanView& view);

}  // namespace signalbox::tools
