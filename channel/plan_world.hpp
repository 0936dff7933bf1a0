// SPDX-License-Identifier: Apache-2.0
//
// PlanWorld — the resources that a plan is made from, by name.
//
//   resource file ──┐
//   ResourceDump ───┴▶ [PlanWorld] ─▶ lb/health/plan
//
// A leaf cluster that is missing is no error while another leaf is there: it gets no calls, and the
// plan's notes say so.

#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "messages/plan.hpp"
#include "messages/resource.hpp"
#include "messages/resource_dump.hpp"
#include "signalbox/plan.hpp"
#include "xds/bootstrap.hpp"
#include "xds/parse/parse_options.hpp"

namespace signalbox::channel {

class PlanWorld {
 public:
  /// Adds a resource: a listener, a route configuration, a cluster, or endpoints. Returns the
  /// parser's error if `bytes` are no valid resource.
  absl::Status add(ResourceType type, const std::string& bytes, const xds::ParseOptions& options);

  /// `bootstrap`: its templates and authorities give the listener's name of the request's target.
  absl::StatusOr<Plan> plan(const PlanRequest& request, const xds::Bootstrap& bootstrap) const;

 private:
  using ClusterPtr = std::shared_ptr<const Cluster>;

  absl::StatusOr<ClusterName> cluster_of(const PlanRequest& request,
                                         const xds::Bootstrap& bootstrap) const;
  absl::StatusOr<ClusterName> cluster_of_target(const std::string& target,
                                                const xds::Bootstrap& bootstrap) const;
  absl::StatusOr<ClusterName> only_root() const;
  std::string all_clusters() const;

  std::map<std::string, std::shared_ptr<const Listener>> listeners_;
  std::map<std::string, std::shared_ptr<const RouteConfig>> routes_;
  std::map<ClusterName, absl::StatusOr<ClusterPtr>> clusters_;
  std::map<std::string, EndpointsPtr> endpoints_;
};

/// A plan from the resources of a dump: for each resource, the version that is in use.
absl::StatusOr<Plan> plan_of(const ResourceDump& dump,
                             const PlanRequest& request,
                             const xds::ParseOptions& options,
                             const xds::Bootstrap& bootstrap);

}  // namespace signalbox::channel
