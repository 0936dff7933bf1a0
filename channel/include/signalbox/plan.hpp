// SPDX-License-Identifier: Apache-2.0
//
// plan — shows how the calls to a cluster would spread: the share of each cluster, priority,
// locality and endpoint if some endpoints were not healthy, in both modes that an aggregate cluster
// can run in.
//
//   signalbox::PlanRequest request;
//   request.assumptions.down = {"zone-a"};               // what if this zone died?
//   auto plan = signalbox::plan_file("resources.yaml", request);
//   if (!plan.ok()) return plan.status();                // names the fault, and what exists
//   use(plan->leaves[0].shares.priority.then);           // in millionths of all calls
//
//   a file or a text of resources ─▶ plan_file, plan_text ─┐
//   a running Runtime ─────────────▶ Runtime::plan ────────┴▶ Plan (messages/plan.hpp)
//
// Shares follow from the configuration alone: from EDS and from the assumptions. Ejected endpoints
// and lost connections of a running process do not count, nor do sessions, drops and limits. Names
// of LOGICAL_DNS clusters are not resolved: each name is one endpoint.
//
// The functions have no state: any thread may call them, and each call reads its file anew. Nothing
// is connected to, nothing is changed. INVALID_ARGUMENT: a resource is wrong, or the request names
// a missing thing, contradicts itself or is out of range. NOT_FOUND or another error of the
// operating system: the file cannot be read.
//
// Source: gRFC A56, A75; Envoy's "Aggregate Cluster" and "Priority levels". `signalbox plan` shows
// the plan as a table, as JSON and as a page.

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "messages/plan.hpp"

namespace signalbox {

struct PlanRequest {
  /// The cluster to plan for. Set at most one of `cluster` and `target`; with neither, the plan is
  /// for the one cluster that no aggregate leads to.
  std::string cluster;
  std::string target;  ///< "xds:///orders", or the listener's name: the cluster of its routes.
  PlanAssumptions assumptions;
  /// For an aggregate without a mode in its metadata. Runtime::plan uses the runtime's own mode.
  AggregateMode aggregate_mode = AggregateMode::kPriority;
  /// Custom LB policies that clusters may name (RuntimeOptions::lb_policies). Runtime::plan knows
  /// those of its runtime.
  std::vector<std::string> lb_policies;
  /// Certificate providers that clusters may name. Runtime::plan knows those of its runtime.
  std::vector<std::string> certificate_providers;
};

/// Plans from a file of xDS resources, as a bootstrap's "signalbox.resources" names it. YAML, or
/// JSON when `path` ends in ".json".
absl::StatusOr<Plan> plan_file(const std::string& path, const PlanRequest& request = {});

/// As plan_file(), from a text. `file_name` is for the errors; its ending says the format.
absl::StatusOr<Plan> plan_text(absl::string_view text,
                               const std::string& file_name,
                               const PlanRequest& request = {});

}  // namespace signalbox
