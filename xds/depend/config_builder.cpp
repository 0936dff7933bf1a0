// SPDX-License-Identifier: Apache-2.0
#include "xds/depend/config_builder.hpp"

#include <utility>

#include "absl/strings/str_cat.h"

#include "messages/named_clusters.hpp"
#include "messages/overloaded.hpp"
#include "xds/client/resource_text.hpp"

namespace signalbox::xds {
namespace {

bool same_children(const ClusterConfig& left, const ClusterConfig& right) {
  return std::visit(
      Overloaded{
          [](const LeafEndpoints& a, const LeafEndpoints& b) {
            return a.endpoints == b.endpoints && a.resolution_note == b.resolution_note;
          },
          [](const AggregateLeaves& a, const AggregateLeaves& b) { return a.leaves == b.leaves; },
          [](const auto&, const auto&) { return false; },
      },
      left.children,
      right.children);
}

class Builder {
 public:
  Builder(const BuildArguments& arguments, std::set<ClusterName> roots)
      : arguments_(arguments),
        roots_(std::move(roots)),
        explored_(explore(roots_, [this](const auto& name) { return find(name); })) {}

  bool is_complete() const {
    if (!explored_.unanswered.empty()) return false;
    for (const ClusterName& name : explored_.reached) {
      const auto& cluster = *find(name);
      if (cluster.ok() && !leaf_answered(**cluster)) return false;
    }
    return true;
  }

  /// The map for XdsConfig::clusters: values and errors by name. Precondition: is_complete().
  std::map<ClusterName, absl::StatusOr<ClusterConfigPtr>> clusters() const {
    std::map<ClusterName, absl::StatusOr<ClusterConfigPtr>> built;
    for (const ClusterName& name : explored_.reached) {
      // An aggregate that is no root has no entry: flatten() replaces it by its leaves.
      const auto& cluster = *find(name);
      if (cluster.ok() && is_aggregate(**cluster) && !roots_.contains(name)) continue;
      built.emplace_hint(built.end(), name, build(name, cluster));
    }
    return built;
  }

  /// The ambient errors of roots (clusters that routes or running calls name) that have a value.
  /// Precondition: is_complete().
  std::map<ClusterName, std::string> notes(const XdsConfig& config) const {
    std::map<ClusterName, std::string> notes;
    for (const ClusterName& name : roots_) {
      const auto& built = config.clusters.at(name);
      if (!built.ok()) continue;
      std::string note = ambient_note(name, *(*built)->cluster);
      if (const auto* aggregate = std::get_if<AggregateLeaves>(&(*built)->children))
        note = join_notes(note, leaf_notes(aggregate->leaves));
      if (!note.empty()) notes.emplace(name, std::move(note));
    }
    return notes;
  }

 private:
  static bool is_aggregate(const Cluster& cluster) {
    return std::holds_alternative<AggregateDiscovery>(cluster.discovery);
  }

  static ResourceKey key_of(const ClusterName& name) {
    return {ResourceType::kCluster, name.str()};
  }

  const absl::StatusOr<ClusterPtr>* find(const ClusterName& name) const {
    return arguments_.known.find_cluster(name);
  }

  bool leaf_answered(const Cluster& cluster) const {
    return std::visit(
        Overloaded{
            [&](const EdsDiscovery& eds) {
              return arguments_.known.endpoints(eds.service_name).value.has_value();
            },
            [&](const DnsDiscovery& dns) { return arguments_.known.name(dns.name).answered(); },
            [](const AggregateDiscovery&) { return true; },
        },
        cluster.discovery);
  }

  absl::StatusOr<ClusterConfigPtr> build(const ClusterName& name,
                                         const absl::StatusOr<ClusterPtr>& cluster) const {
    if (!cluster.ok()) return arguments_.text.unavailable(key_of(name), cluster.status());
    if (!is_aggregate(**cluster)) return share(name, {*cluster, leaf(**cluster)});
    const auto lookup = [this](const ClusterName& child) { return find(child); };
    auto leaves = flatten(name, lookup, arguments_.missing_leaf);
    if (!leaves.ok()) return arguments_.text.unavailable(leaves.status().message());
    return share(name, {*cluster, AggregateLeaves{*std::move(leaves)}});
  }

  LeafEndpoints leaf(const Cluster& cluster) const {
    return std::visit(Overloaded{
                          [&](const EdsDiscovery& eds) { return from_eds(eds.service_name); },
                          [&](const DnsDiscovery& dns) { return from_dns(dns.name); },
                          [](const AggregateDiscovery&) { return LeafEndpoints{}; },
                      },
                      cluster.discovery);
  }

  // If the value is an error, the leaf has no endpoints, even if it had some before (A37-24). An
  // error beside endpoints that stay valid (an ambient error) is not in `value`: ambient_note()
  // tells it.
  LeafEndpoints from_eds(const std::string& service_name) const {
    const auto& value = *arguments_.known.endpoints(service_name).value;
    const ResourceKey key{ResourceType::kEndpoints, service_name};
    if (!value.ok()) return {nullptr, arguments_.text.explain(key, value.status())};
    const std::size_t unweighted = (*value)->unweighted_localities;
    if (unweighted == 0) return {*value, ""};
    const auto none_counts = absl::FailedPreconditionError(absl::StrCat(
        "none of its ",
        unweighted,
        " localities counts: load_balancing_weight is 0 or unset; set it to 1 or more"));
    return {*value, arguments_.text.explain(key, none_counts)};
  }

  LeafEndpoints from_dns(const DnsName& name) const {
    const NameResolution& resolution = arguments_.known.name(name);
    if (resolution.endpoints() != nullptr) return {resolution.endpoints(), ""};
    return {nullptr, arguments_.text.explain(resolution.error())};
  }

  std::string ambient_note(const ClusterName& name, const Cluster& cluster) const {
    const auto note = [](const ResourceKey& key, const absl::Status& ambient) {
      return ambient.ok() ? std::string() : with_resource(key, ambient.message());
    };
    return join_notes(note(key_of(name), arguments_.known.cluster(name).ambient),
                      std::visit(Overloaded{
                                     [&](const EdsDiscovery& eds) {
                                       return note(
                                           {ResourceType::kEndpoints, eds.service_name},
                                           arguments_.known.endpoints(eds.service_name).ambient);
                                     },
                                     [&](const DnsDiscovery& dns) {
                                       const auto& resolution = arguments_.known.name(dns.name);
                                       return resolution.endpoints() == nullptr
                                                  // No note: from_dns() reports the error as the
                                                  // cluster's own.
                                                  ? std::string()
                                                  : resolution.error();
                                     },
                                     [](const AggregateDiscovery&) { return std::string(); },
                                 },
                                 cluster.discovery));
  }

  std::string leaf_notes(const std::vector<ClusterName>& leaves) const {
    std::string notes;
    std::size_t noted = 0;
    for (const ClusterName& leaf : leaves) {
      const std::string note = ambient_note(leaf, ***find(leaf));
      if (!note.empty() && ++noted <= kMaxLeafNotes) notes = join_notes(notes, note);
    }
    if (noted <= kMaxLeafNotes) return notes;
    return join_notes(notes, absl::StrCat("and ", noted - kMaxLeafNotes, " clusters more"));
  }

  ClusterConfigPtr share(const ClusterName& name, ClusterConfig fresh) const {
    if (arguments_.before != nullptr) {
      const auto found = arguments_.before->clusters.find(name);
      const bool same = found != arguments_.before->clusters.end() && found->second.ok() &&
                        (*found->second)->cluster == fresh.cluster &&
                        same_children(**found->second, fresh);
      if (same) return *found->second;
    }
    return std::make_shared<const ClusterConfig>(std::move(fresh));
  }

  const BuildArguments& arguments_;
  std::set<ClusterName> roots_;
  ExploredClusters explored_;
};

}  // namespace

std::optional<BuiltConfig> build_config(const Routes& routes, const BuildArguments& arguments) {
  std::set<ClusterName> roots = named_clusters(*routes.virtual_host, routes.listener.get());
  roots.insert(arguments.referenced.begin(), arguments.referenced.end());
  const Builder builder(arguments, std::move(roots));
  if (!builder.is_complete()) return std::nullopt;
  BuiltConfig built{{routes.listener, routes.route_config, routes.virtual_host, builder.clusters()},
                    {}};
  built.notes = builder.notes(built.config);
  return built;
}

bool is_unchanged(const XdsConfig& fresh, const XdsConfig& before) {
  return fresh.listener == before.listener && fresh.route_config == before.route_config &&
         fresh.virtual_host == before.virtual_host && fresh.clusters == before.clusters;
}

}  // namespace signalbox::xds
