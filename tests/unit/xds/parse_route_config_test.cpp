// SPDX-License-Identifier: Apache-2.0
//
// RDS resources: virtual hosts, actions, limits. parse_route_match_test has the matchers of routes.
#include <chrono>

#include <catch2/catch.hpp>

#include "messages/route_config.hpp"
#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/limits.hpp"
#include "xds/parse/route_config.hpp"

namespace signalbox::xds::parse_route_config_test {
namespace {

using namespace std::chrono_literals;
using envoy::config::route::v3::RouteConfiguration;

ReceivedResource parse(const std::string& fields) {
  return parse_route_config(serialise<RouteConfiguration>("name: \"routes\" " + fields));
}

std::string error_in(const std::string& fields) {
  const std::string error = error_of(parse(fields));
  const std::string prefix = R"(RDS resource "routes": )";
  return error.rfind(prefix, 0) == 0 ? error.substr(prefix.size()) : error;
}

std::string host(const std::string& fields) {
  return "virtual_hosts { " + fields + " } ";
}

// A virtual host for all domains, with one route for all paths and these fields.
std::string route(const std::string& fields) {
  return host("domains: \"*\" routes { match { prefix: \"\" } " + fields + " }");
}

const std::vector<Route> routes_in(const std::string& fields) {
  return value_of<RouteConfig>(parse(fields)).virtual_hosts.at(0).routes;
}

ForwardAction action_of(const std::string& action) {
  const auto routes = routes_in(route("route { " + action + " }"));
  REQUIRE(routes.size() == 1);
  return std::get<ForwardAction>(routes[0].action);
}

const std::string kFirst = "virtual_hosts[0].routes[0]";

}  // namespace

TEST_CASE("parse_route_config: virtual hosts and routes keep their order", "[xds][parse][A28]") {
  const auto received = parse(host(R"(name: "a" domains: "a.example" domains: "*.a.example"
                    routes { name: "r1" match { path: "/x/y" } route { cluster: "c1" } }
                    routes { name: "r2" match { prefix: "" } route { cluster: "c2" } })") +
                              host(R"(name: "b" domains: "*")"));
  const RouteConfig& config = value_of<RouteConfig>(received);
  CHECK(received.name == "routes");
  CHECK(config.name == "routes");
  REQUIRE(config.virtual_hosts.size() == 2);
  CHECK(config.virtual_hosts[0].name == "a");
  CHECK(config.virtual_hosts[0].domains == std::vector<std::string>{"a.example", "*.a.example"});
  REQUIRE(config.virtual_hosts[0].routes.size() == 2);
  CHECK(config.virtual_hosts[0].routes[0].name == "r1");
  CHECK(config.virtual_hosts[0].routes[1].name == "r2");
  CHECK(config.virtual_hosts[1] == VirtualHost{"b", {"*"}, {}});
}

TEST_CASE("parse_route_config: no virtual host, and a host without routes, are valid",
          "[xds][parse][A28]") {
  CHECK(value_of<RouteConfig>(parse("")).virtual_hosts.empty());
  CHECK(error_in(host("domains: \"*\"")).empty());
}

TEST_CASE("parse_route_config: domains are names or patterns with one star at one end",
          "[xds][parse][A28]") {
  const auto domain = GENERATE(as<std::string>{},
                               "*",
                               "a.example",
                               "*.example",
                               "*-x.example",
                               "a.*",
                               "api*",
                               "a.example:443",
                               "[::1]:80");
  CHECK(error_in(host("domains: \"" + domain + "\"")).empty());
}

TEST_CASE("parse_route_config: domains of any other form are errors", "[xds][parse][A28]") {
  const std::string place = "virtual_hosts[0].domains";

  struct Row {
    std::string domains;
    std::string error;
  };

  const auto row = GENERATE(values<Row>({
      {"", ": must have at least one entry, found 0"},
      {"domains: \"\"", "[0]: must not be empty, found \"\""},
      {"domains: \"**\"", "[0]: must be a name, *, *suffix or prefix*, found \"**\""},
      {"domains: \"*a*\"", "[0]: must be a name, *, *suffix or prefix*, found \"*a*\""},
      {"domains: \"a.*.b\"", "[0]: must be a name, *, *suffix or prefix*, found \"a.*.b\""},
      {"domains: \"a\" domains: \"A\"", "[1]: must be unique, found \"A\" again"},
      {"domains: \"*\" domains: \"*\"", "[1]: must be unique, found \"*\" again"},
  }));
  CHECK(error_in(host(row.domains)) == place + row.error);
}

TEST_CASE("parse_route_config: a domain is unique in all virtual hosts", "[xds][parse][A28]") {
  CHECK(error_in(host("domains: \"a\" domains: \"b\"") + host("domains: \"b\"")) ==
        "virtual_hosts[1].domains[0]: must be unique, found \"b\" again");
}

TEST_CASE("parse_route_config: a route goes to one cluster, or to several by weight",
          "[xds][parse][A28]") {
  CHECK(action_of("cluster: \"c\"").clusters ==
        std::vector<WeightedCluster>{{ClusterName{"c"}, 1}});
  CHECK(action_of(R"(weighted_clusters {
                       clusters { name: "a" weight { value: 75 } }
                       clusters { name: "b" weight { value: 0 } }
                       clusters { name: "c" }
                       clusters { name: "d" weight { value: 25 } } })")
            .clusters == std::vector<WeightedCluster>{{ClusterName{"a"}, 75},
                                                      {ClusterName{"b"}, 0},
                                                      {ClusterName{"c"}, 0},
                                                      {ClusterName{"d"}, 25}});
}

TEST_CASE("parse_route_config: weights sum to something that fits into 32 bits, total_weight aside",
          "[xds][parse][A28]") {
  CHECK(action_of(R"(weighted_clusters { total_weight { value: 100 }
                       clusters { name: "a" weight { value: 4294967294 } }
                       clusters { name: "b" weight { value: 1 } } })")
            .clusters.size() == 2);
  const std::string place = kFirst +
                            ".route.weighted_clusters.clusters: the sum of weights must be in [1, "
                            "4294967295], found ";
  CHECK(error_in(route("route { weighted_clusters {} }")) == place + "0 in 0 entries");
  CHECK(error_in(route(R"(route { weighted_clusters { clusters { name: "a" }
                                                      clusters { name: "b" } } })")) ==
        place + "0 in 2 entries");
  CHECK(error_in(route(R"(route { weighted_clusters {
                            clusters { name: "a" weight { value: 4294967295 } }
                            clusters { name: "b" weight { value: 1 } } } })")) ==
        place + "4294967296 in 2 entries");
}

TEST_CASE("parse_route_config: a cluster has a name", "[xds][parse][A28]") {
  CHECK(error_in(route("route { cluster: \"\" }")) ==
        kFirst + ".route.cluster: must not be empty, found \"\"");
  CHECK(error_in(route("route { weighted_clusters { clusters { weight { value: 1 } } } }")) ==
        kFirst + ".route.weighted_clusters.clusters[0].name: must not be empty, found \"\"");
}

TEST_CASE("parse_route_config: a route with another cluster specifier is ignored",
          "[xds][parse][A28]") {
  const auto specifier = GENERATE(as<std::string>{},
                                  "",
                                  "cluster_header: \"x-cluster\"",
                                  "cluster_specifier_plugin: \"p\"",
                                  "inline_cluster_specifier_plugin {}");
  CHECK(routes_in(route("route { " + specifier + " }")).empty());
}

TEST_CASE("parse_route_config: another action matches and then fails", "[xds][parse][A28][A36]") {
  struct Row {
    std::string action;
    std::string what;
  };

  const auto row = GENERATE(values<Row>({
      {"redirect {}", "redirect"},
      {"direct_response {}", "direct_response"},
      {"filter_action {}", "filter_action"},
      {"non_forwarding_action {}", "non_forwarding_action"},
      {"", "no action"},
  }));
  const auto routes = routes_in(route(row.action));
  REQUIRE(routes.size() == 1);
  CHECK(std::get<UnsupportedAction>(routes[0].action) == UnsupportedAction{row.what});
}

TEST_CASE("parse_route_config: max_stream_duration of a route", "[xds][parse][A31-20]") {
  CHECK(action_of(R"(cluster: "c")").max_stream_duration == std::nullopt);
  CHECK(action_of(R"(cluster: "c" max_stream_duration {})").max_stream_duration == std::nullopt);
  const auto action =
      action_of(R"(cluster: "c" max_stream_duration { max_stream_duration { seconds: 4 } })");
  CHECK(action.max_stream_duration == 4s);
  CHECK(action.grpc_timeout_header_max == std::nullopt);
  // Zero is a value, not an absence (A31-28).
  CHECK(action_of(R"(cluster: "c" max_stream_duration { max_stream_duration {} })")
            .max_stream_duration == 0s);
}

TEST_CASE("parse_route_config: grpc_timeout_header_max of a route", "[xds][parse][A31-21]") {
  CHECK(action_of(R"(cluster: "c")").grpc_timeout_header_max == std::nullopt);
  const auto action = action_of(R"(cluster: "c" max_stream_duration {
      grpc_timeout_header_max { nanos: 5000000 } max_stream_duration { seconds: 4 } })");
  CHECK(action.grpc_timeout_header_max == 5ms);
  CHECK(action.max_stream_duration == 4s);
  CHECK(action_of(R"(cluster: "c" max_stream_duration { grpc_timeout_header_max {} })")
            .grpc_timeout_header_max == 0s);
}

TEST_CASE("parse_route_config: timeout and grpc_timeout_header_offset are ignored",
          "[xds][parse][A31-23]") {
  const auto seconds = GENERATE(as<std::string>{}, "5", "-5");
  const auto action = action_of(
      "cluster: \"c\" timeout { seconds: 5 } max_stream_duration { grpc_timeout_header_offset { "
      "seconds: " +
      seconds + " } }");
  CHECK(action.max_stream_duration == std::nullopt);
  CHECK(action.grpc_timeout_header_max == std::nullopt);
}

TEST_CASE("parse_route_config: durations out of range are errors",
          "[xds][parse][A31-29][A75-19][A75-20][A75-23]") {
  const auto field = GENERATE(as<std::string>{}, "max_stream_duration", "grpc_timeout_header_max");

  struct Row {
    std::string duration;
    std::string error;
  };

  const auto row = GENERATE(values<Row>({
      {"seconds: -1", "seconds: must be in [0, 315576000000], found -1"},
      {"seconds: 315576000001", "seconds: must be in [0, 315576000000], found 315576000001"},
      {"nanos: -1", "nanos: must be in [0, 999999999], found -1"},
      {"nanos: 1000000000", "nanos: must be in [0, 999999999], found 1000000000"},
  }));
  CHECK(error_in(route("route { cluster: \"c\" max_stream_duration { " + field + " { " +
                       row.duration + " } } }")) ==
        kFirst + ".route.max_stream_duration." + field + "." + row.error);
}

TEST_CASE("parse_route_config: filter overrides need a known type, unless they are optional",
          "[xds][parse][A39]") {
  const auto override_with = [](const std::string& config) {
    return "typed_per_filter_config { key: \"mine\" value { " + config + " } } ";
  };
  const std::string unknown = override_with("type_url: \"type.googleapis.com/x.A\"");
  const std::string wrapper = "[type.googleapis.com/envoy.config.route.v3.FilterConfig] { ";
  const std::string wrapped = "config { type_url: \"type.googleapis.com/x.A\" } ";
  const std::string key = "typed_per_filter_config[\"mine\"]";
  const std::string error =
      ": must be a known filter or is_optional, found \"x.A\": take \"mine\" out of "
      "typed_per_filter_config, or wrap it in a FilterConfig with is_optional";

  CHECK(error_in(host("domains: \"*\" " + unknown)) == "virtual_hosts[0]." + key + error);
  CHECK(error_in(route("route { cluster: \"c\" } " + unknown)) == kFirst + "." + key + error);
  CHECK(error_in(route("route { weighted_clusters { clusters { name: \"c\" weight { value: 1 } " +
                       unknown + "} } }")) ==
        kFirst + ".route.weighted_clusters.clusters[0]." + key + error);
  CHECK(error_in(host("domains: \"*\" " + override_with(wrapper + wrapped + "}"))) ==
        "virtual_hosts[0]." + key + error);
  CHECK(error_in(host("domains: \"*\" " + override_with(wrapper + wrapped + "is_optional: true }")))
            .empty());
  CHECK(error_in(host("domains: \"*\" " + override_with(wrapper + "disabled: true }"))).empty());
  CHECK(error_in(host("domains: \"*\" " + override_with(wrapper + "}"))) ==
        "virtual_hosts[0]." + key + ".config: must be set, found none");
  CHECK(error_in(host("domains: \"*\" " +
                      override_with("type_url: \"type.googleapis.com/"
                                    "envoy.extensions.filters.http.router.v3.Router\""))) ==
        "virtual_hosts[0]." + key +
            ": must be what overrides a filter, found "
            "envoy.extensions.filters.http.router.v3.Router");
}

TEST_CASE("parse_route_config: FilterConfigs are not nested without end",
          "[xds][parse][A39][limits]") {
  const auto nested = [](std::size_t wrappers) {
    std::string any = "type_url: \"type.googleapis.com/x.A\"";
    for (std::size_t i = 0; i < wrappers; ++i) {
      any =
          "[type.googleapis.com/envoy.config.route.v3.FilterConfig] { is_optional: true config "
          "{ " +
          any + " } }";
    }
    return host("domains: \"*\" typed_per_filter_config { key: \"mine\" value { " + any + " } }");
  };
  CHECK(error_in(nested(kMaxAnyNesting)).empty());
  CHECK(error_in(nested(kMaxAnyNesting + 1)) ==
        "virtual_hosts[0].typed_per_filter_config[\"mine\"]: must not nest more than 32 "
        "FilterConfigs (limit max_any_nesting)");
}

TEST_CASE("parse_route_config: it has ten thousand routes at most", "[xds][parse][limits]") {
  RouteConfiguration proto;
  proto.set_name("routes");
  for (const char* domain : {"a", "b"}) {
    auto* host = proto.add_virtual_hosts();
    host->add_domains(domain);
    for (std::size_t i = 0; i < kMaxRoutes / 2; ++i) {
      auto* added = host->add_routes();
      added->mutable_match()->set_prefix("");
      added->mutable_route()->set_cluster("c");
    }
  }
  CHECK(error_of(parse_route_config(proto.SerializeAsString())).empty());
  proto.mutable_virtual_hosts(0)->add_routes();
  CHECK(error_of(parse_route_config(proto.SerializeAsString())) ==
        "RDS resource \"routes\": virtual_hosts: must have at most 10000 routes in all, found "
        "10001 (limit max_routes)");
}

TEST_CASE("parse_route_config: every error is told at once", "[xds][parse][A40]") {
  CHECK(error_in(host("routes {} routes { match {} route { cluster: \"\" } }")) ==
        "virtual_hosts[0].domains: must have at least one entry, found 0; "
        "virtual_hosts[0].routes[0].match: must be set, found none; "
        "virtual_hosts[0].routes[1].match.path_specifier: must be prefix, path or safe_regex, "
        "found none; "
        "virtual_hosts[0].routes[1].route.cluster: must not be empty, found \"\"");
}

TEST_CASE("parse_route_config: a resource has a name", "[xds][parse]") {
  CHECK(error_of(parse_route_config("")) ==
        "RDS resource \"\": name: must not be empty, found \"\"");
  CHECK(error_of(parse_route_config("\xff")) ==
        "RDS resource must be a RouteConfiguration, found 1 bytes that are not");
}

}  // namespace signalbox::xds::parse_route_config_test
