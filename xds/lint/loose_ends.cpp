// SPDX-License-Identifier: Apache-2.0
//
// Finds references between the resources of a file that lead nowhere, route configurations that no
// listener uses, and endpoints that can get no calls.
//
//   listener ─▶ routes ─▶ cluster ─▶ leaves ─▶ endpoints
//      │           └─ domains must match a target, which is the name of a listener
//      └─ the path of a session cookie must cover a route
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "signalbox/envoy/config/listener/v3/listener.pb.h"
#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "signalbox/envoy/extensions/clusters/aggregate/v3/cluster.pb.h"
#include "signalbox/envoy/extensions/filters/http/stateful_session/v3/stateful_session.pb.h"
#include "signalbox/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "signalbox/envoy/extensions/http/stateful_session/cookie/v3/cookie.pb.h"
#include "xds/depend/virtual_host.hpp"
#include "xds/lint/lint.hpp"
#include "xds/percent_encoding.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using ListenerProto = envoy::config::listener::v3::Listener;
using RoutesProto = envoy::config::route::v3::RouteConfiguration;
using RouteProto = envoy::config::route::v3::Route;
using ClusterProto = envoy::config::cluster::v3::Cluster;
using EndpointsProto = envoy::config::endpoint::v3::ClusterLoadAssignment;
using AggregateProto = envoy::extensions::clusters::aggregate::v3::ClusterConfig;
using ManagerProto =
    envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
using SessionProto = envoy::extensions::filters::http::stateful_session::v3::StatefulSession;
using CookieProto = envoy::extensions::http::stateful_session::cookie::v3::CookieBasedSessionState;

template <typename Message>
std::optional<Message> unpacked(const ::google::protobuf::Any& any) {
  Message message;
  if (any.type_url() != type_url_of<Message>() || !message.ParseFromString(any.value()))
    return std::nullopt;
  return message;
}

template <typename Message>
Message decoded(const ResourceBytes& resource) {
  Message message;
  message.ParseFromString(resource.bytes);  // Cannot fail: read_resources() made the bytes.
  return message;
}

// A route configuration: a resource of its own, or inline in a listener.
struct Routes {
  std::size_t resource = 0;
  // The path of this route configuration in the resource, with a dot at the end; or empty.
  std::string path;
  RoutesProto proto;
  std::vector<std::string> targets = {};  // The listeners that use this configuration.
};

struct Session {
  std::size_t resource = 0;
  std::string path;
  std::string cookie_path;
  std::size_t routes = 0;  // The index of the session's route configuration in `routes_`.
};

// Whether the route can match a path that the cookie's path covers (RFC 6265 5.1.4).
bool may_cover(const std::string& cookie_path, const RouteProto& route) {
  const auto& match = route.match();
  const auto is_below = [](const std::string& path, const std::string& prefix) {
    return absl::StartsWith(path, prefix) &&
           (path.size() == prefix.size() || prefix.back() == '/' || path[prefix.size()] == '/');
  };
  if (cookie_path.empty()) return true;
  if (match.has_path()) return is_below(match.path(), cookie_path);
  if (!match.has_prefix()) return true;  // A regular expression may match any path.
  return is_below(match.prefix(), cookie_path) || absl::StartsWith(cookie_path, match.prefix());
}

class World {
 public:
  explicit World(const std::vector<ResourceBytes>& resources)
      : resources_(resources), findings_(resources.size()) {
    for (std::size_t i = 0; i < resources.size(); ++i) {
      const auto type = resource_type_of(resources[i].type_url);
      if (type == ResourceType::kCluster) clusters_.insert(resources[i].name);
      if (type == ResourceType::kEndpoints) endpoints_.insert(resources[i].name);
      if (type != ResourceType::kRouteConfig) continue;
      routes_of_name_[resources[i].name] = routes_.size();
      routes_.push_back({i, "", decoded<RoutesProto>(resources[i])});
    }
  }

  std::vector<std::vector<LintFinding>> look() {
    for (std::size_t i = 0; i < resources_.size(); ++i) {
      const auto type = resource_type_of(resources_[i].type_url);
      if (type == ResourceType::kListener) look_at_listener(i);
      if (type == ResourceType::kCluster) look_at_cluster(i);
      if (type == ResourceType::kEndpoints) look_at_endpoints(i);
    }
    for (const Routes& routes : routes_)
      look_at_routes(routes);
    for (const Session& session : sessions_)
      look_at_session(session);
    return std::move(findings_);
  }

 private:
  void add(std::size_t resource, const std::string& path, const std::string& what) {
    findings_[resource].push_back({path, what});
  }

  // --- listeners -----------------------------------------------------------

  void look_at_listener(std::size_t index) {
    const auto listener = decoded<ListenerProto>(resources_[index]);
    const auto manager = unpacked<ManagerProto>(listener.api_listener().api_listener());
    if (!manager) return;
    const std::string path = "api_listener.api_listener.";
    std::optional<std::size_t> routes;
    if (manager->has_route_config()) {
      routes = routes_.size();
      routes_.push_back({index, path + "route_config.", manager->route_config()});
    } else {
      const std::string& name = manager->rds().route_config_name();
      const auto found = routes_of_name_.find(name);
      if (found == routes_of_name_.end()) {
        add(index,
            path + "rds.route_config_name",
            absl::StrCat("the file has no RouteConfiguration \"", name, "\": calls fail"));
        return;
      }
      routes = found->second;
    }
    routes_[*routes].targets.push_back(listener.name());
    for (int i = 0; i < manager->http_filters_size(); ++i) {
      const auto session = unpacked<SessionProto>(manager->http_filters(i).typed_config());
      if (!session) continue;
      const auto state = unpacked<CookieProto>(session->session_state().typed_config());
      if (!state) continue;
      sessions_.push_back(
          {index,
           absl::StrCat(
               path, "http_filters[", i, "].typed_config.session_state.typed_config.cookie.path"),
           state->cookie().path(),
           *routes});
    }
  }

  void look_at_session(const Session& session) {
    for (const auto& host : routes_[session.routes].proto.virtual_hosts()) {
      if (std::ranges::any_of(host.routes(), [&](const RouteProto& route) {
            return may_cover(session.cookie_path, route);
          })) {
        return;
      }
    }
    add(session.resource,
        session.path,
        absl::StrCat("no route has calls below \"",
                     session.cookie_path,
                     "\": no session is kept on its host"));
  }

  // --- routes --------------------------------------------------------------

  void look_at_routes(const Routes& routes) {
    if (routes.targets.empty())
      return add(routes.resource, "", "no listener of the file leads here");
    for (int h = 0; h < routes.proto.virtual_hosts_size(); ++h) {
      const auto& host = routes.proto.virtual_hosts(h);
      const std::string path = absl::StrCat(routes.path, "virtual_hosts[", h, "]");
      for (int d = 0; d < host.domains_size(); ++d)
        look_at_domain(routes, host.domains(d), absl::StrCat(path, ".domains[", d, "]"));
      for (int r = 0; r < host.routes_size(); ++r) {
        look_at_action(
            routes.resource, host.routes(r).route(), absl::StrCat(path, ".routes[", r, "].route."));
      }
    }
  }

  // Takes the name of a listener for the authority of its target, as it is by the default template
  // of listener names in the bootstrap. A name that would be encoded as an authority, such as
  // "grpc/orders" or an xdstp: name, may come from another template (A47). The domains for its
  // calls are not checked.
  void look_at_domain(const Routes& routes, const std::string& domain, const std::string& path) {
    const bool is_asked_for = std::ranges::any_of(routes.targets, [&](const std::string& target) {
      return percent_encode_authority(target) != target || domain_matches(domain, target);
    });
    if (is_asked_for) return;
    add(routes.resource,
        path,
        absl::StrCat("no target asks for \"",
                     domain,
                     "\"; the targets that come here: ",
                     absl::StrJoin(routes.targets, ", ")));
  }

  void look_at_action(std::size_t resource,
                      const envoy::config::route::v3::RouteAction& action,
                      const std::string& path) {
    if (action.has_cluster()) look_for_cluster(resource, action.cluster(), path + "cluster");
    for (int i = 0; i < action.weighted_clusters().clusters_size(); ++i) {
      look_for_cluster(resource,
                       action.weighted_clusters().clusters(i).name(),
                       absl::StrCat(path, "weighted_clusters.clusters[", i, "].name"));
    }
  }

  void look_for_cluster(std::size_t resource, const std::string& name, const std::string& path) {
    if (clusters_.contains(name)) return;
    add(resource, path, absl::StrCat("the file has no Cluster \"", name, "\": calls to it fail"));
  }

  // --- clusters and endpoints ----------------------------------------------

  void look_at_cluster(std::size_t index) {
    const auto cluster = decoded<ClusterProto>(resources_[index]);
    if (cluster.has_cluster_type()) return look_at_aggregate(index, cluster);
    if (cluster.type() != ClusterProto::EDS) return;
    const std::string& service = cluster.eds_cluster_config().service_name();
    const std::string& name = service.empty() ? cluster.name() : service;
    if (endpoints_.contains(name)) return;
    add(index,
        service.empty() ? "eds_cluster_config" : "eds_cluster_config.service_name",
        absl::StrCat("the file has no ClusterLoadAssignment \"", name, "\": calls fail"));
  }

  void look_at_aggregate(std::size_t index, const ClusterProto& cluster) {
    const auto aggregate = unpacked<AggregateProto>(cluster.cluster_type().typed_config());
    if (!aggregate) return;
    bool any = false;
    for (int i = 0; i < aggregate->clusters_size(); ++i) {
      if (clusters_.contains(aggregate->clusters(i))) {
        any = true;
        continue;
      }
      add(index,
          absl::StrCat("cluster_type.typed_config.clusters[", i, "]"),
          absl::StrCat("the file has no Cluster \"", aggregate->clusters(i), "\": it is left out"));
    }
    if (!any) {
      add(index,
          "cluster_type.typed_config.clusters",
          "the aggregate has no leaf in this file: calls fail");
    }
  }

  void look_at_endpoints(std::size_t index) {
    const auto endpoints = decoded<EndpointsProto>(resources_[index]);
    int that_count = 0;
    for (int i = 0; i < endpoints.endpoints_size(); ++i) {
      const auto& locality = endpoints.endpoints(i);
      if (locality.load_balancing_weight().value() > 0) {
        that_count += locality.lb_endpoints_size();
        continue;
      }
      add(index,
          absl::StrCat("endpoints[", i, "].load_balancing_weight"),
          absl::StrCat(locality.has_load_balancing_weight() ? "is 0" : "is not set",
                       ": the locality gets no calls (gRFC A27)"));
    }
    if (that_count == 0) add(index, "endpoints", "no endpoint can get calls: calls fail");
  }

  const std::vector<ResourceBytes>& resources_;
  std::vector<std::vector<LintFinding>> findings_;
  std::set<std::string> clusters_;
  std::set<std::string> endpoints_;
  std::map<std::string, std::size_t> routes_of_name_;
  std::vector<Routes> routes_;
  std::vector<Session> sessions_;
};

}  // namespace

std::vector<std::vector<LintFinding>> loose_ends(const std::vector<ResourceBytes>& resources) {
  return World(resources).look();
}

}  // namespace signalbox::xds
