// SPDX-License-Identifier: Apache-2.0
#include "channel/plan_world.hpp"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "lb/health/plan.hpp"
#include "messages/named_clusters.hpp"
#include "messages/overloaded.hpp"
#include "xds/depend/cluster_graph.hpp"
#include "xds/depend/leaf_endpoints.hpp"
#include "xds/depend/virtual_host.hpp"
#include "xds/parse/parse_resource.hpp"
#include "xds/percent_encoding.hpp"
#include "xds/type_url.hpp"

namespace signalbox::channel {
namespace {

std::string names(const std::set<ClusterName>& clusters) {
  return clusters.empty() ? "none" : absl::StrJoin(clusters, ", ", absl::StreamFormatter());
}

struct ResolvedTarget {
  std::string listener;
  std::string authority;  // The routes' domains are compared with it.
};

// As calls resolve a target (A47). A text without the scheme is the name of a listener.
absl::StatusOr<ResolvedTarget> resolve(const std::string& target, const xds::Bootstrap& bootstrap) {
  if (!absl::StartsWith(target, "xds:"))
    return ResolvedTarget{target, xds::percent_encode_authority(target)};
  auto listener = xds::listener_resource_name(bootstrap, target);
  if (!listener.ok()) return listener.status();
  return ResolvedTarget{*std::move(listener), xds::data_plane_authority(target)};
}

const AggregateDiscovery* aggregate_of(const Cluster& cluster) {
  return std::get_if<AggregateDiscovery>(&cluster.discovery);
}

}  // namespace

absl::Status PlanWorld::add(ResourceType type,
                            const std::string& bytes,
                            const xds::ParseOptions& options) {
  const auto parsed = xds::parse_resource(type, xds::type_url_of(type), bytes, options);
  if (!parsed.resource.ok()) return parsed.resource.status();
  std::visit(
      Overloaded{
          [&](const std::shared_ptr<const Listener>& listener) {
            listeners_[parsed.name] = listener;
          },
          [&](const std::shared_ptr<const RouteConfig>& routes) { routes_[parsed.name] = routes; },
          [&](const ClusterPtr& cluster) { clusters_[ClusterName(parsed.name)] = cluster; },
          [&](const EndpointsPtr& endpoints) { endpoints_[parsed.name] = endpoints; },
      },
      *parsed.resource);
  return absl::OkStatus();
}

// --- the cluster to plan for -----------------------------------------------

std::string PlanWorld::all_clusters() const {
  std::set<ClusterName> all;
  for (const auto& [name, cluster] : clusters_)
    all.insert(name);
  return names(all);
}

absl::StatusOr<ClusterName> PlanWorld::cluster_of_target(const std::string& target,
                                                         const xds::Bootstrap& bootstrap) const {
  const auto resolved = resolve(target, bootstrap);
  if (!resolved.ok()) return resolved.status();
  const std::string& name = resolved->listener;
  const auto listener = listeners_.find(name);
  if (listener == listeners_.end()) {
    std::vector<std::string> there;
    there.reserve(listeners_.size());
    for (const auto& [known, value] : listeners_)
      there.push_back(known);
    return absl::InvalidArgumentError(
        absl::StrCat("target: there is no listener '",
                     name,
                     "'; listeners: ",
                     there.empty() ? "none" : absl::StrJoin(there, ", ")));
  }
  std::shared_ptr<const RouteConfig> routes;
  if (const auto* own = std::get_if<std::shared_ptr<const RouteConfig>>(&listener->second->routes))
    routes = *own;
  if (const auto* rds = std::get_if<RdsName>(&listener->second->routes)) {
    if (const auto found = routes_.find(rds->name); found != routes_.end()) routes = found->second;
  }
  const VirtualHost* host =
      routes == nullptr ? nullptr : xds::find_virtual_host(*routes, resolved->authority);
  std::set<ClusterName> clusters;
  if (host != nullptr) clusters = named_clusters(*host, listener->second.get());
  if (clusters.size() == 1) return *clusters.begin();
  return absl::InvalidArgumentError(absl::StrCat("target: the routes of ",
                                                 name,
                                                 " do not lead to one cluster; name one of them: ",
                                                 names(clusters)));
}

absl::StatusOr<ClusterName> PlanWorld::only_root() const {
  std::set<ClusterName> roots;
  for (const auto& [name, cluster] : clusters_)
    roots.insert(name);
  for (const auto& [name, cluster] : clusters_) {
    if (const auto* aggregate = aggregate_of(**cluster)) {
      for (const ClusterName& child : aggregate->clusters)
        roots.erase(child);
    }
  }
  if (roots.size() == 1) return *roots.begin();
  if (clusters_.empty()) return absl::InvalidArgumentError("there is no cluster");
  return absl::InvalidArgumentError(absl::StrCat(
      roots.empty() ? "aggregates lead to all clusters" : "no aggregate leads to several clusters",
      "; name one: ",
      roots.empty() ? all_clusters() : names(roots)));
}

absl::StatusOr<ClusterName> PlanWorld::cluster_of(const PlanRequest& request,
                                                  const xds::Bootstrap& bootstrap) const {
  if (!request.cluster.empty() && !request.target.empty())
    return absl::InvalidArgumentError("name a cluster or a target, not both");
  if (!request.target.empty()) return cluster_of_target(request.target, bootstrap);
  if (request.cluster.empty()) return only_root();
  ClusterName name(request.cluster);
  if (clusters_.contains(name)) return name;
  return absl::InvalidArgumentError(
      absl::StrCat("there is no cluster '", request.cluster, "'; clusters: ", all_clusters()));
}

// --- the cluster's leaves --------------------------------------------------

absl::StatusOr<Plan> PlanWorld::plan(const PlanRequest& request,
                                     const xds::Bootstrap& bootstrap) const {
  const auto root = cluster_of(request, bootstrap);
  if (!root.ok()) return root.status();
  const auto find = [&](const ClusterName& name) -> const absl::StatusOr<ClusterPtr>* {
    const auto found = clusters_.find(name);
    return found == clusters_.end() ? nullptr : &found->second;
  };
  const auto leaves = xds::flatten(*root, find, xds::MissingLeaf::kSkip);
  if (!leaves.ok()) return absl::InvalidArgumentError(leaves.status().message());

  std::vector<std::string> notes;
  for (const ClusterName& reached : xds::explore({*root}, find).unanswered)
    notes.push_back(absl::StrCat("cluster ", reached.str(), " is missing, and takes no calls"));
  const Cluster& cluster = **clusters_.at(*root);
  lb::PlanInput input{*root,
                      aggregate_of(cluster) != nullptr,
                      cluster.aggregate_mode,
                      request.aggregate_mode,
                      {},
                      cluster.panic_threshold,
                      request.caller};
  for (const ClusterName& name : *leaves) {
    const Cluster& leaf = **clusters_.at(name);
    // The lb_policy of an aggregate is null unless it replaces the policies of its leaves (A75-8).
    const bool is_replaced = input.is_aggregate && cluster.lb_policy != nullptr;
    lb::PlanLeaf& planned = input.leaves.emplace_back(
        lb::PlanLeaf{name, is_replaced ? cluster.lb_policy : leaf.lb_policy, nullptr});
    if (const auto* dns = std::get_if<DnsDiscovery>(&leaf.discovery)) {
      planned.endpoints = xds::endpoints_from_dns(dns->name, {Address(dns->name.str())}, nullptr);
    } else if (const auto* eds = std::get_if<EdsDiscovery>(&leaf.discovery)) {
      const auto found = endpoints_.find(eds->service_name);
      if (found != endpoints_.end()) {
        planned.endpoints = found->second;
        if (!found->second->drops.empty()) {
          notes.push_back(absl::StrCat(
              "cluster ", name.str(), " drops calls (drop_overloads): its shares are before that"));
        }
      } else {
        notes.push_back(absl::StrCat("the endpoints ",
                                     eds->service_name,
                                     " of cluster ",
                                     name.str(),
                                     " are missing: it takes no calls"));
      }
    }
  }
  auto plan = lb::make_plan(input, request.assumptions);
  if (plan.ok()) plan->notes = std::move(notes);
  return plan;
}

absl::StatusOr<Plan> plan_of(const ResourceDump& dump,
                             const PlanRequest& request,
                             const xds::ParseOptions& options,
                             const xds::Bootstrap& bootstrap) {
  PlanWorld world;
  for (const ResourceState& state : dump.resources) {
    if (state.bytes == nullptr) continue;
    if (auto status = world.add(state.key.type, *state.bytes, options); !status.ok()) return status;
  }
  return world.plan(request, bootstrap);
}

}  // namespace signalbox::channel
