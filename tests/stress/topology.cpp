// SPDX-License-Identifier: Apache-2.0
#include "tests/stress/topology.hpp"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "messages/invariant.hpp"

namespace signalbox::stress {
namespace {

constexpr int kClusters = 4;

std::string any(const char* type) {
  return absl::StrCat("\"@type\": type.googleapis.com/envoy.", type);
}

std::string cluster_name(int number) {
  return absl::StrCat("c", number);
}

std::string listener(const std::string& name) {
  return absl::StrCat("- {",
                      any("config.listener.v3.Listener"),
                      ", name: ",
                      name,
                      ", api_listener: {api_listener: {",
                      any("extensions.filters.network.http_connection_manager.v3."
                          "HttpConnectionManager"),
                      ", rds: {route_config_name: ",
                      name,
                      ", config_source: {ads: {}}}, http_filters: [{name: router, typed_config: {",
                      any("extensions.filters.http.router.v3.Router"),
                      "}}]}}}\n");
}

// A route action: a cluster that may not exist, an aggregate, or two weighted clusters.
std::string action(Random& random) {
  const std::string one = cluster_name(below(random, kClusters));
  const std::string timeout =
      one_in(random, 6)
          ? absl::StrCat(
                ", max_stream_duration: {max_stream_duration: 0.", kRouteTimeout.count(), "s}")
          : "";
  if (one_in(random, 4)) return absl::StrCat("{cluster: both", timeout, "}");
  if (one_in(random, 12)) return absl::StrCat("{cluster: nowhere", timeout, "}");
  if (!one_in(random, 3)) return absl::StrCat("{cluster: ", one, timeout, "}");
  const std::string other = cluster_name(below(random, kClusters));
  return absl::StrCat("{weighted_clusters: {clusters: [{name: ",
                      one,
                      ", weight: 3}, {name: ",
                      other,
                      ", weight: 1}]}",
                      timeout,
                      "}");
}

std::string routes(Random& random, const std::string& name) {
  std::vector<std::string> all;
  for (const Shape shape : {Shape::kUnary, Shape::kChat}) {
    all.push_back(
        absl::StrCat("{match: {prefix: ", method_of(shape), "}, route: ", action(random), "}"));
  }
  if (!one_in(random, 10))
    all.push_back(absl::StrCat("{match: {prefix: \"\"}, route: ", action(random), "}"));
  return absl::StrCat("- {",
                      any("config.route.v3.RouteConfiguration"),
                      ", name: ",
                      name,
                      ", virtual_hosts: [{name: all, domains: [\"*\"], routes: [",
                      absl::StrJoin(all, ", "),
                      "]}]}\n");
}

std::string eds_cluster(Random& random, const std::string& name) {
  return absl::StrCat("- {",
                      any("config.cluster.v3.Cluster"),
                      ", name: ",
                      name,
                      ", type: EDS, eds_cluster_config: {eds_config: {ads: {}}}, connect_timeout: ",
                      1 + below(random, 2),
                      "s}\n");
}

std::string aggregate(Random& random) {
  const int first = below(random, kClusters);
  return absl::StrCat(
      "- {",
      any("config.cluster.v3.Cluster"),
      ", name: both, cluster_type: {name: envoy.clusters.aggregate, typed_config: {",
      any("extensions.clusters.aggregate.v3.ClusterConfig"),
      ", clusters: [",
      cluster_name(first),
      ", ",
      cluster_name((first + 1) % kClusters),
      "]}}}\n");
}

std::string endpoint(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  return absl::StrCat("{endpoint: {address: {socket_address: {address: ",
                      address.substr(0, colon),
                      ", port_value: ",
                      address.substr(colon + 1),
                      "}}}}");
}

std::string endpoints(Random& random,
                      const std::string& cluster,
                      std::vector<std::string> addresses) {
  std::shuffle(addresses.begin(), addresses.end(), random);
  addresses.resize(1 + random() % addresses.size());
  const std::size_t split = 1 + random() % addresses.size();
  std::vector<std::string> localities;
  const auto locality = [&](std::size_t begin, std::size_t end) {
    std::vector<std::string> all;
    for (std::size_t i = begin; i < end; ++i)
      all.push_back(endpoint(addresses[i]));
    const std::size_t priority = localities.size();
    localities.push_back(absl::StrCat("{locality: {region: r, zone: z",
                                      priority,
                                      "}, load_balancing_weight: 1, priority: ",
                                      priority,
                                      ", lb_endpoints: [",
                                      absl::StrJoin(all, ", "),
                                      "]}"));
  };
  locality(0, split);
  if (split < addresses.size()) locality(split, addresses.size());
  return absl::StrCat("- {",
                      any("config.endpoint.v3.ClusterLoadAssignment"),
                      ", cluster_name: ",
                      cluster,
                      ", endpoints: [",
                      absl::StrJoin(localities, ", "),
                      "]}\n");
}

}  // namespace

const std::vector<std::string>& targets() {
  static const std::vector<std::string> all{"xds:///t0", "xds:///t1", "xds:///t2"};
  return all;
}

std::vector<xds::ResourceBytes> draw_resources(Random& random,
                                               const std::vector<std::string>& addresses) {
  std::string yaml = "resources:\n";
  for (const std::string& target : targets()) {
    const std::string name = target.substr(target.rfind('/') + 1);
    if (one_in(random, 20)) continue;  // This target has no listener.
    absl::StrAppend(&yaml, listener(name), routes(random, name));
  }
  absl::StrAppend(&yaml, aggregate(random));
  for (int i = 0; i < kClusters; ++i) {
    if (one_in(random, 12)) continue;
    absl::StrAppend(&yaml, eds_cluster(random, cluster_name(i)));
    absl::StrAppend(&yaml, endpoints(random, cluster_name(i), addresses));
  }
  auto parsed = xds::parse_resources_text(yaml, xds::Format::kYaml, "stress.yaml");
  SIGNALBOX_INVARIANT(parsed.ok(), "the stress writes what can be read");
  return *std::move(parsed);
}

}  // namespace signalbox::stress
