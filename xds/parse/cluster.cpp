// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/cluster.hpp"

#include <chrono>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "messages/cluster.hpp"
#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/extensions/clusters/aggregate/v3/cluster.pb.h"
#include "xds/parse/address.hpp"
#include "xds/parse/lb_policy.hpp"
#include "xds/parse/validation_errors.hpp"
#include "xds/parse/well_known.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using ClusterProto = envoy::config::cluster::v3::Cluster;
using AggregateProto = envoy::extensions::clusters::aggregate::v3::ClusterConfig;
using envoy::config::endpoint::v3::ClusterLoadAssignment;

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
  // The cluster's own name would be taken for EDS, and an xdstp name says that it is CDS.
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
            "must be ", type_url_of<AggregateProto>(), ", found ", quoted(any.type_url())));
    return {};
  }
  const Field value = config.at("value");
  AggregateProto aggregate;
  if (!decode(any.value(), aggregate, value)) return {};
  if (aggregate.clusters().empty()) {
    value.at("clusters").add("must have at least one entry, found 0");
  }
  AggregateDiscovery discovery;
  for (int i = 0; i < aggregate.clusters_size(); ++i) {
    require_name(aggregate.clusters(i), value.at("clusters", static_cast<std::size_t>(i)));
    discovery.clusters.emplace_back(aggregate.clusters(i));
  }
  return discovery;
}

// `type` comes before `cluster_type` (A37-48).
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

void parse_connect_timeout(const ClusterProto& proto, Cluster& cluster, const Field& top) {
  if (!proto.has_connect_timeout()) return;
  const Field field = top.at("connect_timeout");
  const std::size_t errors_before = field.errors_so_far();
  cluster.connect_timeout = parse_duration(proto.connect_timeout(), field);
  if (cluster.connect_timeout == Duration::zero() && field.errors_so_far() == errors_before) {
    field.add("must be longer than 0, found 0");
  }
}

}  // namespace

ReceivedResource parse_cluster(absl::string_view bytes, const ParseOptions& options) {
  ClusterProto proto;
  if (!decode(bytes, proto)) return undecodable("CDS", "a Cluster", bytes);
  ValidationErrors errors;
  auto cluster = std::make_shared<Cluster>();
  cluster->name = ClusterName{proto.name()};
  require_name(proto.name(), errors.top().at("name"));
  parse_discovery(proto, *cluster, errors.top());
  if (options.keep_aggregate_lb_policy ||
      !std::holds_alternative<AggregateDiscovery>(cluster->discovery)) {
    cluster->lb_policy = parse_lb_policy(proto, errors.top());
  }
  parse_connect_timeout(proto, *cluster, errors.top());
  if (proto.has_lrs_server() && !proto.lrs_server().has_self()) {
    errors.top().at("lrs_server").add("must be self, found another server");
  }
  if (!errors.empty()) return {proto.name(), errors.status("CDS", proto.name())};
  return {proto.name(), Resource{std::shared_ptr<const Cluster>(std::move(cluster))}};
}

}  // namespace signalbox::xds
