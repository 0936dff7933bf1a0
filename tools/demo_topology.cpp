// SPDX-License-Identifier: Apache-2.0
#include "tools/demo_topology.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include <google/protobuf/util/json_util.h>
#include <nlohmann/json.hpp>

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "signalbox/envoy/extensions/clusters/aggregate/v3/cluster.pb.h"
#include "xds/type_url.hpp"

namespace signalbox::tools {
namespace {

using AggregateConfig = envoy::extensions::clusters::aggregate::v3::ClusterConfig;
using envoy::config::cluster::v3::Cluster;
using envoy::config::core::v3::SocketAddress;
using envoy::config::endpoint::v3::ClusterLoadAssignment;
using envoy::config::endpoint::v3::LocalityLbEndpoints;

constexpr std::size_t kLeaves = 3;

// Called for every backend, with its name, its cluster, and its address to read or change.
using Visitor = std::function<void(
    const std::string& name, const std::string& cluster, SocketAddress& address)>;

void visit_assignment(ClusterLoadAssignment& assignment,
                      const std::string& cluster,
                      const Visitor& visit) {
  int number = 0;
  for (auto& locality : *assignment.mutable_endpoints()) {
    for (auto& endpoint : *locality.mutable_lb_endpoints()) {
      if (!endpoint.endpoint().address().has_socket_address()) continue;
      auto& address = *endpoint.mutable_endpoint()->mutable_address()->mutable_socket_address();
      visit(absl::StrCat(cluster, "-", ++number), cluster, address);
    }
  }
}

// The results of ParseFromString are ignored: the bytes come from our own conversion, and can be
// parsed.
void visit_places(std::vector<xds::ResourceBytes>& resources, const Visitor& visit) {
  for (auto& resource : resources) {
    if (resource.type_url == xds::kClusterLoadAssignmentTypeUrl) {
      ClusterLoadAssignment assignment;
      assignment.ParseFromString(resource.bytes);
      visit_assignment(assignment, resource.name, visit);
      resource.bytes = assignment.SerializeAsString();
    } else if (resource.type_url == xds::kClusterTypeUrl) {
      Cluster cluster;
      cluster.ParseFromString(resource.bytes);
      if (!cluster.has_load_assignment()) continue;
      visit_assignment(*cluster.mutable_load_assignment(), resource.name, visit);
      resource.bytes = cluster.SerializeAsString();
    }
  }
}

// The clusters of an aggregate cluster; empty for every other resource.
std::vector<std::string> leaves_of(const xds::ResourceBytes& resource) {
  Cluster cluster;
  AggregateConfig aggregate;
  if (resource.type_url != xds::kClusterTypeUrl) return {};
  cluster.ParseFromString(resource.bytes);
  const auto& config = cluster.cluster_type().typed_config();
  if (config.type_url() != xds::type_url_of<AggregateConfig>()) return {};
  aggregate.ParseFromString(config.value());
  return {aggregate.clusters().begin(), aggregate.clusters().end()};
}

// Rotates the list of an aggregate cluster, so that leaf number `first` comes first. Other
// resources do not change.
void rotate_leaves(xds::ResourceBytes& resource, std::size_t first) {
  Cluster cluster;
  AggregateConfig aggregate;
  if (leaves_of(resource).empty()) return;
  cluster.ParseFromString(resource.bytes);
  auto& config = *cluster.mutable_cluster_type()->mutable_typed_config();
  aggregate.ParseFromString(config.value());
  auto& names = *aggregate.mutable_clusters();
  std::rotate(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(first), names.end());
  config.set_value(aggregate.SerializeAsString());
  resource.bytes = cluster.SerializeAsString();
}

// Moves the endpoint to a new priority below all others, in the same locality.
void lower(ClusterLoadAssignment& assignment, LocalityLbEndpoints& locality, int index) {
  std::uint32_t lowest = 0;
  for (const auto& other : assignment.endpoints())
    lowest = std::max(lowest, other.priority());
  LocalityLbEndpoints& lower = *assignment.add_endpoints();
  *lower.mutable_locality() = locality.locality();
  lower.mutable_load_balancing_weight()->set_value(1);
  lower.set_priority(lowest + 1);
  lower.add_lb_endpoints()->Swap(locality.mutable_lb_endpoints(index));
  locality.mutable_lb_endpoints()->DeleteSubrange(index, 1);
}

void change_endpoint(xds::ResourceBytes& resource, const EndpointChange& change) {
  if (resource.type_url != xds::kClusterLoadAssignmentTypeUrl) return;
  ClusterLoadAssignment assignment;
  assignment.ParseFromString(resource.bytes);
  const SocketAddress* wanted = nullptr;
  visit_assignment(assignment,
                   resource.name,
                   [&](const std::string& name, const std::string&, const SocketAddress& address) {
                     if (name == change.backend) wanted = &address;
                   });
  for (auto& locality : *assignment.mutable_endpoints()) {
    for (int i = 0; i < locality.lb_endpoints_size(); ++i) {
      auto& endpoint = *locality.mutable_lb_endpoints(i);
      if (&endpoint.endpoint().address().socket_address() != wanted) continue;
      if (change.kind == EndpointChange::Kind::kDraining) {
        endpoint.set_health_status(envoy::config::core::v3::DRAINING);
      } else {
        lower(assignment, locality, i);
      }
      resource.bytes = assignment.SerializeAsString();
      return;
    }
  }
}

absl::StatusOr<nlohmann::json> resource_json(const xds::ResourceBytes& resource,
                                             google::protobuf::util::TypeResolver& resolver) {
  std::string text;
  const auto status = google::protobuf::util::BinaryToJsonString(
      &resolver, resource.type_url, resource.bytes, &text);
  if (!status.ok()) {
    return absl::InternalError(
        absl::StrCat(resource.name, " as JSON: ", std::string(status.message())));
  }
  nlohmann::json object = nlohmann::json::parse(text);
  object["@type"] = resource.type_url;
  return object;
}

}  // namespace

absl::StatusOr<DemoTopology> DemoTopology::parse(absl::string_view text,
                                                 absl::string_view file_name) {
  auto resources = xds::parse_resources_text(text, xds::format_of(file_name), file_name);
  if (!resources.ok()) return resources.status();
  DemoTopology topology;
  topology.resources_ = *std::move(resources);

  for (const auto& resource : topology.resources_) {
    if (resource.type_url == xds::kListenerTypeUrl && topology.target_.empty()) {
      topology.target_ = absl::StrCat("xds:///", resource.name);
    }
    if (auto leaves = leaves_of(resource); !leaves.empty() && topology.leaves_.empty()) {
      topology.aggregate_ = resource.name;
      topology.leaves_ = std::move(leaves);
    }
  }
  visit_places(topology.resources_,
               [&](const std::string& name, const std::string& cluster, SocketAddress& address) {
                 topology.places_.push_back({name, cluster, address.address()});
               });

  const auto has_place = [&](const std::string& leaf) {
    return std::any_of(topology.places_.begin(), topology.places_.end(), [&](const auto& place) {
      return place.cluster == leaf;
    });
  };
  if (topology.target_.empty() || topology.leaves_.size() != kLeaves ||
      !std::all_of(topology.leaves_.begin(), topology.leaves_.end(), has_place)) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_name,
                     ": the demo needs a listener and an aggregate cluster of three clusters, each "
                     "with an endpoint"));
  }
  return topology;
}

void DemoTopology::replace_host(const std::string& name, const std::string& ip) {
  for (BackendPlace& place : places_) {
    if (place.host == name) place.host = ip;
  }
  visit_places(resources_, [&](const std::string&, const std::string&, SocketAddress& address) {
    if (address.address() == name) address.set_address(ip);
  });
}

absl::StatusOr<std::string> DemoTopology::resources(const std::map<std::string, int>& ports,
                                                    std::size_t first_leaf,
                                                    const EndpointChange& change) const {
  std::vector<xds::ResourceBytes> resources = resources_;
  visit_places(resources, [&](const std::string& name, const std::string&, SocketAddress& address) {
    if (const auto port = ports.find(name); port != ports.end()) {
      address.set_port_value(static_cast<std::uint32_t>(port->second));
    }
  });
  for (auto& resource : resources) {
    if (resource.name == aggregate_) rotate_leaves(resource, first_leaf);
    if (change.kind != EndpointChange::Kind::kNone) change_endpoint(resource, change);
  }

  const auto resolver = xds::make_type_resolver();
  nlohmann::json list = nlohmann::json::array();
  for (const auto& resource : resources) {
    auto object = resource_json(resource, *resolver);
    if (!object.ok()) return object.status();
    list.push_back(*std::move(object));
  }
  return nlohmann::json{{"resources", std::move(list)}}.dump(2);
}

}  // namespace signalbox::tools
