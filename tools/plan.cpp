// SPDX-License-Identifier: Apache-2.0
//
// signalbox plan: the load of every cluster, priority, locality and endpoint, before it happens.
#include "signalbox/plan.hpp"

#include <fstream>
#include <iostream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include <nlohmann/json.hpp>

#include "tools/commands.hpp"
#include "tools/plan_arguments.hpp"
#include "tools/plan_html.hpp"
#include "tools/plan_report.hpp"

namespace signalbox::tools {
namespace {

int refuse(absl::string_view why) {
  say("plan", why);
  return kExitUsage;
}

absl::StatusOr<PlanRequest> request_of(const PlanOptions& options) {
  PlanRequest request = options.request;
  auto health = read_health(options.health, options.degraded);
  if (!health.ok()) return health.status();
  request.assumptions.health = *std::move(health);
  if (!options.zone.empty()) {
    auto caller = read_zone(options.zone);
    if (!caller.ok()) return caller.status();
    request.caller = *std::move(caller);
  }
  return request;
}

std::vector<AggregateMode> modes_of(const std::string& mode) {
  if (mode == "priority") return {AggregateMode::kPriority};
  if (mode == "tiered") return {AggregateMode::kTiered};
  return {AggregateMode::kPriority, AggregateMode::kTiered};
}

bool write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good();
}

}  // namespace

int run_plan(const PlanOptions& options) {
  const auto request = request_of(options);
  if (!request.ok()) return refuse(request.status().message());
  const auto plan = plan_file(options.resources, *request);
  if (!plan.ok()) return refuse(plan.status().message());
  const PlanView view{modes_of(options.mode), request->assumptions};
  if (options.json) {
    // Names of files and zones need not be UTF-8: dump() would throw.
    std::cout
        << plan_json(*plan, view).dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
        << "\n";
    return kExitOk;
  }
  if (!options.html.empty() && !write(options.html, plan_html(*plan, view)))
    return refuse(absl::StrCat("--html ", options.html, ": cannot be written"));
  std::cout << plan_table(*plan, view);
  return kExitOk;
}

}  // namespace signalbox::tools
