// SPDX-License-Identifier: Apache-2.0
#include "xds/resource_file.hpp"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "signalbox/envoy/config/listener/v3/listener.pb.h"
#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "signalbox/envoy/extensions/clusters/aggregate/v3/cluster.pb.h"
#include "signalbox/envoy/extensions/filters/http/router/v3/router.pb.h"
#include "signalbox/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "signalbox/envoy/extensions/upstreams/http/v3/http_protocol_options.pb.h"
#include "xds/document.hpp"
#include "xds/limits.hpp"
#include "xds/type_url.hpp"
#include "xds/utf8.hpp"

namespace signalbox::xds::resource_file_test {
namespace {

using envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;

constexpr const char* kWorld = R"yaml(
resources:
  - "@type": type.googleapis.com/envoy.config.listener.v3.Listener
    name: orders
    api_listener:
      api_listener:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        rds: {route_config_name: orders-routes, config_source: {ads: {}}}
        common_http_protocol_options: {max_stream_duration: 2.5s}
        http_filters:
          - name: router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  - "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
    name: orders-routes
    virtualHosts:
      - domains: ["*"]
        routes: [{match: {prefix: ""}, route: {cluster: orders}}]
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: orders
    clusterType:
      name: envoy.clusters.aggregate
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig
        clusters: [primary, secondary]
    upstream_config:
      name: envoy.extensions.upstreams.http.v3.HttpProtocolOptions
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        common_http_protocol_options: {idle_timeout: 10s}
    common_lb_config: {override_host_status: {statuses: [HEALTHY, DRAINING]}}
  - "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
    cluster_name: primary
    endpoints:
      - locality: &here {region: "1", zone: a}
        load_balancing_weight: 3
        lb_endpoints:
          - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 80}}}
            health_status: DEGRADED
      - locality: *here
        priority: 1
)yaml";

std::vector<ResourceBytes> parse(absl::string_view text, Format format = Format::kYaml) {
  auto resources = parse_resources_text(text, format, "file");
  INFO(resources.status().message());
  REQUIRE(resources.ok());
  return *resources;
}

std::string error_of(absl::string_view text, Format format = Format::kYaml) {
  const auto resources = parse_resources_text(text, format, "file");
  REQUIRE_FALSE(resources.ok());
  CHECK(resources.status().code() == absl::StatusCode::kInvalidArgument);
  return std::string(resources.status().message());
}

template <typename Message>
Message decode(const std::string& bytes) {
  Message message;
  REQUIRE(message.ParseFromString(bytes));
  return message;
}

// A file with one cluster, which has the lines `more`.
std::string cluster(absl::string_view more) {
  return absl::StrCat("resources:\n- '@type': ", kClusterTypeUrl, "\n  name: a\n", more);
}

TEST_CASE("resource_file: keeps order, type URLs and names", "[xds]") {
  const auto resources = parse(kWorld);
  REQUIRE(resources.size() == 4);
  CHECK(resources[0].type_url == kListenerTypeUrl);
  CHECK(resources[0].name == "orders");
  CHECK(resources[1].type_url == kRouteConfigurationTypeUrl);
  CHECK(resources[1].name == "orders-routes");
  CHECK(resources[2].type_url == kClusterTypeUrl);
  CHECK(resources[2].name == "orders");
  CHECK(resources[3].type_url == kClusterLoadAssignmentTypeUrl);
  CHECK(resources[3].name == "primary");
}

TEST_CASE("resource_file: resolves an Any inside an Any", "[xds][A27]") {
  const auto listener = decode<envoy::config::listener::v3::Listener>(parse(kWorld)[0].bytes);
  const auto& packed = listener.api_listener().api_listener();
  CHECK(packed.type_url() == type_url_of<HttpConnectionManager>());

  const auto manager = decode<HttpConnectionManager>(packed.value());
  CHECK(manager.rds().route_config_name() == "orders-routes");
  CHECK(manager.rds().config_source().has_ads());
  CHECK(manager.common_http_protocol_options().max_stream_duration().seconds() == 2);
  CHECK(manager.common_http_protocol_options().max_stream_duration().nanos() == 500'000'000);
  REQUIRE(manager.http_filters_size() == 1);
  CHECK(manager.http_filters(0).typed_config().type_url() ==
        type_url_of<envoy::extensions::filters::http::router::v3::Router>());
}

TEST_CASE("resource_file: takes both spellings of a field, and enum names", "[xds]") {
  const auto resources = parse(kWorld);
  const auto routes = decode<envoy::config::route::v3::RouteConfiguration>(resources[1].bytes);
  CHECK(routes.virtual_hosts(0).routes(0).match().path_specifier_case() ==
        envoy::config::route::v3::RouteMatch::kPrefix);
  CHECK(routes.virtual_hosts(0).routes(0).route().cluster() == "orders");

  const auto orders = decode<envoy::config::cluster::v3::Cluster>(resources[2].bytes);
  const auto aggregate = decode<envoy::extensions::clusters::aggregate::v3::ClusterConfig>(
      orders.cluster_type().typed_config().value());
  CHECK(aggregate.clusters_size() == 2);
  const auto& statuses = orders.common_lb_config().override_host_status();
  REQUIRE(statuses.statuses_size() == 2);
  CHECK(statuses.statuses(1) == envoy::config::core::v3::DRAINING);
  const auto upstream = decode<envoy::extensions::upstreams::http::v3::HttpProtocolOptions>(
      orders.upstream_config().typed_config().value());
  CHECK(upstream.common_http_protocol_options().idle_timeout().seconds() == 10);
}

TEST_CASE("resource_file: expands aliases and keeps quoted numbers strings", "[xds]") {
  const auto endpoints =
      decode<envoy::config::endpoint::v3::ClusterLoadAssignment>(parse(kWorld)[3].bytes);
  REQUIRE(endpoints.endpoints_size() == 2);
  CHECK(endpoints.endpoints(0).locality().region() == "1");
  CHECK(endpoints.endpoints(0).load_balancing_weight().value() == 3);
  CHECK(endpoints.endpoints(0).lb_endpoints(0).health_status() ==
        envoy::config::core::v3::DEGRADED);
  CHECK(endpoints.endpoints(1).locality().zone() == "a");
  CHECK(endpoints.endpoints(1).priority() == 1);
}

TEST_CASE("resource_file: JSON and YAML say the same", "[xds]") {
  const std::string json = absl::StrCat(R"({"resources": [{"name": "a", "type": "EDS", "@type": ")",
                                        kClusterTypeUrl,
                                        R"(", "connect_timeout": "1s"}]})");
  const auto from_json = parse(json, Format::kJson);
  CHECK(from_json == parse(cluster("  type: EDS\n  connectTimeout: 1s\n")));
  CHECK(from_json == parse(json, Format::kYaml));
}

TEST_CASE("resource_file: an empty list is no error", "[xds]") {
  CHECK(parse("resources: []").empty());
  CHECK(parse(R"({"resources": []})", Format::kJson).empty());
}

TEST_CASE("resource_file: the ending of a name decides on the format", "[xds]") {
  CHECK(format_of("a.json") == Format::kJson);
  CHECK(format_of("a.JSON") == Format::kJson);
  CHECK(format_of("a.yaml") == Format::kYaml);
  CHECK(format_of("a.yml") == Format::kYaml);
  CHECK(format_of("json") == Format::kYaml);
}

TEST_CASE("resource_file: says what is wrong and where", "[xds]") {
  struct Row {
    std::string when;
    std::string text;
    std::vector<std::string> told;
  };

  std::string deep_struct = "{}";
  for (int level = 0; level < 50; ++level)
    deep_struct = "{a: " + deep_struct + "}";
  const std::string deep(200, '[');
  const std::string closing(200, ']');
  const auto row = GENERATE_COPY(values<Row>({
      {"the YAML is broken", "resources:\n  - [", {"file: line "}},
      {"a second document follows",
       "resources: []\n---\nresources: []",
       {"file: ", "found more than one"}},
      {"a comma stands where none can", ",", {"file: ", "found more than one"}},
      {"a comma follows", "resources: []\n...\n!,A?", {"file: "}},
      {"there is nothing", "", {"file: ", "found 0"}},
      {"there is no list", "clusters: []", {"file: ", "resources"}},
      {"the list is none", "resources: 3", {"file: ", "resources"}},
      {"a key occurs twice", "resources: []\nresources: []", {"line 2", "resources", "twice"}},
      {"it is not UTF-8",
       "resources:\n- name: \"\xff\"",
       {"line 2: must be UTF-8, found \"- name: \\\"\\377"}},
      {"a character of several bytes is escaped",
       "resources:\n- \"\\é\"",
       {"file: line 2: unknown escape character: "}},
      {"an element is no object", "resources:\n- 3", {"file: line 2: resources[0]", "number"}},
      {"@type is missing", "resources:\n- {name: a}", {"line 2: resources[0]", "@type"}},
      {"@type is no resource",
       "resources:\n- '@type': type.googleapis.com/xds.type.v3.TypedStruct",
       {"line 2: resources[0]", "TypedStruct", "no resource", std::string(kClusterTypeUrl)}},
      {"@type is in our own spelling",
       "resources:\n- '@type': type.googleapis.com/signalbox.envoy.config.cluster.v3.Cluster",
       {"resources[0]", "no resource"}},
      {"a field is unknown", cluster("  lb_polcy: RING_HASH\n"), {"resources[0]", "lb_polcy"}},
      {"a field below is unknown",
       cluster("  eds_cluster_config: {eds_config: {adz: {}}}\n"),
       {"resources[0]", "eds_cluster_config.eds_config", "adz"}},
      {"a duration is a number",
       cluster("  connect_timeout: 2\n"),
       {"Cluster: connect_timeout: expected text such as \"2s\" or \"0.5s\", found 2"}},
      {"a duration in a route is a number",
       "resources:\n- '@type': type.googleapis.com/envoy.config.route.v3.RouteConfiguration\n"
       "  virtual_hosts: [{routes: [{route: {max_stream_duration: {max_stream_duration: 2}}}]}]",
       {"max_stream_duration: expected text such as \"2s\" or \"0.5s\", found 2"}},
      {"a duration has no unit",
       cluster("  connect_timeout: \"2\"\n"),
       {"connect_timeout: expected text such as \"2s\" or \"0.5s\", the text must end with s"}},
      {"a duration has another unit",
       cluster("  connect_timeout: 2ms\n"),
       {"connect_timeout: expected text such as \"2s\" or \"0.5s\", found another text"}},
      {"a value is a list",
       cluster("  connect_timeout: [2s]\n"),
       {"connect_timeout: expected one value, found a list"}},
      {"a number is text",
       cluster("  circuit_breakers: {thresholds: [{max_requests: many}]}\n"),
       {"circuit_breakers.thresholds[0].max_requests.value: expected a whole number from 0 to "
        "4294967295, found \"many\""}},
      {"text is a number",
       cluster("  eds_cluster_config: {service_name: 5}\n"),
       {"eds_cluster_config.service_name: expected text, found 5"}},
      {"an object is a number",
       cluster("  circuit_breakers: 3\n"),
       {"circuit_breakers: expected a value of envoy.config.cluster.v3.CircuitBreakers, found 3"}},
      {"an enum value is unknown",
       cluster("  type: DNS\n"),
       {"resources[0]",
        "type: expected a value of envoy.config.cluster.v3.Cluster.DiscoveryType, found \"DNS\""}},
      {"two of a oneof are set",
       cluster("  type: EDS\n  cluster_type: {name: x}\n"),
       {"resources[0]", "oneof"}},
      {"a field in an Any is unknown",
       cluster("  upstream_config: {typed_config: {'@type': type.googleapis.com/"
               "envoy.extensions.upstreams.http.v3.HttpProtocolOptions, idle: 1s}}\n"),
       {"resources[0]", "Cluster", "idle: "}},
      {"the type in an Any is unknown",
       cluster("  upstream_config: {typed_config: {'@type': type.googleapis.com/no.Such}}\n"),
       {"resources[0]", "no.Such"}},
      {"the name is empty",
       absl::StrCat("resources:\n- '@type': ", kClusterLoadAssignmentTypeUrl),
       {"resources[0]", "cluster_name"}},
      {"a resource occurs twice",
       absl::StrCat(cluster(""), "- {'@type': ", kClusterTypeUrl, ", name: a}"),
       {"line 4: resources[1]", "\"a\"", "twice"}},
      {"it is nested too deeply",
       "resources: " + deep + closing,
       {"line 1", "deeper than 128 levels"}},
      {"a Struct is too deep for a message",
       cluster("  metadata: {filter_metadata: {x: " + deep_struct + "}}\n"),
       {"resources[0]", "deep"}},
      {"an alias holds itself", "resources: &a [*a]", {"deeper than 128 levels"}},
  }));
  DYNAMIC_SECTION(row.when) {
    const std::string error = error_of(row.text);
    CHECK(is_utf8(error));
    for (const std::string& told : row.told) {
      INFO(error);
      CHECK(absl::StrContains(error, told));
    }
  }
}

TEST_CASE("resource_file: of an unknown field it says that nobody reads it", "[xds]") {
  CHECK(error_of(cluster("  common_lb_config: {update_merge_window: 1s}\n")) ==
        "file: line 2: resources[0]: envoy.config.cluster.v3.Cluster: (common_lb_config) "
        "update_merge_window: signalbox reads no such field, or it is misspelt");
  for (const char* field : {"outlier_detection: {consecutive_gateway_failure: 3}",
                            "upstream_config: {typed_config: {'@type': type.googleapis.com/"
                            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions, idle: 1s}}"}) {
    const std::string error = error_of(cluster(absl::StrCat("  ", field, "\n")));
    INFO(error);
    CHECK(absl::EndsWith(error, ": signalbox reads no such field, or it is misspelt"));
    CHECK_FALSE(absl::StrContains(error, "Cannot find"));
  }
}

TEST_CASE("document: lists and maps may be 128 deep, in JSON and in YAML alike", "[xds]") {
  const auto lists = [](std::size_t depth, const std::string& inner) {
    return std::string(depth, '[') + inner + std::string(depth, ']');
  };
  const auto fits = [](const std::string& text) {
    const bool in_json = parse_json_document(text, 1000).ok();
    CHECK(parse_yaml_document(text, 1000).ok() == in_json);
    return in_json;
  };
  CHECK(fits(lists(kMaxDocumentDepth, "1")));
  CHECK(fits(lists(kMaxDocumentDepth, "")));
  CHECK_FALSE(fits(lists(kMaxDocumentDepth + 1, "1")));
  CHECK_FALSE(fits(lists(kMaxDocumentDepth + 1, "")));
  CHECK_FALSE(fits(lists(kMaxDocumentDepth, "{}")));
}

TEST_CASE("resource_file: LB policies may be nested as deeply as they may be sent", "[xds][A52]") {
  // `depth` is the number of nested load_balancing_policy messages, with the empty innermost one.
  const auto nested = [](std::size_t depth) {
    std::string list = "{policies: []}";
    for (; depth > 1; --depth) {
      list =
          "{policies: [{typed_extension_config: {name: x, typed_config: {'@type': "
          "type.googleapis.com/"
          "envoy.extensions.load_balancing_policies.wrr_locality.v3.WrrLocality, "
          "endpoint_picking_policy: " +
          list + "}}}]}";
    }
    return cluster("  load_balancing_policy: " + list + "\n");
  };
  CHECK(parse(nested(kMaxLbPolicyNesting)).size() == 1);
  // A text that is nested too deeply for protobuf has an error that says so.
  CHECK(absl::StrContains(error_of(nested(40)), "deeper than 128 levels"));
}

TEST_CASE("resource_file: broken JSON is told with line and column", "[xds]") {
  CHECK(absl::StrContains(error_of("{\n\"resources\": [,]}", Format::kJson), "line 2, column"));
  const std::string deep = std::string(130, '[') + std::string(130, ']');
  CHECK(absl::StrContains(error_of("{\"resources\": " + deep + "}", Format::kJson), "128 levels"));
  CHECK(
      absl::StrContains(error_of(R"({"resources": [3]})", Format::kJson), "file: resources[0]: "));
}

TEST_CASE("resource_file: aliases may multiply a small text a little, and no more", "[xds]") {
  std::string text = "a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]\nresources: []\nb: [";
  SECTION("what a long list of short aliases comes to is no more than that") {
    for (int i = 0; i < 1000; ++i)
      text += "*a, ";
    CHECK(parse_resources_text(text + "]", Format::kYaml, "file").ok());
  }
  SECTION("some bytes do not become thousands of values") {
    text += "&b [*a, *a, *a, *a, *a, *a, *a], &c [*b, *b, *b, *b, *b, *b], *c, *c, *c, *c, *c, *c]";
    const std::string limit = absl::StrCat("more than ", 16 * text.size(), " values");
    CHECK(absl::StrContains(error_of(text), limit));
  }
}

TEST_CASE("resource_file: aliases that multiply are stopped", "[xds]") {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i <= 8; ++i) {
    absl::StrAppend(&text, "a", i, ": &a", i, " [");
    for (int copy = 0; copy < 10; ++copy)
      absl::StrAppend(&text, copy ? ", *a" : "*a", i - 1);
    absl::StrAppend(&text, "]\n");
  }
  CHECK(absl::StrContains(error_of(text), "values"));
}

TEST_CASE("resource_file: a text beyond max_file_bytes is not parsed", "[xds][limits]") {
  const std::string text = "resources: []";
  Limits limits;
  limits.max_file_bytes = text.size();
  CHECK(parse_resources_text(text, Format::kYaml, "file", limits).ok());
  // A broken text beyond the limit has the error of the limit.
  const std::string broken = "resources: [[[";
  for (const Format format : {Format::kYaml, Format::kJson}) {
    CHECK(parse_resources_text(broken, format, "file", limits).status() ==
          absl::ResourceExhaustedError(
              "file: must have at most 13 bytes, found 14 (limit max_file_bytes)"));
  }
}

TEST_CASE("resource_file: all errors are told at once", "[xds]") {
  const std::string error = error_of("resources:\n- {name: a}\n- 7\n- [x]\n");
  for (const char* told : {"resources[0]", "resources[1]", "resources[2]"}) {
    CHECK(absl::StrContains(error, told));
  }
}

}  // namespace
}  // namespace signalbox::xds::resource_file_test
