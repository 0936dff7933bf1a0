// SPDX-License-Identifier: Apache-2.0
//
// A plan as an HTML page: one file, which loads nothing and has no script.
//
//   Plan, PlanView ─▶ [plan_html] ─▶ a file for any browser, light and dark
//
// The page begins with a bar for each answer (a mode, now or then). A bar has a part for each leaf
// cluster with calls, and one for failing calls. If all endpoints of a locality are assumed to be
// down, every leaf cluster has a part for each locality instead.
// Below the bars are the summary and the tree; a long locality shows only its first endpoints.
// Names come from resources, and are escaped.

#pragma once

#include <string>

#include "messages/plan.hpp"
#include "tools/plan_report.hpp"

namespace signalbox::tools {

std::string plan_html(const Plan& plan, const PlanView& view);

}  // namespace signalbox::tools
