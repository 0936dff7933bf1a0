// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include <catch2/catch.hpp>

#include "messages/listener.hpp"
#include "signalbox/envoy/config/listener/v3/listener.pb.h"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/parse/listener.hpp"

namespace signalbox::xds::parse_listener_test {
namespace {

using namespace std::chrono_literals;
using ListenerProto = envoy::config::listener::v3::Listener;

const std::string kManager =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3."
    "HttpConnectionManager";
const std::string kRouter = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";
const std::string kRouterFilter =
    "http_filters { name: \"router\" typed_config { [" + kRouter + "] {} } } ";
const std::string kRds = R"(rds { config_source { ads {} } route_config_name: "routes" } )";
const std::string kPlace = "api_listener.api_listener";

// A listener with these fields in its connection manager.
ReceivedResource parse(const std::string& fields) {
  return parse_listener(serialise<ListenerProto>(
      R"(name: "orders" api_listener { api_listener { [)" + kManager + "] { " + fields + " } } }"));
}

std::string error_in(const std::string& fields) {
  const std::string error = error_of(parse(fields));
  const std::string prefix = R"(LDS resource "orders": )";
  return error.rfind(prefix, 0) == 0 ? error.substr(prefix.size()) : error;
}

std::string filter(const std::string& name, const std::string& type, const std::string& more = "") {
  return "http_filters { name: \"" + name + "\" typed_config { type_url: \"" + type + "\" } " +
         more + " } ";
}

// A filter with a TypedStruct as its configuration. `wrapper` is the type of the TypedStruct.
std::string struct_filter(const std::string& name,
                          const std::string& wrapper,
                          const std::string& type_url) {
  return "http_filters { name: \"" + name + "\" typed_config { [type.googleapis.com/" + wrapper +
         "] { type_url: \"" + type_url + "\" } } } ";
}

}  // namespace

TEST_CASE("parse_listener: the routes come from RDS, over ADS or self", "[xds][parse][A27]") {
  const auto source = GENERATE(as<std::string>{}, "ads {}", "self {}");
  const auto received = parse("rds { config_source { " + source +
                              R"( } route_config_name: "routes" } )" + kRouterFilter);
  const Listener& listener = value_of<Listener>(received);
  CHECK(received.name == "orders");
  CHECK(listener.name == "orders");
  CHECK(std::get<RdsName>(listener.routes) == RdsName{"routes"});
  CHECK(listener.filters ==
        std::vector<HttpFilter>{{"router", "envoy.extensions.filters.http.router.v3.Router"}});
  CHECK(listener.max_stream_duration == std::nullopt);
}

TEST_CASE("parse_listener: the routes may be inline, and are validated", "[xds][parse][A27]") {
  const auto received = parse(kRouterFilter + R"(route_config { virtual_hosts { domains: "*"
      routes { match { prefix: "" } route { cluster: "c" } } } })");
  const auto& routes =
      *std::get<std::shared_ptr<const RouteConfig>>(value_of<Listener>(received).routes);
  REQUIRE(routes.virtual_hosts.size() == 1);
  CHECK(routes.virtual_hosts[0].routes.size() == 1);
  CHECK(error_in(kRouterFilter + "route_config { virtual_hosts {} }") ==
        kPlace + ".route_config.virtual_hosts[0].domains: must have at least one entry, found 0");
}

TEST_CASE("parse_listener: without usable routes it is an error", "[xds][parse][A27]") {
  struct Row {
    std::string routes;
    std::string error;
  };

  const auto row = GENERATE(values<Row>({
      {"", ": rds or route_config must be set, found none"},
      {"scoped_routes {}", ": rds or route_config must be set, found scoped_routes"},
      {R"(rds { route_config_name: "r" })", ".rds.config_source: must be set, found none"},
      {R"(rds { route_config_name: "r" config_source { path: "p" } })",
       ".rds.config_source: must be ads or self, found path"},
      {"rds { config_source { ads {} } }", ".rds.route_config_name: must not be empty, found \"\""},
  }));
  CHECK(error_in(kRouterFilter + row.routes) == kPlace + row.error);
}

TEST_CASE("parse_listener: max_stream_duration is the default of the routes",
          "[xds][parse][A31-22]") {
  const std::string options = "common_http_protocol_options { max_stream_duration { ";
  CHECK(value_of<Listener>(parse(kRds + kRouterFilter + options + "seconds: 3 } }"))
            .max_stream_duration == 3s);
  CHECK(value_of<Listener>(parse(kRds + kRouterFilter + options + "} }")).max_stream_duration ==
        0s);
  CHECK(value_of<Listener>(parse(kRds + kRouterFilter + "common_http_protocol_options {}"))
            .max_stream_duration == std::nullopt);
}

TEST_CASE("parse_listener: a max_stream_duration out of range is an error",
          "[xds][parse][A31-29][A75-19][A75-20][A75-23]") {
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
  CHECK(error_in(kRds + kRouterFilter + "common_http_protocol_options { max_stream_duration { " +
                 row.duration + " } }") ==
        kPlace + ".common_http_protocol_options.max_stream_duration." + row.error);
}

TEST_CASE("parse_listener: a listener of servers is valid, and of no use to a client",
          "[xds][parse][A36]") {
  const auto more = GENERATE(as<std::string>{}, "", "filter_chains {}", "default_filter_chain {}");
  const auto received = parse_listener(serialise<ListenerProto>(
      R"(name: "orders" address { socket_address { address: "::" port_value: 80 } } )" + more));
  CHECK(std::holds_alternative<SocketListener>(value_of<Listener>(received).routes));
}

TEST_CASE("parse_listener: a client has an API listener", "[xds][parse][A27][A36]") {
  struct Row {
    std::string fields;
    std::string error;
  };

  const auto row = GENERATE_COPY(values<Row>({
      {"", "api_listener: must be set, or address for a listener of servers, found none"},
      {"filter_chains {}",
       "api_listener: must be set, or address for a listener of servers, found none"},
      {"api_listener {}", kPlace + ".type_url: must be " + kManager + ", found \"\""},
      {"api_listener { api_listener { type_url: \"" + kRouter + "\" } }",
       kPlace + ".type_url: must be " + kManager + ", found \"" + kRouter + "\""},
      {"api_listener { api_listener { type_url: \"" + kManager + "\" value: \"\\377\" } }",
       kPlace + ".value: must be of type HttpConnectionManager, found 1 bytes that are not"},
  }));
  DYNAMIC_SECTION(row.fields) {
    CHECK(error_of(parse_listener(serialise<ListenerProto>("name: \"orders\" " + row.fields))) ==
          "LDS resource \"orders\": " + row.error);
  }
}

TEST_CASE("parse_listener: filters that we do not know and need not know are left out",
          "[xds][parse][A39]") {
  const auto received =
      parse(kRds + filter("cors", "type.googleapis.com/x.Cors", "is_optional: true") +
            "http_filters { name: \"later\" is_optional: true config_discovery {} } " +
            kRouterFilter + filter("after", "type.googleapis.com/x.After", "is_optional: true"));
  CHECK(value_of<Listener>(received).filters ==
        std::vector<HttpFilter>{{"router", "envoy.extensions.filters.http.router.v3.Router"}});
}

TEST_CASE("parse_listener: a TypedStruct stands for the type that it names", "[xds][parse][A39]") {
  const auto wrapper =
      GENERATE(as<std::string>{}, "xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct");
  CHECK(value_of<Listener>(parse(kRds + struct_filter("router", wrapper, kRouter))).filters ==
        std::vector<HttpFilter>{{"router", "envoy.extensions.filters.http.router.v3.Router"}});
  CHECK(error_in(kRds + struct_filter("mine", wrapper, "type.googleapis.com/my.Filter") +
                 kRouterFilter) ==
        kPlace +
            ".http_filters[0].typed_config: must be a known filter or is_optional, found "
            "\"my.Filter\": take filter \"mine\" out of http_filters, or set its is_optional");
  CHECK(error_in(kRds + struct_filter("mine", wrapper, "") + kRouterFilter) ==
        kPlace +
            ".http_filters[0].typed_config.value.type_url: must be set in a TypedStruct, "
            "found none");
}

TEST_CASE("parse_listener: a filter chain that is wrong is an error", "[xds][parse][A39]") {
  struct Row {
    const char* when;
    std::string filters;
    std::string error;
  };

  const auto row = GENERATE_COPY(values<Row>({
      {"it is empty", "", ": must have at least one known filter, found 0 entries"},
      {"only an optional unknown one is there",
       filter("a", "type.googleapis.com/x.A", "is_optional: true"),
       ": must have at least one known filter, found 1 entries"},
      {"one is unknown",
       filter("a", "type.googleapis.com/x.A") + kRouterFilter,
       "[0].typed_config: must be a known filter or is_optional, found \"x.A\": take filter \"a\" "
       "out of "
       "http_filters, or set its is_optional"},
      {"one has no name", filter("", kRouter), "[0].name: must not be empty, found \"\""},
      {"a name occurs twice",
       filter("router", "type.googleapis.com/x.A", "is_optional: true") + kRouterFilter,
       "[1].name: must be unique, found \"router\" again"},
      {"one has no configuration",
       "http_filters { name: \"a\" } " + kRouterFilter,
       "[0].typed_config: must be set, found none"},
      {"one is to be discovered",
       "http_filters { name: \"a\" config_discovery {} } " + kRouterFilter,
       "[0].typed_config: must be set, found config_discovery"},
      {"one has no type",
       filter("a", "") + kRouterFilter,
       "[0].typed_config.type_url: must name a type, found \"\""},
      {"a router is not the last",
       filter("first", kRouter) + kRouterFilter,
       ": terminal filter \"first\" must be the last"},
      {"a router is not decodable",
       "http_filters { name: \"router\" typed_config { type_url: \"" + kRouter +
           "\" value: \"\\377\" } }",
       "[0].typed_config.value: must be of type Router, found 1 bytes that are not"},
  }));
  DYNAMIC_SECTION(row.when) {
    CHECK(error_in(kRds + row.filters) == kPlace + ".http_filters" + row.error);
  }
}

TEST_CASE("parse_listener: what would tell callers apart must not be set", "[xds][parse][A41]") {
  CHECK(error_in(kRds + kRouterFilter + "xff_num_trusted_hops: 1") ==
        kPlace + ".xff_num_trusted_hops: must be 0, found 1");
  CHECK(error_in(kRds + kRouterFilter + "original_ip_detection_extensions {}") ==
        kPlace + ".original_ip_detection_extensions: must be empty, found 1 entries");
}

TEST_CASE("parse_listener: every error is told at once", "[xds][parse][A40]") {
  CHECK(error_in("common_http_protocol_options { max_stream_duration { seconds: -7 } }") ==
        kPlace + ": rds or route_config must be set, found none; " + kPlace +
            ".common_http_protocol_options.max_stream_duration.seconds: must be in [0, "
            "315576000000], found -7; " +
            kPlace + ".http_filters: must have at least one known filter, found 0 entries");
}

TEST_CASE("parse_listener: bytes that are none have no name", "[xds][parse]") {
  CHECK(parse_listener("\xff").name.empty());
  CHECK(error_of(parse_listener("\xff")) ==
        "LDS resource must be a Listener, found 1 bytes that are not");
}

}  // namespace signalbox::xds::parse_listener_test
