// SPDX-License-Identifier: Apache-2.0
//
// Builders of small resources, for tests of the xDS side.

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "messages/resource.hpp"
#include "messages/xds_config.hpp"

namespace signalbox::tests {

inline ResourceKey lds(std::string name) {
  return {ResourceType::kListener, std::move(name)};
}

inline ResourceKey rds(std::string name) {
  return {ResourceType::kRouteConfig, std::move(name)};
}

inline ResourceKey cds(std::string name) {
  return {ResourceType::kCluster, std::move(name)};
}

inline ResourceKey eds(std::string name) {
  return {ResourceType::kEndpoints, std::move(name)};
}

inline std::shared_ptr<const Cluster> cluster(std::string name,
                                              decltype(Cluster::discovery) discovery) {
  Cluster made;
  made.name = ClusterName{std::move(name)};
  made.discovery = std::move(discovery);
  if (!std::holds_alternative<AggregateDiscovery>(made.discovery))
    made.lb_policy = make_lb_config(RoundRobinConfig{});
  return std::make_shared<const Cluster>(std::move(made));
}

inline std::shared_ptr<const Cluster> eds_cluster(std::string name, std::string service) {
  return cluster(std::move(name), EdsDiscovery{std::move(service)});
}

inline std::shared_ptr<const Cluster> dns_cluster(std::string name, std::string host_and_port) {
  return cluster(std::move(name), DnsDiscovery{DnsName{std::move(host_and_port)}});
}

inline std::shared_ptr<const Cluster> aggregate(std::string name,
                                                const std::vector<std::string>& children) {
  AggregateDiscovery discovery;
  for (const std::string& child : children)
    discovery.clusters.emplace_back(child);
  return cluster(std::move(name), std::move(discovery));
}

inline LocalityPtr locality(std::string region, const std::vector<std::string>& addresses) {
  Locality made;
  made.name.region = std::move(region);
  for (const std::string& address : addresses)
    made.endpoints.push_back(Endpoint{{Address{address}}});
  return std::make_shared<const Locality>(std::move(made));
}

inline EndpointsPtr endpoints(const std::vector<std::vector<LocalityPtr>>& priorities) {
  Endpoints made;
  for (const auto& localities : priorities)
    made.priorities.push_back(Priority{localities});
  return std::make_shared<const Endpoints>(std::move(made));
}

/// One virtual host for `domain`, one route to each of the clusters.
inline std::shared_ptr<const RouteConfig> routes_to(std::string name,
                                                    const std::vector<std::string>& clusters,
                                                    const std::string& domain = "*") {
  VirtualHost host;
  host.name = domain;
  host.domains = {domain};
  for (const std::string& target : clusters) {
    Route route;
    route.match.path = {TextMatcher::Kind::kPrefix, "/" + target, false};
    route.action = ForwardAction{{{ClusterName{target}, 1}}, {}, {}};
    host.routes.push_back(std::move(route));
  }
  return std::make_shared<const RouteConfig>(RouteConfig{std::move(name), {std::move(host)}});
}

inline std::shared_ptr<const Listener> inline_listener(std::string name,
                                                       std::shared_ptr<const RouteConfig> routes) {
  return std::make_shared<const Listener>(Listener{std::move(name), std::move(routes), {}, {}});
}

inline std::shared_ptr<const Listener> rds_listener(std::string name, std::string route_config) {
  return std::make_shared<const Listener>(
      Listener{std::move(name), RdsName{std::move(route_config)}, {}, {}});
}

}  // namespace signalbox::tests
