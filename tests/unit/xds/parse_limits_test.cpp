// SPDX-License-Identifier: Apache-2.0
//
// The limits of resources and of responses: a value at the limit is valid. A value beyond the limit
// is refused with the limit's name, also in the Rejection. The limits are small; other tests use
// the defaults. Only the memory of all patterns together may go beyond its limit, by one pattern.
#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "signalbox/envoy/config/listener/v3/listener.pb.h"
#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "signalbox/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/support/decode_response.hpp"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/parse/listener.hpp"
#include "xds/parse/parse_resource.hpp"
#include "xds/type_url.hpp"
#include "xds/wire.hpp"

namespace signalbox::xds::parse_limits_test {
namespace {

using Catch::Matchers::Contains;
using ClusterProto = envoy::config::cluster::v3::Cluster;
using ListenerProto = envoy::config::listener::v3::Listener;
using envoy::config::endpoint::v3::ClusterLoadAssignment;
using envoy::config::route::v3::RouteConfiguration;
using envoy::service::discovery::v3::DiscoveryResponse;

std::string repeat(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i)
    all += text;
  return all;
}

ReceivedResource parse(ResourceType type, const std::string& bytes, const Limits& limits) {
  ParseOptions options;
  options.limits = limits;
  return parse_resource(type, std::string(type_url_of(type)), bytes, options);
}

ReceivedResource parse_routes(const std::string& routes, const Limits& limits) {
  return parse(
      ResourceType::kRouteConfig,
      serialise<RouteConfiguration>("name: \"r\" virtual_hosts { domains: \"*\" " + routes + " }"),
      limits);
}

ReceivedResource parse_cluster_with(const std::string& fields, const Limits& limits) {
  return parse(ResourceType::kCluster, serialise<ClusterProto>("name: \"c\" " + fields), limits);
}

// A cluster with `size` policies: round_robin, below policies that begin with `above`.
ReceivedResource parse_nested_policies(const std::string& above,
                                       std::size_t size,
                                       const Limits& limits) {
  const std::string start =
      "policies { typed_extension_config { typed_config { "
      "[type.googleapis.com/envoy.extensions.load_balancing_policies.";
  std::string list = start + "round_robin.v3.RoundRobin] {} } } } ";
  for (std::size_t i = 1; i < size; ++i)
    list = absl::StrCat(start, above, " { ", list, " } } } } } ");
  return parse_cluster_with(
      "type: EDS eds_cluster_config { eds_config { ads {} } } load_balancing_policy { " + list +
          " }",
      limits);
}

std::string route(const std::string& match, const std::string& action) {
  return "routes { match { " + match + " } route { " + action + " } } ";
}

std::string endpoint(std::size_t number) {
  return absl::StrCat("lb_endpoints { endpoint { address { socket_address { address: \"10.0.0.",
                      number,
                      "\" port_value: 1 } } } } ");
}

}  // namespace

TEST_CASE("limits: what goes beyond is refused by the limit's name, and nothing below",
          "[xds][parse][limits]") {
  struct Row {
    const char* limit;
    std::size_t Limits::* member;
    std::size_t most;
    std::function<ReceivedResource(std::size_t size, const Limits& limits)> parse;
  };

  const auto row = GENERATE(values<Row>({
      {"max_endpoints",
       &Limits::max_endpoints,
       2,
       [](std::size_t size, const Limits& limits) {
         std::string all;
         for (std::size_t i = 0; i < size; ++i)
           all += endpoint(i);
         return parse(ResourceType::kEndpoints,
                      serialise<ClusterLoadAssignment>(
                          "cluster_name: \"e\" endpoints { locality {} load_balancing_weight { "
                          "value: 1 } " +
                          all + " }"),
                      limits);
       }},
      {"max_routes",
       &Limits::max_routes,
       2,
       [](std::size_t size, const Limits& limits) {
         return parse_routes(repeat(route("prefix: \"\"", "cluster: \"c\""), size), limits);
       }},
      {"max_clusters",
       &Limits::max_clusters,
       2,
       [](std::size_t size, const Limits& limits) {
         return parse_routes(
             route("prefix: \"\"",
                   "weighted_clusters { " +
                       repeat("clusters { name: \"c\" weight { value: 1 } } ", size) + " }"),
             limits);
       }},
      {"max_clusters",
       &Limits::max_clusters,
       2,
       [](std::size_t size, const Limits& limits) {
         return parse_cluster_with(
             "cluster_type { typed_config { "
             "[type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig] { " +
                 repeat("clusters: \"a\" ", size) + " } } }",
             limits);
       }},
      {"max_name_length",
       &Limits::max_name_length,
       3,
       [](std::size_t size, const Limits& limits) {
         return parse_routes(route("prefix: \"\"", "cluster: \"" + repeat("c", size) + "\""),
                             limits);
       }},
      {"max_regex_length",
       &Limits::max_regex_length,
       3,
       [](std::size_t size, const Limits& limits) {
         return parse_routes(
             route("safe_regex { regex: \"" + repeat("a", size) + "\" }", "cluster: \"c\""),
             limits);
       }},
      {"max_regexes_length",
       &Limits::max_regexes_length,
       5,
       [](std::size_t size, const Limits& limits) {
         return parse_routes(
             route("safe_regex { regex: \"aaa\" }", "cluster: \"c\"") +
                 route("safe_regex { regex: \"" + repeat("b", size - 3) + "\" }", "cluster: \"c\""),
             limits);
       }},
      {"max_regex_memory",
       &Limits::max_regex_memory,
       10'000,
       [](std::size_t size, const Limits& limits) {
         const bool too_large = size > limits.max_regex_memory;
         return parse_routes(route(std::string("safe_regex { regex: \"") +
                                       (too_large ? "(a{100}){10}" : "a") + "\" }",
                                   "cluster: \"c\""),
                             limits);
       }},
      {"max_any_nesting",
       &Limits::max_any_nesting,
       2,
       [](std::size_t size, const Limits& limits) {
         std::string any = "type_url: \"type.googleapis.com/x.A\"";
         for (std::size_t i = 0; i < size; ++i) {
           any = absl::StrCat(
               "[type.googleapis.com/envoy.config.route.v3.FilterConfig] { is_optional: true "
               "config { ",
               any,
               " } }");
         }
         return parse_routes("typed_per_filter_config { key: \"k\" value { " + any + " } }",
                             limits);
       }},
      {"max_lb_policy_nesting",
       &Limits::max_lb_policy_nesting,
       2,
       [](std::size_t size, const Limits& limits) {
         return parse_nested_policies(
             "wrr_locality.v3.WrrLocality] { endpoint_picking_policy", size, limits);
       }},
      {"max_lb_policy_nesting",
       &Limits::max_lb_policy_nesting,
       2,
       [](std::size_t size, const Limits& limits) {
         return parse_nested_policies(
             "random_subsetting.v3.RandomSubsetting] { subset_size { value: 1 } child_policy",
             size,
             limits);
       }},
      {"max_health_checks",
       &Limits::max_health_checks,
       2,
       [](std::size_t size, const Limits& limits) {
         return parse_cluster_with(
             "type: EDS eds_cluster_config { eds_config { ads {} } } " +
                 repeat("health_checks { timeout { seconds: 1 } interval { seconds: 1 } "
                        "unhealthy_threshold { value: 1 } healthy_threshold { value: 1 } "
                        "tcp_health_check {} } ",
                        size),
             limits);
       }},
  }));
  DYNAMIC_SECTION(row.limit) {
    Limits limits;
    limits.*row.member = row.most;
    const auto below = row.parse(row.most, limits);
    INFO(error_of(below));
    CHECK(below.resource.ok());
    const auto beyond = row.parse(row.most + 1, limits);
    CHECK(beyond.rejection == Rejection{RejectionReason::kLimit, row.limit});
    CHECK(error_of(beyond).find(absl::StrCat("(limit ", row.limit, ")")) != std::string::npos);
    // A higher limit makes the same value valid. In the row of max_regex_memory the value depends
    // on the limit, so this says nothing there.
    limits.*row.member = row.most + 1;
    if (row.member != &Limits::max_regex_memory)
      CHECK(row.parse(row.most + 1, limits).resource.ok());
  }
}

TEST_CASE("limits: of a list beyond its limit no entry is read", "[xds][parse][limits]") {
  Limits limits;
  limits.max_clusters = limits.max_routes = limits.max_health_checks = 2;
  // Every entry has errors of its own.
  for (const ReceivedResource& refused :
       {parse_cluster_with(
            "cluster_type { typed_config { "
            "[type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig] { " +
                repeat("clusters: \"\" ", 3) + " } } }",
            limits),
        parse_cluster_with("type: EDS eds_cluster_config { eds_config { ads {} } } " +
                               repeat("health_checks {} ", 3),
                           limits),
        parse_routes(repeat("routes {} ", 3), limits)}) {
    REQUIRE(refused.rejection.has_value());
    CHECK(refused.rejection->reason == RejectionReason::kLimit);
    CHECK_THAT(error_of(refused), Contains("must have at most 2") && !Contains("; "));
  }
}

// A pattern's memory is known only after it is compiled: the pattern that goes beyond the limit is
// valid, and the next pattern that differs from all before it is refused.
TEST_CASE("limits: the patterns of a response share one memory", "[xds][parse][limits]") {
  const auto patterns = [](const std::vector<std::string>& texts) {
    std::string routes;
    for (const std::string& text : texts)
      routes += route("safe_regex { regex: \"" + text + "\" }", "cluster: \"c\"");
    return routes;
  };
  Limits limits;
  limits.max_regexes_memory = 10'000;  // Room for two patterns of about 4,200 bytes each.
  CHECK(parse_routes(patterns({"a", "b", "c"}), limits).resource.ok());
  CHECK(parse_routes(patterns({"a", "b", "c", "a", "b", "c"}), limits).resource.ok());
  const auto beyond = parse_routes(patterns({"a", "b", "c", "d"}), limits);
  CHECK(beyond.rejection == Rejection{RejectionReason::kLimit, "max_regexes_memory"});
  CHECK_THAT(
      error_of(beyond),
      Contains("virtual_hosts[0].routes[3].match.safe_regex.regex: the patterns of a response "
               "must compile into 10000 bytes together, found \"d\" beyond them (limit "
               "max_regexes_memory)"));
  // A refused pattern counts too: RE2 used memory before it refused the pattern.
  CHECK(parse_routes(patterns({"a", "(", "c", "d"}), limits).rejection ==
        Rejection{RejectionReason::kLimit, "max_regexes_memory"});
  limits.max_regexes_memory = 20'000;
  CHECK(parse_routes(patterns({"a", "b", "c", "d"}), limits).resource.ok());
  limits.max_regex_memory = 8'000;  // RE2 uses all of it before it refuses a large pattern.
  CHECK_THAT(error_of(parse_routes(patterns({"a{900}", "b{900}", "c"}), limits)),
             Contains("found \"c\" beyond them (limit max_regexes_memory)"));
}

TEST_CASE("limits: a pattern counts by the size of its program, and once, valid or not",
          "[xds][parse][limits]") {
  const auto error_with = [](const std::vector<std::string>& patterns, const Limits& limits) {
    std::string routes;
    for (const std::string& pattern : patterns)
      routes += route("safe_regex { regex: \"" + pattern + "\" }", "cluster: \"c\"");
    return error_of(parse_routes(routes, limits));
  };
  Limits memory;
  memory.max_regexes_memory = 5'000;  // More than "a" takes, and less than "a{100}".
  CHECK(error_with({"a", "b"}, memory).empty());
  CHECK_THAT(error_with({"a{100}", "b"}, memory),
             Contains("found \"b\" beyond them (limit max_regexes_memory)"));
  Limits number;
  number.max_regexes = 2;
  CHECK_THAT(error_with({"(", "(", "a"}, number), !Contains("beyond them"));
  CHECK_THAT(error_with({"(", ")", "a"}, number),
             Contains("found \"a\" beyond them (limit max_regexes)"));
}

TEST_CASE("limits: whatever has a name has one that is not endless", "[xds][parse][limits]") {
  const std::string name = repeat("n", 5);
  const auto eds = [&](const std::string& fields) {
    return [fields](const Limits& limits) {
      return parse(ResourceType::kEndpoints, serialise<ClusterLoadAssignment>(fields), limits);
    };
  };
  const auto host = [&](const std::string& fields) {
    return [fields](const Limits& limits) {
      return parse(ResourceType::kRouteConfig,
                   serialise<RouteConfiguration>("name: \"r\" virtual_hosts { " + fields + " }"),
                   limits);
    };
  };
  const auto inline_routes = [&](const std::string& fields) {
    return [fields](const Limits& limits) {
      return parse(ResourceType::kListener,
                   serialise<ListenerProto>(
                       "name: \"l\" api_listener { api_listener { "
                       "[type.googleapis.com/envoy.extensions.filters.network."
                       "http_connection_manager.v3.HttpConnectionManager] { route_config { " +
                       fields +
                       " } http_filters { name: \"f\" typed_config { "
                       "[type.googleapis.com/envoy.extensions.filters.http.router.v3.Router] {} "
                       "} } } } }"),
                   limits);
    };
  };
  const auto cluster = [&](const std::string& fields) {
    return [fields](const Limits& limits) {
      return parse(ResourceType::kCluster, serialise<ClusterProto>(fields), limits);
    };
  };
  const auto checked = [&](const std::string& probe) {
    return cluster(
        "name: \"c\" type: EDS eds_cluster_config { eds_config { ads {} } } health_checks { "
        "timeout { seconds: 1 } interval { seconds: 1 } unhealthy_threshold { value: 1 } "
        "healthy_threshold { value: 1 } " +
        probe + " }");
  };

  struct Row {
    std::string place;
    std::function<ReceivedResource(const Limits& limits)> parse;
  };

  const std::string quoted_name = "\"" + name + "\"";
  const auto row = GENERATE_COPY(values<Row>({
      {"cluster_name", eds("cluster_name: " + quoted_name)},
      {"endpoints[0].lb_endpoints[0].endpoint.hostname",
       eds("cluster_name: \"e\" endpoints { locality {} load_balancing_weight { value: 1 } "
           "lb_endpoints { endpoint { hostname: " +
           quoted_name +
           " address { socket_address { address: \"1.2.3.4\" port_value: 1 } } } } }")},
      {"policy.drop_overloads[0].category",
       eds("cluster_name: \"e\" policy { drop_overloads { drop_percentage {} category: " +
           quoted_name + " } }")},
      {"name",
       [quoted_name](const Limits& limits) {
         return parse(ResourceType::kRouteConfig,
                      serialise<RouteConfiguration>("name: " + quoted_name),
                      limits);
       }},
      {"api_listener.api_listener.route_config.name", inline_routes("name: " + quoted_name)},
      {"api_listener.api_listener.route_config.virtual_hosts[0].name",
       inline_routes("virtual_hosts { domains: \"*\" name: " + quoted_name + " }")},
      {"virtual_hosts[0].name", host("domains: \"*\" name: " + quoted_name)},
      {"virtual_hosts[0].routes[0].name",
       host("domains: \"*\" routes { match { prefix: \"\" } route { cluster: \"c\" } name: " +
            quoted_name + " }")},
      {"virtual_hosts[0].domains[0]", host("domains: " + quoted_name)},
      {"virtual_hosts[0].typed_per_filter_config[" + quoted_name + "]",
       host(
           "domains: \"*\" typed_per_filter_config { key: " + quoted_name +
           " value { [type.googleapis.com/envoy.config.route.v3.FilterConfig] { disabled: true } } "
           "}")},
      {"virtual_hosts[0].routes[0].match.headers[0].name",
       host("domains: \"*\" " +
            route("prefix: \"\" headers { present_match: true name: " + quoted_name + " }",
                  "cluster: \"c\""))},
      {"virtual_hosts[0].routes[0].route.weighted_clusters.clusters[0].name",
       host("domains: \"*\" " + route("prefix: \"\"",
                                      "weighted_clusters { clusters { weight { value: 1 } name: " +
                                          quoted_name + " } }"))},
      {"virtual_hosts[0].routes[0].route.hash_policy[0].header.header_name",
       host("domains: \"*\" " +
            route("prefix: \"\"",
                  "cluster: \"c\" hash_policy { header { header_name: " + quoted_name + " } }"))},
      {"name",
       cluster("type: EDS eds_cluster_config { service_name: \"s\" eds_config { ads {} } } "
               "name: " +
               quoted_name)},
      {"eds_cluster_config.service_name",
       cluster("name: \"c\" type: EDS eds_cluster_config { eds_config { ads {} } service_name: " +
               quoted_name + " }")},
      {"load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.address",
       cluster(
           "name: \"c\" type: LOGICAL_DNS load_assignment { endpoints { lb_endpoints { endpoint "
           "{ address { socket_address { port_value: 1 address: " +
           quoted_name + " } } } } } }")},
      {"cluster_type.typed_config.value.clusters[0]",
       cluster("name: \"c\" cluster_type { typed_config { "
               "[type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig] { "
               "clusters: " +
               quoted_name + " } } }")},
      {"health_checks[0].http_health_check.host",
       checked("http_health_check { path: \"/\" host: " + quoted_name + " }")},
      {"health_checks[0].grpc_health_check.service_name",
       checked("grpc_health_check { service_name: " + quoted_name + " }")},
      {"health_checks[0].grpc_health_check.authority",
       checked("grpc_health_check { authority: " + quoted_name + " }")},
  }));
  DYNAMIC_SECTION(row.place) {
    Limits limits;
    limits.max_name_length = name.size();
    const auto below = row.parse(limits);
    INFO(error_of(below));
    CHECK(below.resource.ok());
    // The IP address "1.2.3.4" in a row is no name, so this limit does not apply to it.
    limits.max_name_length = name.size() - 1;
    const auto beyond = row.parse(limits);
    CHECK(beyond.rejection == Rejection{RejectionReason::kLimit, "max_name_length"});
    CHECK(error_of(beyond).find(": " + row.place + ": must not be longer than 4 bytes, found 5") !=
          std::string::npos);
  }
}

TEST_CASE("limits: each has a name of its own, and a default", "[xds][parse][limits]") {
  std::set<std::string> names;
  for (const NamedLimit& limit : kNamedLimits) {
    CHECK(names.insert(std::string(limit.name)).second);
    CHECK(Limits{}.*limit.member > 0);
  }
  // Every member of Limits is in kNamedLimits.
  CHECK(names.size() * sizeof(std::size_t) == sizeof(Limits));
}

TEST_CASE("limits: a resource takes the memory of a message of its type from the response's",
          "[xds][parse][limits]") {
  // The name, and eight empty values of field 2, which is another field in each type.
  const auto named = [](const std::string& name) {
    return "\x0a\x01" + name + repeat(std::string("\x12\x00", 2), 8);
  };
  const Rejection too_heavy{RejectionReason::kLimit, "max_decoded_memory"};
  const auto type = GENERATE(ResourceType::kListener,
                             ResourceType::kRouteConfig,
                             ResourceType::kCluster,
                             ResourceType::kEndpoints);
  CAPTURE(to_string(type));
  ParseOptions options;
  std::size_t& most = options.limits.max_decoded_memory;
  most = weigh(named("n"), *find_message(type_url_of(type)), std::size_t{1} << 20U);
  CHECK(parse(type, named("n"), options.limits).rejection != too_heavy);
  --most;
  CHECK(parse(type, named("n"), options.limits).rejection == too_heavy);

  most = 2 * (most + 1);
  DiscoveryResponse response;
  response.set_type_url(std::string(type_url_of(type)));
  for (const char* name : {"m", "n"}) {
    auto* any = response.add_resources();
    any->set_type_url(std::string(type_url_of(type)));
    any->set_value(named(name));
  }
  const auto last_of = [&] {
    return decode_response(response.SerializeAsString(), options)->received.resources.at(1);
  };
  CHECK(last_of().rejection != too_heavy);
  --most;
  CHECK(last_of().rejection == too_heavy);
}

TEST_CASE("limits: a message inside of an Any has the memory of a response on its own",
          "[xds][parse][limits]") {
  using envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
  const std::string manager =
      "rds { config_source { ads {} } route_config_name: \"r\" } http_filters { name: \"f\" "
      "typed_config { [type.googleapis.com/envoy.extensions.filters.http.router.v3.Router] {} } }";
  const std::string listener = serialise<ListenerProto>(
      "name: \"l\" api_listener { api_listener { [type.googleapis.com/envoy.extensions.filters."
      "network.http_connection_manager.v3.HttpConnectionManager] { " +
      manager + " } } }");
  ParseOptions options;
  std::size_t& most = options.limits.max_decoded_memory;
  most = weigh(serialise<HttpConnectionManager>(manager),
               *HttpConnectionManager::descriptor(),
               std::size_t{1} << 20U);
  CHECK(error_of(parse_listener(listener, options)).empty());
  --most;
  CHECK(
      error_of(parse_listener(listener, options)) ==
      absl::StrCat("LDS resource \"l\": api_listener.api_listener.value: must not take more than ",
                   most,
                   " bytes when decoded, found more (limit max_decoded_memory)"));
}

TEST_CASE("limits: a message that is too long is not even decoded", "[xds][parse][limits]") {
  const std::string bytes =
      serialise<DiscoveryResponse>("type_url: \"" + std::string(kClusterTypeUrl) + "\"");
  ParseOptions options;
  options.limits.max_message_bytes = bytes.size();
  CHECK(decode_response(bytes, options).ok());
  options.limits.max_message_bytes = bytes.size() - 1;
  const absl::Status status = decode_response(bytes, options).status();
  CHECK(status.code() == absl::StatusCode::kResourceExhausted);
  CHECK(std::string(status.message()).find("(limit max_message_bytes)") != std::string::npos);
}

TEST_CASE("decode_response: clusters beyond the limit are refused by name, not gone",
          "[xds][parse][limits][A46]") {
  const auto cluster = [](const std::string& name) {
    return "resources { [type.googleapis.com/envoy.config.cluster.v3.Cluster] { name: \"" + name +
           "\" type: EDS eds_cluster_config { eds_config { ads {} } } } } ";
  };
  ParseOptions options;
  options.limits.max_clusters = 2;
  const auto decoded = decode_response(
      serialise<DiscoveryResponse>("type_url: \"" + std::string(kClusterTypeUrl) + "\" " +
                                   cluster("a") + cluster("b") + cluster("c")),
      options);
  REQUIRE(decoded.ok());
  const auto& received = decoded->received;
  REQUIRE(received.resources.size() == 3);
  CHECK(received.resources[0].resource.ok());
  CHECK(received.resources[1].resource.ok());
  CHECK(received.resources[2].name == "c");
  CHECK(received.resources[2].rejection == Rejection{RejectionReason::kLimit, "max_clusters"});
  CHECK(decoded->nack_detail ==
        "CDS resource \"c\": a response must have at most 2 clusters, found 3 (limit "
        "max_clusters)");
}

TEST_CASE("decode_response: resources beyond the limit are counted, and not read",
          "[xds][parse][limits][A46]") {
  const auto decode = [](std::size_t resources, const std::string& more = "") {
    std::string text = "type_url: \"" + std::string(kClusterTypeUrl) + "\" " + more;
    for (std::size_t i = 0; i < resources; ++i) {
      text += absl::StrCat("resources { [",
                           std::string(kClusterTypeUrl),
                           "] { name: \"c",
                           i,
                           "\" type: EDS eds_cluster_config { eds_config { ads {} } } } } ");
    }
    ParseOptions options;
    options.limits.max_resources = 2;
    auto decoded = decode_response(serialise<DiscoveryResponse>(text), options);
    REQUIRE(decoded.ok());
    CHECK(decoded->received.resources.size() == std::min<std::size_t>(resources, 2));
    return *std::move(decoded);
  };
  const auto error = [](std::size_t found) {
    return absl::StrCat(
        "a response must have at most 2 resources, found ", found, " (limit max_resources)");
  };
  const auto over_limit = static_cast<std::size_t>(RejectionReason::kLimit);
  CHECK(decode(2).nack_detail.empty());
  const DecodedResponse three = decode(3);
  CHECK(three.nack_detail == error(3));
  CHECK(three.received.unnamed_errors == std::vector<std::string>{error(3)});
  CHECK(three.received.more_unnamed == 0);
  CHECK(three.received.rejected[over_limit] == 1);
  const DecodedResponse five = decode(5);
  CHECK(five.nack_detail == error(5) + "; and 2 more invalid resources");
  CHECK(five.received.more_unnamed == 2);
  CHECK(five.received.rejected[over_limit] == 3);
  // The errors that a server sends for resources have the same limit.
  const std::string sent =
      "resource_errors { resource_name { name: \"a\" } error_detail { code: 5 } } ";
  CHECK(decode(0, repeat(sent, 3)).received.resource_errors.size() == 2);
}

TEST_CASE("decode_response: what is refused is counted by reason", "[xds][parse][limits]") {
  const std::string cluster = "[type.googleapis.com/envoy.config.cluster.v3.Cluster] ";
  const std::string eds = "type: EDS eds_cluster_config { eds_config { ads {} } } ";
  ParseOptions options;
  options.limits.max_name_length = 8;
  const auto decoded = decode_response(
      serialise<DiscoveryResponse>(
          "type_url: \"" + std::string(kClusterTypeUrl) + "\" " +                     //
          "resources { " + cluster + "{ name: \"good\" " + eds + " } } " +            //
          "resources { " + cluster + "{ name: \"wrong\" type: STATIC } } " +          // semantic
          "resources { " + cluster + "{ name: \"too long a name\" " + eds + "} } " +  // limit
          "resources { " + cluster + "{ name: \"twice\" " + eds + "} } " +            //
          "resources { " + cluster + "{ name: \"twice\" " + eds + "} } " +            // semantic
          "resources { " + cluster + "{ name: \"twice\" " + eds + "} } " +            // uncounted
          "resources { type_url: \"" + std::string(kClusterTypeUrl) +
          "\" value: \"\\377\" } " +                                              // parse
          "resources { type_url: \"" + std::string(kListenerTypeUrl) + "\" } " +  // semantic
          "resources { type_url: \"\" }"),                                        // semantic
      options);
  REQUIRE(decoded.ok());
  const auto& rejected = decoded->received.rejected;
  CHECK(rejected[static_cast<std::size_t>(RejectionReason::kParse)] == 1);
  CHECK(rejected[static_cast<std::size_t>(RejectionReason::kSemantic)] == 4);
  CHECK(rejected[static_cast<std::size_t>(RejectionReason::kLimit)] == 1);
}

TEST_CASE("rejection reasons: have the words of their metric", "[messages]") {
  CHECK(to_string(RejectionReason::kParse) == "parse");
  CHECK(to_string(RejectionReason::kSemantic) == "semantic");
  CHECK(to_string(RejectionReason::kLimit) == "limit");
}

}  // namespace signalbox::xds::parse_limits_test
