// SPDX-License-Identifier: Apache-2.0
//
// The configurations of HTTP filters, and their overrides in virtual hosts, routes and weighted
// clusters. parse_listener_test has more tests of the chain of filters.
#include <atomic>
#include <chrono>

#include "absl/strings/escaping.h"
#include <catch2/catch.hpp>

#include "messages/listener.hpp"
#include "signalbox/envoy/config/listener/v3/listener.pb.h"
#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "tests/support/parse_options.hpp"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/limits.hpp"
#include "xds/parse/listener.hpp"
#include "xds/parse/parse_resource.hpp"
#include "xds/parse/route_config.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds::parse_http_filter_test {
namespace {

using namespace std::chrono_literals;
using ListenerProto = envoy::config::listener::v3::Listener;
using envoy::config::route::v3::RouteConfiguration;

const std::string kApi = "type.googleapis.com/";
const std::string kFilters = kApi + "envoy.extensions.filters.http.";
const std::string kSession = kFilters + "stateful_session.v3.StatefulSession";
const std::string kCookieState =
    kApi + "envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState";
const std::string kFault = kFilters + "fault.v3.HTTPFault";
const std::string kPlace = "api_listener.api_listener.http_filters[0]";
const std::string kValue = kPlace + ".typed_config.value";
const std::string kState = kValue + ".session_state.typed_config";

// A listener with one filter before the router.
ReceivedResource parse(const std::string& typed_config,
                       const std::string& more = "",
                       const ParseOptions& options = all_parse_options()) {
  return parse_listener(
      serialise<ListenerProto>(
          R"(name: "orders" api_listener { api_listener { [)" + kApi +
          "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager] { "
          "rds { config_source { ads {} } route_config_name: \"r\" } http_filters { name: \"it\" "
          "typed_config { " +
          typed_config + " } " + more + "} http_filters { name: \"router\" typed_config { [" +
          kFilters + "router.v3.Router] {} } } } } }"),
      options);
}

std::string without_prefix(std::string error, const std::string& prefix) {
  return error.rfind(prefix, 0) == 0 ? error.substr(prefix.size()) : error;
}

std::string error_in(const std::string& typed_config) {
  return without_prefix(error_of(parse(typed_config)), R"(LDS resource "orders": )");
}

std::string of(const std::string& type, const std::string& fields) {
  return "[" + type + "] { " + fields + " }";
}

std::string cookie(const std::string& fields) {
  return "session_state { typed_config { " + of(kCookieState, "cookie { " + fields + " }") +
         " } } ";
}

std::string session(const std::string& fields) {
  return of(kSession, fields);
}

template <typename Config>
Config config_of(const std::string& typed_config) {
  const auto filters = value_of<Listener>(parse(typed_config)).filters;
  REQUIRE(filters.size() == 2);
  CHECK(filters[0].name == "it");
  CHECK(filters[1].config == HttpFilterConfig{RouterFilter{}});
  REQUIRE(std::holds_alternative<Config>(filters[0].config));
  return std::get<Config>(filters[0].config);
}

StatefulSessionFilter pinned_by(SessionCookie cookie, bool strict = false) {
  return {std::move(cookie), strict};
}

}  // namespace

// --- stateful_session ---------------------------------------------------------------

TEST_CASE("parse_listener: a session's cookie has a name, perhaps a path and a time to live",
          "[xds][parse][A55-6][A55-8][A55-10][A55-11][A55-43]") {
  struct Row {
    const char* rule;
    std::string fields;
    StatefulSessionFilter filter;
  };

  const auto row = GENERATE(values<Row>({
      {"A55-8: without session_state it does nothing", "", {}},
      {"A55-8: strictly nothing", "strict: true", {std::nullopt, true}},
      {"A55-10: all paths, A55-11: no time", cookie("name: \"s\""), pinned_by({"s", "", 0s})},
      {"A55-10: a path", cookie("name: \"s\" path: \"/a/b\""), pinned_by({"s", "/a/b", 0s})},
      {"A55-11: a time",
       cookie("name: \"s\" ttl { seconds: 120 nanos: 1 }"),
       pinned_by({"s", "", 120s + 1ns})},
      {"A55-11: no time, said", cookie("name: \"s\" ttl {}"), pinned_by({"s", "", 0s})},
      {"A55-43: strict", cookie("name: \"s\"") + "strict: true", pinned_by({"s", "", 0s}, true)},
      {"RFC 6265: every character of a token",
       cookie("name: \"!#$%&'*+-.^_`|~09azAZ\""),
       pinned_by({"!#$%&'*+-.^_`|~09azAZ", "", 0s})},
  }));
  DYNAMIC_SECTION(row.rule) {
    CHECK(config_of<StatefulSessionFilter>(session(row.fields)) == row.filter);
  }
}

TEST_CASE("parse_listener: a session that cannot be kept is an error",
          "[xds][parse][A55-7][A55-8][A55-9][A55-11][A55-13][A75-23]") {
  const std::string in_cookie = kState + ".value.cookie";

  struct Row {
    const char* rule;
    std::string fields;
    std::string error;
  };

  const auto row = GENERATE_COPY(values<Row>({
      {"A55-7: another state",
       session("session_state { typed_config { type_url: \"" + kApi +
               "envoy.extensions.http.stateful_session.header.v3.HeaderBasedSessionState\" } }"),
       kState + ".type_url: must be " + kCookieState +
           ", found \"envoy.extensions.http.stateful_session.header.v3.HeaderBasedSessionState\""},
      {"A55-7: no state", session("session_state {}"), kState + ": must be set, found none"},
      {"A55-7: undecodable",
       session("session_state { typed_config { type_url: \"" + kCookieState +
               "\" value: \"\\377\" } }"),
       kState + ".value: must be of type CookieBasedSessionState, found 1 bytes that are not"},
      {"A55-8: no cookie",
       session("session_state { typed_config { [" + kCookieState + "] {} } }"),
       in_cookie + ": must be set, found none"},
      {"A55-9: no name", session(cookie("")), in_cookie + ".name: must not be empty, found \"\""},
      {"RFC 6265: no token",
       session(cookie("name: \"a;b\"")),
       in_cookie + ".name: must be a token as of RFC 6265, found \"a;b\""},
      {"RFC 6265: a line break in the name",
       session(cookie("name: \"a\\r\\nb\"")),
       in_cookie + ".name: must be a token as of RFC 6265, found \"a\\r\\nb\""},
      {"RFC 6265: a name beyond ASCII",
       session(cookie("name: \"\\303\\244\"")),
       in_cookie + ".name: must be a token as of RFC 6265, found \"ä\""},
      {"RFC 6265: an attribute in the path",
       session(cookie("name: \"s\" path: \"/; Domain=x\"")),
       in_cookie + ".path: must be of printable ASCII without ';', found \"/; Domain=x\""},
      {"RFC 6265: a line break in the path",
       session(cookie("name: \"s\" path: \"/\\n\"")),
       in_cookie + ".path: must be of printable ASCII without ';', found \"/\\n\""},
      {"RFC 6265: a path beyond ASCII",
       session(cookie("name: \"s\" path: \"/\\303\\244\"")),
       in_cookie + ".path: must be of printable ASCII without ';', found \"/ä\""},
      {"A55-11: a negative time",
       session(cookie("name: \"s\" ttl { seconds: -1 }")),
       in_cookie + ".ttl.seconds: must be in [0, 315576000000], found -1"},
      {"A55-13: undecodable",
       "type_url: \"" + kSession + "\" value: \"\\377\"",
       kValue + ": must be of type StatefulSession, found 1 bytes that are not"},
  }));
  DYNAMIC_SECTION(row.rule) {
    CHECK(error_in(row.fields) == row.error);
  }
}

TEST_CASE("parse_listener: a cookie's name is made of the characters of a token",
          "[xds][parse][A55-9]") {
  const std::string tokens =
      "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (int character = 1; character < 128; ++character) {
    const std::string name = std::string("s") + static_cast<char>(character);
    const auto received = parse(session(cookie("name: \"" + absl::CEscape(name) + "\"")));
    INFO(character);
    CHECK(received.resource.ok() == (tokens.find(name.back()) != std::string::npos));
  }
}

TEST_CASE("parse_listener: a cookie's name and path are not endless", "[xds][parse][limits]") {
  const std::string endless(kMaxNameLength + 1, 'x');
  const auto field = GENERATE(as<std::string>{}, "name", "path");
  const std::string name = field == "name" ? "" : "name: \"s\" ";
  const auto received = parse(session(cookie(name + field + ": \"" + endless + "\"")));
  CHECK(error_of(received).find("cookie." + field + ": must not be longer than 1024 bytes") !=
        std::string::npos);
  CHECK(received.rejection == Rejection{RejectionReason::kLimit, "max_name_length"});
}

TEST_CASE("parse_listener: a filter that the runtime lacks is unknown",
          "[xds][parse][A39][A55-40][A55-41]") {
  ParseOptions without_affinity = all_parse_options();
  without_affinity.session_affinity = false;
  ParseOptions only_faults;
  only_faults.http_filters = {"router", "fault"};
  const ParseOptions options = GENERATE(true, false) ? without_affinity : only_faults;
  CHECK(error_of(parse(session(""), "", options)) ==
        R"(LDS resource "orders": )" + kPlace +
            ".typed_config: must be a known filter or is_optional, found "
            "\"envoy.extensions.filters.http.stateful_session.v3.StatefulSession\": take filter "
            "\"it\" out of http_filters, or set its is_optional");
  const auto received = parse(session(""), "is_optional: true", options);
  CHECK(value_of<Listener>(received).filters.size() == 1);
}

TEST_CASE("parse_listener: an optional filter that is known must still be right",
          "[xds][parse][A39]") {
  CHECK_FALSE(parse(session(cookie("")), "is_optional: true").resource.ok());
}

TEST_CASE("parse_listener: the last filter is the one that answers the call", "[xds][parse][A39]") {
  const auto received = parse_listener(
      serialise<ListenerProto>(
          R"(name: "orders" api_listener { api_listener { [)" + kApi +
          "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager] { "
          "rds { config_source { ads {} } route_config_name: \"r\" } http_filters { name: \"it\" "
          "typed_config { " +
          session("") + " } } } } }"),
      all_parse_options());
  CHECK(error_of(received) ==
        "LDS resource \"orders\": api_listener.api_listener.http_filters: the last filter must be "
        "terminal, found \"it\" of type "
        "envoy.extensions.filters.http.stateful_session.v3.StatefulSession");
}

TEST_CASE("parse_listener: a filter of the chain may be disabled", "[xds][parse][A39]") {
  CHECK(value_of<Listener>(parse(session(""), "disabled: true")).filters.at(0).disabled);
  CHECK_FALSE(value_of<Listener>(parse(session(""))).filters.at(0).disabled);
}

TEST_CASE("parse_listener: a structure is read as the filter's configuration",
          "[xds][parse][A39]") {
  const auto wrapper =
      GENERATE(as<std::string>{}, "xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct");
  const std::string state =
      R"(fields { key: "session_state" value { struct_value {
           fields { key: "name" value { string_value: "x" } }
           fields { key: "typed_config" value { struct_value {
             fields { key: "@type" value { string_value: ")" +
      kCookieState + R"(" } }
             fields { key: "cookie" value { struct_value {
               fields { key: "name" value { string_value: "s" } }
               fields { key: "ttl" value { string_value: "1.5s" } } } } } } } } } } })";
  CHECK(config_of<StatefulSessionFilter>(
            of(kApi + wrapper, "type_url: \"" + kSession + "\" value { " + state + " }")) ==
        pinned_by({"s", "", 1500ms}));
}

// --- fault --------------------------------------------------------------------------

TEST_CASE("parse_listener: a fault delays, aborts, or is told by headers", "[xds][parse][A33]") {
  const FaultFilter none;
  CHECK(config_of<FaultFilter>(of(kFault, "")) == none);

  FaultFilter fixed;
  fixed.delay = FaultFilter::Delay{5s, {3, 10'000}};
  fixed.abort = FaultFilter::Abort{absl::StatusCode::kResourceExhausted, {4, 1'000'000}};
  fixed.max_active_faults = 7;
  CHECK(config_of<FaultFilter>(of(kFault, R"(
          delay { fixed_delay { seconds: 5 } percentage { numerator: 3 denominator: TEN_THOUSAND } }
          abort { grpc_status: 8 percentage { numerator: 4 denominator: MILLION } }
          max_active_faults { value: 7 })")) == fixed);

  FaultFilter by_header;
  by_header.delay = FaultFilter::Delay{std::nullopt, {100, 100}};
  by_header.abort = FaultFilter::Abort{std::nullopt, {0, 100}};
  CHECK(config_of<FaultFilter>(of(kFault, R"(
          delay { header_delay {} percentage { numerator: 101 } }
          abort { header_abort {} })")) == by_header);
}

TEST_CASE("parse_listener: a fault's status is gRPC's, or HTTP's by gRPC's mapping",
          "[xds][parse][A33]") {
  using Code = absl::StatusCode;

  struct Row {
    std::string status;
    Code code;
  };

  const auto row = GENERATE(values<Row>({
      {"grpc_status: 0", Code::kOk},
      {"grpc_status: 16", Code::kUnauthenticated},
      {"http_status: 200", Code::kUnknown},
      {"http_status: 400", Code::kInternal},
      {"http_status: 401", Code::kUnauthenticated},
      {"http_status: 403", Code::kPermissionDenied},
      {"http_status: 404", Code::kUnimplemented},
      {"http_status: 429", Code::kUnavailable},
      {"http_status: 500", Code::kUnknown},
      {"http_status: 502", Code::kUnavailable},
      {"http_status: 503", Code::kUnavailable},
      {"http_status: 504", Code::kUnavailable},
      {"http_status: 599", Code::kUnknown},
  }));
  CAPTURE(row.status);
  CHECK(config_of<FaultFilter>(of(kFault, "abort { " + row.status + " }")).abort->status ==
        row.code);
}

TEST_CASE("parse_listener: a fault that cannot be is an error", "[xds][parse][A33][A75-23]") {
  struct Row {
    std::string fields;
    std::string error;
  };

  const auto row = GENERATE(values<Row>({
      {"abort { grpc_status: 17 }", ".abort.grpc_status: must be in [0, 16], found 17"},
      {"abort { http_status: 199 }", ".abort.http_status: must be in [200, 599], found 199"},
      {"abort { http_status: 600 }", ".abort.http_status: must be in [200, 599], found 600"},
      {"abort {}",
       ".abort.error_type: must be grpc_status, http_status or header_abort, found none"},
      {"abort { grpc_status: 1 percentage { denominator: 3 } }",
       ".abort.percentage.denominator: must be HUNDRED, TEN_THOUSAND or MILLION, found 3"},
      {"delay { fixed_delay { nanos: -1 } }",
       ".delay.fixed_delay.nanos: must be in [0, 999999999], found -1"},
      {"delay {}", ".delay.fault_delay_secifier: must be fixed_delay or header_delay, found none"},
      {"delay { header_delay {} percentage { denominator: 3 } }",
       ".delay.percentage.denominator: must be HUNDRED, TEN_THOUSAND or MILLION, found 3"},
  }));
  CHECK(error_in(of(kFault, row.fields)) == kValue + row.error);
}

// --- overrides ----------------------------------------------------------------------

namespace {

ReceivedResource parse_routes(const std::string& virtual_host,
                              const ParseOptions& options = all_parse_options()) {
  return parse_route_config(
      serialise<RouteConfiguration>("name: \"r\" virtual_hosts { domains: \"*\" " + virtual_host +
                                    " }"),
      options);
}

std::string override_with(const std::string& config, const std::string& name = "it") {
  return "typed_per_filter_config { key: \"" + name + "\" value { " + config + " } } ";
}

std::string per_route(const std::string& fields) {
  return of(kSession + "PerRoute", fields);
}

std::string filter_config(const std::string& fields) {
  return of(kApi + "envoy.config.route.v3.FilterConfig", fields);
}

}  // namespace

TEST_CASE("parse_route_config: hosts, routes and cluster weights override filters",
          "[xds][parse][A39][A55-12]") {
  const auto received = parse_routes(
      override_with(per_route("disabled: true")) + "routes { match { prefix: \"\" } " +
      override_with(per_route("stateful_session { " + cookie("name: \"route\"") + " }")) +
      "route { weighted_clusters { clusters { name: \"a\" weight { value: 1 } " +
      override_with(per_route("stateful_session { " + cookie("name: \"cluster\"") + " }")) +
      override_with(of(kFault, "abort { grpc_status: 14 }"), "fault") +
      "} clusters { name: \"b\" weight { value: 1 } } } } }");
  const VirtualHost& host = value_of<RouteConfig>(received).virtual_hosts.at(0);
  CHECK(host.filter_overrides ==
        FilterOverrides{{"it", HttpFilterConfig{StatefulSessionFilter{}}}});
  const Route& route = host.routes.at(0);
  CHECK(route.filter_overrides ==
        FilterOverrides{{"it", HttpFilterConfig{pinned_by({"route", "", 0s})}}});
  const auto& clusters = std::get<ForwardAction>(route.action).clusters;
  FaultFilter fault;
  fault.abort = FaultFilter::Abort{absl::StatusCode::kUnavailable, {}};
  CHECK(clusters.at(0).filter_overrides ==
        FilterOverrides{{"fault", HttpFilterConfig{fault}},
                        {"it", HttpFilterConfig{pinned_by({"cluster", "", 0s})}}});
  CHECK(clusters.at(1).filter_overrides.empty());
}

TEST_CASE("parse_route_config: what an override comes to", "[xds][parse][A39][A41][A55-12]") {
  using Parsed = std::optional<std::optional<HttpFilterConfig>>;  // nullopt: no override.
  const std::string pinned = per_route("stateful_session { " + cookie("name: \"s\"") + " }");
  const HttpFilterConfig to_pin = pinned_by({"s", "", 0s});
  const HttpFilterConfig to_nothing = StatefulSessionFilter{};

  struct Row {
    const char* rule;
    std::string config;
    Parsed parsed;
  };

  const auto row = GENERATE_COPY(values<Row>({
      {"A55-12: disabled", per_route("disabled: true"), to_nothing},
      {"A55-12: a session in its place", pinned, to_pin},
      {"A55-12: nothing in its place", per_route(""), to_nothing},
      {"A55-12: not disabled, and nothing in its place", per_route("disabled: false"), to_nothing},
      {"A39: wrapped", filter_config("config { " + pinned + " }"), to_pin},
      {"A39: wrapped twice",
       filter_config("config { " + filter_config("config { " + pinned + " }") + " }"),
       to_pin},
      {"A39: switched off by the wrapper",
       filter_config("disabled: true"),
       std::optional<HttpFilterConfig>{}},
      {"A39: switched off, whatever is in it",
       filter_config("disabled: true config { " + pinned + " }"),
       std::optional<HttpFilterConfig>{}},
      {"A39: unknown but optional",
       filter_config("is_optional: true config { type_url: \"" + kApi + "x.Y\" }"),
       std::nullopt},
      {"A41: for servers alone",
       "type_url: \"" + kFilters + "rbac.v3.RBACPerRoute\" value: \"any\"",
       std::nullopt},
  }));
  DYNAMIC_SECTION(row.rule) {
    const auto received = parse_routes(override_with(row.config));
    const auto& overrides = value_of<RouteConfig>(received).virtual_hosts.at(0).filter_overrides;
    const auto found = overrides.find("it");
    CHECK((found == overrides.end() ? Parsed{} : Parsed{found->second}) == row.parsed);
  }
}

TEST_CASE("parse_route_config: wrong overrides are told in the order of their names, every time",
          "[xds][parse][A39]") {
  std::string overrides;
  std::string errors;
  for (const char letter : std::string("gaebhdcf"))
    overrides += override_with("", std::string(1, letter));
  for (const char letter : std::string("abcdefgh")) {
    errors += errors.empty() ? "" : "; ";
    errors += std::string("virtual_hosts[0].typed_per_filter_config[\"") + letter +
              "\"].type_url: must name a type, found \"\"";
  }
  CHECK(error_of(parse_routes(overrides +
                              "routes { match { prefix: \"\" } route { cluster: \"c\" } }")) ==
        "RDS resource \"r\": " + errors);
}

TEST_CASE("parse_route_config: an override that is wrong is an error",
          "[xds][parse][A39][A55-12][A55-13]") {
  const std::string place = R"(virtual_hosts[0].typed_per_filter_config["it"])";
  const std::string unknown = ": must be a known filter or is_optional, found ";
  const std::string remedy =
      ": take \"it\" out of typed_per_filter_config, or wrap it in a FilterConfig with is_optional";

  struct Row {
    const char* rule;
    std::string config;
    std::string error;
  };

  const auto row = GENERATE_COPY(values<Row>({
      {"A55-9: its cookie has no name",
       per_route("stateful_session { " + cookie("") + " }"),
       place + ".value.stateful_session.session_state.typed_config.value.cookie.name: must not be "
               "empty, found \"\""},
      {"A39: the filter's own type, not the override's",
       session(""),
       place + ": must be what overrides a filter, found "
               "envoy.extensions.filters.http.stateful_session.v3.StatefulSession"},
      {"A39: unknown", "type_url: \"" + kApi + "x.Y\"", place + unknown + "\"x.Y\"" + remedy},
      {"A39: unknown, switched off or not",
       filter_config("disabled: true config { type_url: \"" + kApi + "x.Y\" }"),
       place + unknown + "\"x.Y\"" + remedy},
      {"A39: a structure for something unknown",
       of(kApi + "xds.type.v3.TypedStruct", "type_url: \"" + kApi + "x.Y\""),
       place + unknown + "\"x.Y\"" + remedy},
      {"A39: a wrapper around nothing",
       filter_config("is_optional: true"),
       place + ".config: must be set, found none"},
      {"A39: undecodable",
       "type_url: \"" + kSession + "PerRoute\" value: \"\\377\"",
       place + ".value: must be of type StatefulSessionPerRoute, found 1 bytes that are not"},
      {"A39: an undecodable wrapper",
       "type_url: \"" + kApi + "envoy.config.route.v3.FilterConfig\" value: \"\\377\"",
       place + ".value: must be of type FilterConfig, found 1 bytes that are not"},
  }));
  DYNAMIC_SECTION(row.rule) {
    CHECK(error_of(parse_routes(override_with(row.config))) == R"(RDS resource "r": )" + row.error);
  }
}

TEST_CASE("parse_route_config: what one of several wrappers says holds", "[xds][parse][A39]") {
  const std::string unknown = "config { type_url: \"" + kApi + "x.Y\" }";
  const auto of_host = [](const std::string& config) {
    const auto received = parse_routes(override_with(config));
    return value_of<RouteConfig>(received).virtual_hosts.at(0).filter_overrides;
  };
  CHECK(of_host(filter_config("is_optional: true config { " + filter_config(unknown) + " }"))
            .empty());
  CHECK(of_host(filter_config("config { " + filter_config("is_optional: true " + unknown) + " }"))
            .empty());
  const FilterOverrides off = {{"it", std::nullopt}};
  const std::string session_override = "config { " + per_route("") + " }";
  CHECK(of_host(filter_config("disabled: true config { " + filter_config(session_override) +
                              " }")) == off);
  CHECK(of_host(filter_config("config { " + filter_config("disabled: true " + session_override) +
                              " }")) == off);
}

TEST_CASE("parse_route_config: overrides need not name a filter that exists, but one",
          "[xds][parse][A39]") {
  CHECK(parse_routes(override_with(per_route(""), "nobody")).resource.ok());
  CHECK(error_of(parse_routes(override_with(per_route(""), ""))) ==
        R"(RDS resource "r": virtual_hosts[0].typed_per_filter_config[""]: the key must name a )"
        R"(filter, found "")");
}

TEST_CASE("parse_route_config: the override of a filter that the runtime lacks is unknown",
          "[xds][parse][A39][A55-41]") {
  ParseOptions options;
  options.session_affinity = false;
  CHECK_FALSE(parse_routes(override_with(per_route("")), options).resource.ok());
  CHECK(parse_routes(
            override_with(filter_config("is_optional: true config { " + per_route("") + " }")),
            options)
            .resource.ok());
}

// --- filters that the program registered ----------------------------------------------

namespace {

struct Idle final : CallFilter {
  void apply(FilterCall&) const override {}
};

// Options with two registered filters. com.example.Tenant accepts every configuration but "no"; its
// overrides are of the type com.example.PerRoute. com.example.Plain has no overrides.
ParseOptions with_tenant() {
  const CustomFilterParser parse =
      [](const RawFilterConfig& config) -> absl::StatusOr<CallFilterPtr> {
    if (config.text == "no" || config.text == R"({"tenant":"no"})")
      return absl::InvalidArgumentError("tenant: must be another, found \"no\"");
    return std::make_shared<const Idle>();
  };
  ParseOptions options;
  options.custom_http_filters = std::make_shared<const CustomFilters>(
      CustomFilters{{"com.example.Tenant", {parse, "com.example.PerRoute", parse}},
                    {"com.example.Plain", {parse, "", nullptr}}});
  return options;
}

std::string bytes_of(const std::string& type, const std::string& bytes) {
  return "type_url: \"" + kApi + type + "\" value: \"" + bytes + "\"";
}

std::string structure_of(const std::string& type, const std::string& tenant) {
  return of(kApi + "xds.type.v3.TypedStruct",
            "type_url: \"" + kApi + type +
                "\" value { fields { key: \"tenant\" value { string_value: \"" + tenant +
                "\" } } }");
}

}  // namespace

TEST_CASE("parse_listener: a registered filter is read from bytes, or from a structure",
          "[xds][parse][custom][A39]") {
  const auto read = [](const std::string& config) {
    const auto filters = value_of<Listener>(parse(config, "", with_tenant())).filters;
    REQUIRE(filters.size() == 2);
    CHECK(filters[0].type == "com.example.Tenant");
    return std::get<CustomFilter>(filters[0].config);
  };
  const CustomFilter bytes = read(bytes_of("com.example.Tenant", "yes"));
  CHECK(bytes.type == "com.example.Tenant");
  CHECK(bytes.raw == RawFilterConfig{false, "yes"});
  CHECK(bytes.filter != nullptr);
  const CustomFilter structure = read(structure_of("com.example.Tenant", "yes"));
  CHECK(structure.raw == RawFilterConfig{true, R"({"tenant":"yes"})"});
  CHECK(structure.filter != nullptr);
  CHECK(bytes == read(bytes_of("com.example.Tenant", "yes")));
  CHECK_FALSE(bytes == read(bytes_of("com.example.Tenant", "other")));
  CHECK_FALSE(bytes == structure);
}

TEST_CASE("parse_listener: what a registered filter's parser refuses is an error of the resource",
          "[xds][parse][custom][A39]") {
  const std::string error = R"(LDS resource "orders": )" + kValue +
                            ": must be a configuration of com.example.Tenant: tenant: must be "
                            "another, found \"no\"";
  CHECK(error_of(parse(bytes_of("com.example.Tenant", "no"), "", with_tenant())) == error);
  CHECK(error_of(parse(structure_of("com.example.Tenant", "no"), "", with_tenant())) == error);
  // is_optional permits an unknown filter, but no invalid configuration.
  CHECK_FALSE(parse(bytes_of("com.example.Tenant", "no"), "is_optional: true", with_tenant())
                  .resource.ok());
}

TEST_CASE("parse_listener: a filter that nobody registered is unknown",
          "[xds][parse][custom][A39]") {
  for (const char* type : {"com.example.Other", "com.example.PerRoute"}) {
    CHECK(error_of(parse(bytes_of(type, ""), "", with_tenant())) ==
          R"(LDS resource "orders": )" + kPlace +
              ".typed_config: must be a known filter or is_optional, found \"" + type +
              "\": take filter \"it\" out of http_filters, or set its is_optional");
    CHECK(value_of<Listener>(parse(bytes_of(type, ""), "is_optional: true", with_tenant()))
              .filters.size() == 1);
  }
}

TEST_CASE("parse_route_config: no route is read once the parsing was abandoned",
          "[xds][parse][custom]") {
  const auto abandoned = std::make_shared<std::atomic<bool>>(false);
  int read = 0;
  const CustomFilterParser parse = [&](const RawFilterConfig&) -> absl::StatusOr<CallFilterPtr> {
    if (++read == 10) abandoned->store(true);
    return std::make_shared<const Idle>();
  };
  ParseOptions options;
  options.abandoned = abandoned;
  options.custom_http_filters = std::make_shared<const CustomFilters>(
      CustomFilters{{"com.example.Tenant", {parse, "com.example.PerRoute", parse}}});
  std::string text = "name: \"r\" virtual_hosts { domains: \"*\" ";
  for (int i = 0; i < 1000; ++i) {
    text +=
        "routes { match { prefix: \"/\" } route { cluster: \"c\" } "
        "typed_per_filter_config { key: \"it\" value { " +
        bytes_of("com.example.PerRoute", "") + " } } } ";
  }
  const auto type = ResourceType::kRouteConfig;
  const auto received =
      parse_resource(type, type_url_of(type), serialise<RouteConfiguration>(text + "}"), options);
  CHECK(absl::IsCancelled(received.resource.status()));
  CHECK(read == 10);
}

TEST_CASE("parse_listener: a registered filter cannot be the last", "[xds][parse][custom][A39]") {
  const auto received = parse_listener(
      serialise<ListenerProto>(
          R"(name: "orders" api_listener { api_listener { [)" + kApi +
          "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager] { "
          "rds { config_source { ads {} } route_config_name: \"r\" } http_filters { name: \"it\" "
          "typed_config { " +
          bytes_of("com.example.Tenant", "") + " } } } } }"),
      with_tenant());
  CHECK(error_of(received) ==
        R"(LDS resource "orders": api_listener.api_listener.http_filters: the last filter must be )"
        R"(terminal, found "it" of type com.example.Tenant)");
}

TEST_CASE("parse_route_config: a registered filter's overrides are of their own type",
          "[xds][parse][custom][A39]") {
  const std::string place = R"(RDS resource "r": virtual_hosts[0].typed_per_filter_config["it"])";
  const auto read = [](const std::string& config) {
    return parse_routes(override_with(config), with_tenant());
  };
  const auto received = read(bytes_of("com.example.PerRoute", "yes"));
  const auto& overrides = value_of<RouteConfig>(received).virtual_hosts.at(0).filter_overrides;
  const auto& custom = std::get<CustomFilter>(*overrides.at("it"));
  CHECK(custom.type == "com.example.Tenant");  // The type of the filter, not of its override.
  CHECK(custom.raw == RawFilterConfig{false, "yes"});
  CHECK(custom.filter != nullptr);
  CHECK(error_of(read(bytes_of("com.example.PerRoute", "no"))) ==
        place +
            ".value: must be a configuration of com.example.PerRoute: tenant: must be another, "
            "found \"no\"");
  CHECK(error_of(read(bytes_of("com.example.Plain", ""))) ==
        place + ": must be what overrides a filter, found com.example.Plain");
  CHECK(error_of(read(bytes_of("com.example.Other", ""))) ==
        place +
            ": must be a known filter or is_optional, found \"com.example.Other\": take \"it\" out "
            "of "
            "typed_per_filter_config, or wrap it in a FilterConfig with is_optional");
}

}  // namespace signalbox::xds::parse_http_filter_test
