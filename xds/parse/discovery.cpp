// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/discovery.hpp"

#include <cstddef>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "signalbox/envoy/extensions/clusters/aggregate/v3/cluster.pb.h"
#include "xds/parse/address.hpp"
#include "xds/parse/well_known.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using ClusterProto = envoy::config::cluster::v3::Cluster;
using AggregateProto = envoy::extensions::clusters::aggregate::v3::ClusterConfig;

EdsDiscovery parse_eds(const ClusterProto& proto, const Field& top) {
  const Field field = top.at("eds_cluster_config");
  const auto& config = proto.eds_cluster_config();
  const Field source = field.at("eds_config");
  if (config.has_eds_config()) {
    require_ads(config.eds_config(), source);
  } else {
    source.add("must be set, found none");
  }
  const Field service_name = field.at("service_name");
  if (!config.service_name().empty()) {
    require_name(config.service_name(), service_name);
    return EdsDiscovery{config.service_name()};
  }
  // EDS would use the cluster's own name, but an xdstp: name contains the type Cluster.
  if (absl::StartsWith(proto.name(), "xdstp:")) {
    service_name.add(absl::StrCat("must be set where the cluster has an xdstp name, found none"));
  }
  return EdsDiscovery{proto.name()};
}

DnsDiscovery parse_dns(const ClusterProto& proto, const Field& top) {
  const Field assignment = top.at("load_assignment");
  if (!proto.has_load_assignment()) {
    assignment.add("must be set for LOGICAL_DNS, found none");
    return {};
  }
  const auto& localities = proto.load_assignment().endpoints();
  if (localities.size() != 1) {
    assignment.at("endpoints")
        .add(absl::StrCat("must have exactly one entry, found ", localities.size()));
    return {};
  }
  const Field locality = assignment.at("endpoints", 0);
  const auto& endpoints = localities[0].lb_endpoints();
  if (endpoints.size() != 1) {
    locality.at("lb_endpoints")
        .add(absl::StrCat("must have exactly one entry, found ", endpoints.size()));
    return {};
  }
  const Field endpoint = locality.at("lb_endpoints", 0);
  if (!endpoints[0].has_endpoint()) {
    endpoint.at("endpoint").add("must be set, found none");
    return {};
  }
  const Field address = endpoint.at("endpoint.address");
  if (!endpoints[0].endpoint().has_address()) {
    address.add("must be set, found none");
    return {};
  }
  return DnsDiscovery{parse_dns_name(endpoints[0].endpoint().address(), address)};
}

bool within_cluster_limit(const AggregateProto& proto, const Field& field) {
  const std::size_t most = field.options().limits.max_clusters;
  if (static_cast<std::size_t>(proto.clusters_size()) <= most) return true;
  field.add_over_limit(
      "max_clusters",
      absl::StrCat("must have at most ", most, " entries, found ", proto.clusters_size()));
  return false;
}

AggregateDiscovery parse_aggregate(const ClusterProto::CustomClusterType& proto, const Field& top) {
  const Field config = top.at("cluster_type.typed_config");
  if (!proto.has_typed_config()) {
    config.add("must be set, found none");
    return {};
  }
  const auto& any = proto.typed_config();
  if (any.type_url() != type_url_of<AggregateProto>()) {
    config.at("type_url")
        .add(absl::StrCat(
            "must be ", type_url_of<AggregateProto>(), ", found ", in_quotes(any.type_url())));
    return {};
  }
  const Field value = config.at("value");
  AggregateProto aggregate;
  if (!decode(any.value(), aggregate, value)) return {};
  AggregateDiscovery discovery;
  if (aggregate.clusters().empty()) {
    value.at("clusters").add("must have at least one entry, found 0");
  }
  if (!within_cluster_limit(aggregate, value.at("clusters"))) return discovery;
  for (int i = 0; i < aggregate.clusters_size(); ++i) {
    require_name(aggregate.clusters(i), value.at("clusters", static_cast<std::size_t>(i)));
    discovery.clusters.emplace_back(aggregate.clusters(i));
  }
  return discovery;
}

}  // namespace

// If `type` is EDS or LOGICAL_DNS, `cluster_type` is not read (A37-48).
void parse_discovery(const ClusterProto& proto, Cluster& cluster, const Field& top) {
  if (proto.has_type() && proto.type() == ClusterProto::EDS) {
    cluster.discovery = parse_eds(proto, top);
  } else if (proto.has_type() && proto.type() == ClusterProto::LOGICAL_DNS) {
    cluster.discovery = parse_dns(proto, top);
  } else if (proto.has_cluster_type()) {
    cluster.discovery = parse_aggregate(proto.cluster_type(), top);
  } else {
    const std::string found =
        proto.has_type() ? enum_text(proto.type(), ClusterProto::DiscoveryType_Name(proto.type()))
                         : "none";
    top.at("type").add(
        absl::StrCat("must be EDS or LOGICAL_DNS, or cluster_type be set; found ", found));
  }
}

}  // namespace signalbox::xds
