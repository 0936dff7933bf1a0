// SPDX-License-Identifier: Apache-2.0
//
// plan — shows how the calls to a cluster spread, and how they would spread if some endpoints
// failed: the share of each cluster, priority, locality and endpoint. An aggregate cluster can run
// in two modes, priority and tiered (AggregateMode); a plan has the shares of both.
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
// Shares follow from the resources and the request (its PlanAssumptions: assumed healths, dead
// endpoints; its mode). A plan leaves out what only a running process knows: ejected endpoints,
// lost connections and sessions. It also leaves out drops and limits. Names of LOGICAL_DNS clusters
// are not resolved: each name is one endpoint.
//
// The functions have no state: any thread may call them. Each call of plan_file() reads the file
// again. The functions connect to nothing and change nothing. INVALID_ARGUMENT: a resource is
// wrong, or the request names a missing thing, contradicts itself or is out of range.
// RESOURCE_EXHAUSTED: the file is beyond a limit. NOT_FOUND or PERMISSION_DENIED: the file cannot
// be read.
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
  /// The cluster to plan for. Set at most one of `cluster` and `target`. With neither, the plan is
  /// for the only cluster that no aggregate cluster lists.
  std::string cluster;
  /// "xds:///orders", or the name of a listener. The plan is for the one cluster of its routes. The
  /// bootstrap's templates and authorities give the listener of an "xds:" target, as for calls.
  std::string target;
  PlanAssumptions assumptions;
  /// The mode of an aggregate cluster without a mode in its metadata. Runtime::plan uses
  /// RuntimeOptions::aggregate_mode instead.
  AggregateMode aggregate_mode = AggregateMode::kPriority;
  /// The locality of the client, for zone-aware routing and the calls that stay in its zone
  /// (Plan::own_zone). Without a zone: that of the bootstrap's node, or not known. Runtime::plan
  /// uses its node's instead.
  LocalityName caller;
  /// Custom LB policies that clusters may name (RuntimeOptions::lb_policies). Runtime::plan uses
  /// the policies of its runtime instead.
  std::vector<std::string> lb_policies;
  /// The path of the client's bootstrap, for names of listeners, the locality of its node, and the
  /// certificate providers that clusters may name. Empty: none. Runtime::plan uses the bootstrap of
  /// its runtime instead.
  std::string bootstrap_path;
};

/// Plans from a file of xDS resources, such as a bootstrap's "signalbox.resources" names. The file
/// is JSON when `path` ends in ".json", else YAML.
absl::StatusOr<Plan> plan_file(const std::string& path, const PlanRequest& request = {});

/// As plan_file(), from a text. Errors name `file_name`. The text is JSON when `file_name` ends in
/// ".json", else YAML.
absl::StatusOr<Plan> plan_text(absl::string_view text,
                               const std::string& file_name,
                               const PlanRequest& request = {});

}  // namespace signalbox
