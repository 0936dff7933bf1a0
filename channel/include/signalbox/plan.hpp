// SPDX-License-Identifier: Apache-2.0
//
// plan — see how the calls to a cluster spread before it happens: by which share each cluster,
// priority, locality and endpoint would be called if some of them were not well, in both modes that
// an aggregate cluster can run in.
//
//   signalbox::PlanRequest request;
//   request.assumptions.down = {"zone-a"};               // what if this zone died?
//   auto plan = signalbox::plan_file("resources.yaml", request);
//   if (!plan.ok()) return plan.status();                // what is wrong, and what there is
//   use(plan->leaves[0].shares.priority.then);           // of a million calls
//
//   a file or a text of resources ─▶ plan_file, plan_text ─┐
//   a running Runtime ─────────────▶ Runtime::plan ────────┴▶ Plan (messages/plan.hpp)
//
// Shares are what the rules make of the configuration: what EDS says and what is assumed. Of a
// running process neither ejected endpoints nor connections that are lost count; sessions, drops
// and limits do not either. Names of LOGICAL_DNS clusters are not resolved: each is one endpoint.
//
// Functions without state: any thread may call them, and each call reads its file anew. Nothing is
// connected to, nothing is changed. Errors: INVALID_ARGUMENT for resources that are wrong, and for
// a request that names what is not there, contradicts itself or is out of range; NOT_FOUND or
// another of the operating system's for a file that cannot be read.
//
// Source: gRFC A56, A75; Envoy's "Aggregate Cluster" and "Priority levels". `signalbox plan` shows
// the same as a table, as JSON and as a page.

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "messages/plan.hpp"

namespace signalbox {

struct PlanRequest {
  /// Whose calls. At most one of the two; neither: the one cluster that no aggregate leads to.
  std::string cluster;
  std::string target;  ///< "xds:///orders", or the listener's name: the cluster of its routes.
  PlanAssumptions assumptions;
  /// Of an aggregate whose metadata do not say; Runtime::plan takes the runtime's own.
  AggregateMode aggregate_mode = AggregateMode::kPriority;
  /// Custom LB policies that clusters may name (RuntimeOptions::lb_policies); a runtime knows its
  /// own.
  std::vector<std::string> lb_policies;
  /// The certificate providers that clusters may name; a runtime knows its own.
  std::vector<std::string> certificate_providers;
};

/// `path`: YAML or JSON (for a name that ends in ".json") of xDS resources, as a bootstrap's
/// "signalbox.resources" names it.
absl::StatusOr<Plan> plan_file(const std::string& path, const PlanRequest& request = {});

/// The same of a text; `file_name` is for the errors, and its ending says the format.
absl::StatusOr<Plan> plan_text(absl::string_view text,
                               const std::string& file_name,
                               const PlanRequest& request = {});

}  // namespace signalbox
