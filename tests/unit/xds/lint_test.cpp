// SPDX-License-Identifier: Apache-2.0
#include "xds/lint/lint.hpp"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include <catch2/catch.hpp>

namespace signalbox::xds {
namespace {

constexpr const char* kWorld = R"yaml(
resources:
  - "@type": type.googleapis.com/envoy.config.listener.v3.Listener
    name: orders
    api_listener:
      api_listener:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        rds: {route_config_name: orders-routes, config_source: {ads: {}}}
        http_filters:
          - name: sessions
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.stateful_session.v3.StatefulSession
              session_state:
                name: cookie
                typed_config:
                  "@type": type.googleapis.com/envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState
                  cookie: {name: session, path: /orders.v1.Orders/}
          - name: router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  - "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
    name: orders-routes
    virtual_hosts:
      - domains: [orders]
        routes:
          - match: {prefix: /orders.v1.Orders/Place}
            route: {cluster: all, ACTION}
          - match: {path: /orders.v1.Orders/Cancel}
            route: {weighted_clusters: {clusters: [{name: near, weight: 1}, {name: far, weight: 1}]}}
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: all
    cluster_type:
      name: envoy.clusters.aggregate
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig
        clusters: [near, far]
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: near
    type: EDS
    eds_cluster_config: {eds_config: {self: {}}}
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: far
    type: EDS
    eds_cluster_config: {eds_config: {self: {}}, service_name: far-hosts}
  - "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
    cluster_name: near
    endpoints:
      - locality: {zone: a}
        load_balancing_weight: 1
        lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]
  - "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
    cluster_name: far-hosts
    endpoints:
      - locality: {zone: b}
        load_balancing_weight: 1
        lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 80}}}}]
)yaml";

// The world after these replacements, each of which must be possible.
std::vector<std::string> warnings_of(
    const std::vector<std::pair<std::string, std::string>>& replacements,
    const std::string& action = "") {
  std::string text = kWorld;
  for (const auto& [from, to] : replacements) {
    INFO(from);
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
  }
  text = absl::StrReplaceAll(text, {{", ACTION", action.empty() ? "" : ", " + action}});
  const auto resources = parse_resources_text(text, Format::kYaml, "f");
  INFO(resources.status());
  REQUIRE(resources.ok());
  std::vector<std::string> texts;
  for (const LintWarning& warning : lint(*resources))
    texts.push_back(absl::StrCat(warning.resource, ": ", warning.text));
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("lint: a world that hangs together has no warnings", "[xds][lint]") {
  CHECK(warnings_of({}) == Texts{});
}

TEST_CASE("lint: names that lead nowhere", "[xds][lint]") {
  CHECK(warnings_of({{"cluster: all", "cluster: al"}}) ==
        Texts{"1: envoy.config.route.v3.RouteConfiguration \"orders-routes\": "
              "virtual_hosts[0].routes[0].route.cluster: the file has no Cluster \"al\": calls to "
              "it fail"});
  CHECK(warnings_of({{"name: near, weight", "name: nera, weight"}}) ==
        Texts{"1: envoy.config.route.v3.RouteConfiguration \"orders-routes\": "
              "virtual_hosts[0].routes[1].route.weighted_clusters.clusters[0].name: the file has "
              "no Cluster \"nera\": calls to it fail"});
  CHECK(warnings_of({{"service_name: far-hosts", "service_name: hosts"}}) ==
        Texts{"4: envoy.config.cluster.v3.Cluster \"far\": eds_cluster_config.service_name: the "
              "file has no ClusterLoadAssignment \"hosts\": calls fail"});
  CHECK(warnings_of({{"cluster_name: near", "cluster_name: naer"}}) ==
        Texts{"3: envoy.config.cluster.v3.Cluster \"near\": eds_cluster_config: the file has no "
              "ClusterLoadAssignment \"near\": calls fail"});
  CHECK(warnings_of({{"clusters: [near, far]", "clusters: [near, fra]"}}) ==
        Texts{"2: envoy.config.cluster.v3.Cluster \"all\": cluster_type.typed_config.clusters[1]: "
              "the file has no Cluster \"fra\": it is left out"});
  CHECK(warnings_of({{"clusters: [near, far]", "clusters: [x]"}}).back() ==
        "2: envoy.config.cluster.v3.Cluster \"all\": cluster_type.typed_config.clusters: the "
        "aggregate has no leaf in this file: calls fail");
  CHECK(warnings_of({{"route_config_name: orders-routes", "route_config_name: routes"}}) ==
        Texts{"0: envoy.config.listener.v3.Listener \"orders\": "
              "api_listener.api_listener.rds.route_config_name: the file has no "
              "RouteConfiguration \"routes\": calls fail",
              "1: envoy.config.route.v3.RouteConfiguration \"orders-routes\": no listener of the "
              "file leads here"});
}

TEST_CASE("lint: localities and clusters that get no calls", "[xds][lint][A27]") {
  const std::string cla = "5: envoy.config.endpoint.v3.ClusterLoadAssignment \"near\": ";
  const std::string none = cla + "endpoints: no endpoint can get calls: calls fail";
  CHECK(warnings_of({{"        load_balancing_weight: 1\n", ""}}) ==
        Texts{cla + "endpoints[0].load_balancing_weight: is not set: the locality gets no calls "
                    "(gRFC A27)",
              none});
  CHECK(warnings_of({{"load_balancing_weight: 1", "load_balancing_weight: 0"}}) ==
        Texts{cla + "endpoints[0].load_balancing_weight: is 0: the locality gets no calls (gRFC "
                    "A27)",
              none});
  CHECK(warnings_of({{"lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, "
                      "port_value: 80}}}}]",
                      "lb_endpoints: []"}}) == Texts{none});
}

TEST_CASE("lint: domains that no target asks for", "[xds][lint]") {
  const std::string rds = "1: envoy.config.route.v3.RouteConfiguration \"orders-routes\": ";
  CHECK(warnings_of({{"domains: [orders]", "domains: [order, \"ord*\", \"*\", ORDERS]"}}) ==
        Texts{rds + "virtual_hosts[0].domains[0]: no target asks for \"order\"; the targets that "
                    "come here: orders"});
}

TEST_CASE("lint: a session cookie whose path covers no route", "[xds][lint][A55]") {
  const auto with_path = [](const std::string& path) {
    return warnings_of({{"path: /orders.v1.Orders/", "path: " + path}});
  };
  for (const char* covered :
       {"/", "/orders.v1.Orders", "/orders.v1.Orders/Cancel", "/orders.v1.Orders/PlaceAll", "\"\""})
    CHECK(with_path(covered) == Texts{});
  for (const char* elsewhere : {"/shop.v1.Shop/", "/orders", "/orders.v1.Orders/Cancel/x"}) {
    INFO(elsewhere);
    REQUIRE(with_path(elsewhere).size() == 1);
    CHECK(with_path(elsewhere)[0] ==
          absl::StrCat("0: envoy.config.listener.v3.Listener \"orders\": "
                       "api_listener.api_listener.http_filters[0].typed_config.session_state."
                       "typed_config.cookie.path: no route has calls below \"",
                       elsewhere,
                       "\": no session is kept on its host"));
  }
}

TEST_CASE("lint: fields that are set and not read", "[xds][lint]") {
  struct Row {
    std::string action;
    std::string warning;
  };

  const auto row = GENERATE(values<Row>({
      {"timeout: 1s",
       "timeout: signalbox does not read it; max_stream_duration ends calls (gRFC A31)"},
      {"retry_policy: {retry_on: \"5xx,unavailabel\"}",
       "retry_policy.retry_on: signalbox does not know \"5xx\", \"unavailabel\", so calls are not "
       "retried; it knows cancelled, deadline-exceeded, internal, resource-exhausted, unavailable "
       "(gRFC A44)"},
      {"retry_policy: {retry_on: \"unavailable, 5xx\"}",
       "retry_policy.retry_on: signalbox does not know \"5xx\"; it knows cancelled, "
       "deadline-exceeded, internal, resource-exhausted, unavailable (gRFC A44)"},
      {"retry_policy: {retry_on: unavailable, num_retries: 9}",
       "retry_policy.num_retries: signalbox retries at most 4 times (gRFC A6), found 9"},
      {"max_stream_duration: {grpc_timeout_header_offset: 1s}",
       "max_stream_duration.grpc_timeout_header_offset: signalbox does not read it"},
      {"hash_policy: [{header: {header_name: x}}, {cookie: {}}]",
       "hash_policy[1].cookie: signalbox cannot hash this: the entry is left out"},
  }));
  CHECK(warnings_of({}, row.action) ==
        Texts{absl::StrCat("1: envoy.config.route.v3.RouteConfiguration \"orders-routes\": "
                           "virtual_hosts[0].routes[0].route.",
                           row.warning)});
}

TEST_CASE("lint: routes that signalbox cannot do", "[xds][lint]") {
  CHECK(warnings_of({{"route: {cluster: all, ACTION}", "redirect: {}"}}) ==
        Texts{"1: envoy.config.route.v3.RouteConfiguration \"orders-routes\": "
              "virtual_hosts[0].routes[0].redirect: signalbox cannot do this: the calls of this "
              "route fail"});
  CHECK(warnings_of({{"prefix: /orders.v1.Orders/Place",
                      "prefix: /orders.v1.Orders/Place, query_parameters: [{name: x}]"}}) ==
        Texts{"1: envoy.config.route.v3.RouteConfiguration \"orders-routes\": "
              "virtual_hosts[0].routes[0].match.query_parameters: signalbox cannot do this: the "
              "route is left out"});
}

TEST_CASE("lint: places are the file's lines", "[xds][lint]") {
  const auto places = [](const std::string& text, const std::string& file_name) {
    const auto document = parse_file_document(text, format_of(file_name), file_name);
    REQUIRE(document.ok());
    const auto read = read_resources(*document, file_name);
    REQUIRE(read.ok());
    CHECK(read->resources.size() == read->places.size());
    return read->places;
  };
  const std::string type = R"("@type": type.googleapis.com/envoy.config.cluster.v3.Cluster)";
  CHECK(places("resources:\n  - {" + type + ", name: a}\n\n  - {" + type + ", name: b}\n",
               "f.yaml") ==
        Texts{"f.yaml: line 2: resources[0]: ", "f.yaml: line 4: resources[1]: "});
  CHECK(places(R"({"resources": [{"name": "a",
                   "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster"}]})",
               "f.json") == Texts{"f.json: resources[0]: "});
}

}  // namespace signalbox::xds
