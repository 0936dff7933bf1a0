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

// The warnings of kWorld after these replacements, with `action` in its route. kWorld must contain
// each replaced text.
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

// The warnings of kWorld with more fields in the cluster "near".
Texts warnings_with(const std::string& fields) {
  const std::string eds = "    eds_cluster_config: {eds_config: {self: {}}}\n";
  return warnings_of({{eds, absl::StrCat(eds, fields)}});
}

constexpr const char* kFirstCheck =
    "3: envoy.config.cluster.v3.Cluster \"near\": health_checks[0].";

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
  // Listeners that the bootstrap's template may have named "grpc/%s" are asked for by other names.
  CHECK(warnings_of({{"  name: orders\n", "  name: grpc/orders\n"},
                     {"domains: [orders]", "domains: [order]"}}) == Texts{});
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
      {"hash_policy: [{filter_state: {key: io.grpc.channel_id}}, {filter_state: {key: x}}]",
       "hash_policy[1].filter_state.key: signalbox cannot hash this: the entry is left out"},
  }));
  CHECK(warnings_of({}, row.action) ==
        Texts{absl::StrCat("1: envoy.config.route.v3.RouteConfiguration \"orders-routes\": "
                           "virtual_hosts[0].routes[0].route.",
                           row.warning)});
}

TEST_CASE("lint: zone-aware routing that has no effect", "[xds][lint][ENV-39]") {
  const std::string near = "3: envoy.config.cluster.v3.Cluster \"near\": ";
  const auto policy = [](const std::string& type, const std::string& fields) {
    return absl::StrCat(
        "{policies: [{typed_extension_config: {name: x, typed_config: {\"@type\": "
        "type.googleapis.com/envoy.extensions.load_balancing_policies.",
        type,
        ", ",
        fields,
        "}}}]}");
  };
  const auto round_robin = [&](const std::string& zones) {
    return policy("round_robin.v3.RoundRobin",
                  "locality_lb_config: {zone_aware_lb_config: " + zones + "}");
  };
  const auto below_wrr_locality = [&](const std::string& zones) {
    return policy("wrr_locality.v3.WrrLocality", "endpoint_picking_policy: " + round_robin(zones));
  };
  const std::string field = "    load_balancing_policy: ";

  CHECK(warnings_with(field + round_robin("{force_local_zone: {min_size: 2}}") + "\n") == Texts{});
  CHECK(warnings_with(field + below_wrr_locality("{fail_traffic_on_panic: true}") + "\n") ==
        Texts{});
  for (const char* zones : {"{min_cluster_size: 3}",
                            "{fail_traffic_on_panic: true, routing_enabled: {value: 1}}",
                            "{force_local_zone: {}}",
                            "{locality_basis: HEALTHY_HOSTS_WEIGHT}"}) {
    CHECK(warnings_with(field + below_wrr_locality(zones) + "\n") ==
          Texts{near +
                "load_balancing_policy.policies[0].typed_extension_config.typed_config."
                "endpoint_picking_policy.policies[0].typed_extension_config.typed_config."
                "locality_lb_config.zone_aware_lb_config: below WrrLocality, which chooses the "
                "locality, signalbox reads fail_traffic_on_panic alone"});
  }

  const std::string beside = "    common_lb_config: {zone_aware_lb_config: {}}\n";
  CHECK(warnings_with(beside) == Texts{});
  CHECK(warnings_with(beside + "    lb_policy: MAGLEV\n") ==
        Texts{near + "common_lb_config.zone_aware_lb_config: signalbox does not read it: MAGLEV "
                     "uses the endpoints of all localities"});
  const std::string decides = ": signalbox does not read it: load_balancing_policy decides";
  CHECK(warnings_with(beside + field + round_robin("{}") + "\n") ==
        Texts{near + "common_lb_config.zone_aware_lb_config" + decides});
  CHECK(warnings_with("    common_lb_config: {locality_weighted_lb_config: {}}\n" + field +
                      round_robin("{}") + "\n") ==
        Texts{near + "common_lb_config.locality_weighted_lb_config" + decides});
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

TEST_CASE("lint: fields of routes without effect", "[xds][lint]") {
  const std::string rds = "1: envoy.config.route.v3.RouteConfiguration \"orders-routes\": ";
  CHECK(warnings_of({{"name: near, weight: 1", "name: near, weight: 1, cluster_header: x"}}) ==
        Texts{rds + "virtual_hosts[0].routes[1].route.weighted_clusters.clusters[0]."
                    "cluster_header: signalbox does not read it: calls go to the cluster of the "
                    "entry's name"});
  CHECK(warnings_of({{"    name: orders-routes\n",
                      "    name: orders-routes\n    cluster_specifier_plugins: [{}]\n"}}) ==
        Texts{rds + "cluster_specifier_plugins: signalbox does not read it: a route that names a "
                    "plugin is left out"});
  CHECK(warnings_of({{"{prefix: /orders.v1.Orders/Place}",
                      "{prefix: /orders.v1.Orders/Place, grpc: {}}"}}) ==
        Texts{rds + "virtual_hosts[0].routes[0].match.grpc: signalbox does not read it: the route "
                    "matches calls of every protocol"});
  CHECK(warnings_of({{"{prefix: /orders.v1.Orders/Place}",
                      "{prefix: /orders.v1.Orders/Place, runtime_fraction: {runtime_key: k}}"}}) ==
        Texts{rds + "virtual_hosts[0].routes[0].match.runtime_fraction.runtime_key: signalbox does "
                    "not read it: default_value is the fraction"});
}

TEST_CASE("lint: connections of endpoints are TCP", "[xds][lint]") {
  CHECK(warnings_of({{"{address: 10.0.0.1", "{protocol: TCP, address: 10.0.0.1"}}) == Texts{});
  CHECK(warnings_of({{"{address: 10.0.0.1", "{protocol: UDP, address: 10.0.0.1"}}) ==
        Texts{"5: envoy.config.endpoint.v3.ClusterLoadAssignment \"near\": "
              "endpoints[0].lb_endpoints[0].endpoint.address.socket_address.protocol: signalbox "
              "does not read it: connections use TCP"});
}

TEST_CASE("lint: no resolver is asked for the address of an endpoint", "[xds][lint]") {
  CHECK(warnings_of({{"{address: 10.0.0.1", "{resolver_name: r, address: 10.0.0.1"}}) ==
        Texts{"5: envoy.config.endpoint.v3.ClusterLoadAssignment \"near\": "
              "endpoints[0].lb_endpoints[0].endpoint.address.socket_address.resolver_name: "
              "signalbox does not read it: the address is used as it stands"});
}

namespace {

// More fields of a LOGICAL_DNS cluster that replaces "near" in kWorld: in its load_assignment, its
// locality, its LbEndpoint, and the endpoint.
struct Dns {
  std::string assignment;
  std::string locality;
  std::string entry;
  std::string endpoint;
};

Texts warnings_with_dns(const Dns& more) {
  const std::string address = "address: {socket_address: {address: near.example, port_value: 80}}";
  const std::string cluster = absl::StrCat("    type: LOGICAL_DNS\n    load_assignment: {",
                                           more.assignment,
                                           "endpoints: [{",
                                           more.locality,
                                           "lb_endpoints: [{",
                                           more.entry,
                                           "endpoint: {",
                                           more.endpoint,
                                           address,
                                           "}}]}]}\n");
  return warnings_of(
      {{"    type: EDS\n    eds_cluster_config: {eds_config: {self: {}}}\n", cluster}});
}

}  // namespace

TEST_CASE("lint: fields of a LOGICAL_DNS cluster's endpoint", "[xds][lint][A37]") {
  struct Row {
    Dns more;
    std::string field;
  };

  const std::string entry = "endpoints[0].lb_endpoints[0].";
  const auto row = GENERATE_COPY(values<Row>({
      {{.assignment =
            "policy: {drop_overloads: [{category: c, drop_percentage: {numerator: 1}}]}, "},
       "policy.drop_overloads"},
      {{.assignment = "policy: {overprovisioning_factor: 100}, "},
       "policy.overprovisioning_factor"},
      {{.entry = "health_status: DRAINING, "}, entry + "health_status"},
      {{.endpoint = "hostname: h, "}, entry + "endpoint.hostname"},
      {{.endpoint = "health_check_config: {port_value: 1}, "},
       entry + "endpoint.health_check_config"},
      {{.endpoint = "additional_addresses: [{address: {socket_address: {address: 10.0.0.3, "
                    "port_value: 80}}}], "},
       entry + "endpoint.additional_addresses"},
  }));
  INFO(row.field);
  CHECK(warnings_with_dns(row.more) ==
        Texts{absl::StrCat("3: envoy.config.cluster.v3.Cluster \"near\": load_assignment.",
                           row.field,
                           ": signalbox does not read it: the endpoint of a LOGICAL_DNS cluster is "
                           "the address alone")});
  CHECK(warnings_with_dns({.locality = "locality: {zone: a}, load_balancing_weight: 2, ",
                           .entry = "load_balancing_weight: 2, "}) == Texts{});
}

TEST_CASE("lint: health checks that are left out", "[xds][lint]") {
  struct Row {
    std::string check;
    std::string field;
  };

  const auto row = GENERATE(values<Row>({
      {"custom_health_check: {}", "custom_health_check"},
      {"http_health_check: {path: /, codec_client_type: HTTP2}",
       "http_health_check.codec_client_type"},
      {"http_health_check: {path: /, method: HEAD}", "http_health_check.method"},
      {"http_health_check: {path: /, receive: [{text: \"00\"}]}", "http_health_check.receive"},
      {"http_health_check: {path: /, request_headers_to_add: [{}]}",
       "http_health_check.request_headers_to_add"},
      {"http_health_check: {path: /, send: {text: \"00\"}}", "http_health_check.send"},
      {"http_health_check: {path: /, service_name_matcher: {prefix: x}}",
       "http_health_check.service_name_matcher"},
  }));
  CHECK(warnings_with("    health_checks: [{" + row.check + "}]\n") ==
        Texts{absl::StrCat(
            kFirstCheck,
            row.field,
            ": signalbox cannot do this: the health check is left out, as if it were absent")});
}

TEST_CASE("lint: health checks that are left out over TLS", "[xds][lint]") {
  const std::string tls =
      "    transport_socket: {typed_config: {\"@type\": type.googleapis.com/"
      "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext}}\n";
  const std::string left_out =
      ": signalbox cannot do this over TLS: the health check is left out, as if it were absent";
  const std::string http =
      "    health_checks: [{http_health_check: {path: /, codec_client_type: HTTP1, method: "
      "GET}}]\n";
  CHECK(warnings_with(http) == Texts{});
  CHECK(warnings_with(http + tls) ==
        Texts{absl::StrCat(kFirstCheck, "http_health_check", left_out)});
  CHECK(warnings_with("    health_checks: [{tcp_health_check: {}}]\n" + tls) == Texts{});
  CHECK(warnings_with("    health_checks: [{tcp_health_check: {send: {text: \"00\"}}}]\n" + tls) ==
        Texts{absl::StrCat(kFirstCheck, "tcp_health_check.send", left_out)});
  CHECK(warnings_with("    health_checks: [{tcp_health_check: {receive: [{text: \"00\"}]}}]\n" +
                      tls) ==
        Texts{absl::StrCat(kFirstCheck, "tcp_health_check.receive", left_out)});
}

TEST_CASE("lint: streams of load reports are read, so nothing is said of them",
          "[xds][lint][A58]") {
  CHECK(warnings_with(
            "    load_balancing_policy:\n      policies:\n      - typed_extension_config: "
            "{typed_config: {\"@type\": type.googleapis.com/envoy.extensions."
            "load_balancing_policies.client_side_weighted_round_robin.v3."
            "ClientSideWeightedRoundRobin, enable_oob_load_report: true, oob_reporting_period: "
            "1s}}\n") == Texts{});
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
