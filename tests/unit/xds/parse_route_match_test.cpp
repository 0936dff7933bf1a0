// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include <catch2/catch.hpp>
#include <unistd.h>

#include "messages/route_config.hpp"
#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/limits.hpp"
#include "xds/parse/route_config.hpp"

namespace signalbox::xds::parse_route_match_test {
namespace {

using envoy::config::route::v3::RouteConfiguration;
using Kind = TextMatcher::Kind;

RouteConfiguration config_with(const std::string& match) {
  return from_text<RouteConfiguration>(
      R"(name: "routes" virtual_hosts { domains: "*" routes { match { )" + match +
      R"( } route { cluster: "c" } } })");
}

ReceivedResource parse(const std::string& match, const ParseOptions& options = {}) {
  return parse_route_config(config_with(match).SerializeAsString(), options);
}

RouteMatch match_of(const std::string& match) {
  const auto received = parse(match);
  const auto& routes = value_of<RouteConfig>(received).virtual_hosts.at(0).routes;
  REQUIRE(routes.size() == 1);
  return routes[0].match;
}

std::string error_in(const std::string& match) {
  const std::string error = error_of(parse(match));
  const std::string prefix = R"(RDS resource "routes": virtual_hosts[0].routes[0].match.)";
  return error.rfind(prefix, 0) == 0 ? error.substr(prefix.size()) : error;
}

std::string header(const std::string& matcher) {
  return R"(prefix: "" headers { name: "x-User" )" + matcher + " }";
}

}  // namespace

TEST_CASE("parse_route_match: a path is a prefix, exact or a regex", "[xds][parse][A28][A63]") {
  struct Row {
    std::string match;
    TextMatcher path;
  };

  const auto row = GENERATE(values<Row>({
      {R"(prefix: "")", {Kind::kPrefix, "", false}},
      {R"(prefix: "/s/")", {Kind::kPrefix, "/s/", false}},
      {R"(path: "/s/m")", {Kind::kExact, "/s/m", false}},
      {R"(safe_regex { regex: "/s/.*" })", {Kind::kRegex, "/s/.*", false}},
      {R"(safe_regex { google_re2 {} regex: "/s/.*" })", {Kind::kRegex, "/s/.*", false}},
      {R"(prefix: "/S" case_sensitive { value: false })", {Kind::kPrefix, "/S", true}},
      {R"(path: "/S/M" case_sensitive { value: false })", {Kind::kExact, "/S/M", true}},
      {R"(path: "/S/M" case_sensitive { value: true })", {Kind::kExact, "/S/M", false}},
      {R"(safe_regex { regex: "/S" } case_sensitive { value: false })",
       {Kind::kRegex, "/S", false}},
  }));
  DYNAMIC_SECTION(row.match) {
    CHECK(match_of(row.match) == RouteMatch{row.path, {}, {}});
  }
}

TEST_CASE("parse_route_match: any other path is an error", "[xds][parse][A28]") {
  const std::string place = "path_specifier: must be prefix, path or safe_regex, found ";
  CHECK(error_in("") == place + "none");
  CHECK(error_in("connect_matcher {}") == place + "connect_matcher");
  CHECK(error_in("path_separated_prefix: \"/a\"") == place + "path_separated_prefix");
  CHECK(error_in("path_match_policy {}") == place + "path_match_policy");
}

TEST_CASE("parse_route_match: the legacy regex is an error", "[xds][parse][A28]") {
  // The v2 API had the field `regex` with number 3. The v3 API has no such field.
  RouteConfiguration config = config_with("");
  auto* match = config.mutable_virtual_hosts(0)->mutable_routes(0)->mutable_match();
  match->GetReflection()->MutableUnknownFields(match)->AddLengthDelimited(3, "/s/.*");
  CHECK(error_of(parse_route_config(config.SerializeAsString()))
            .find("match.path_specifier: must be prefix, path or safe_regex, found none") !=
        std::string::npos);
}

TEST_CASE("parse_route_match: a bad regex writes nothing to stderr", "[xds][parse][A28]") {
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(::fileno(file), STDERR_FILENO);
  const std::string error = error_in(R"(safe_regex { regex: "a(" })");
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  CHECK_FALSE(error.empty());
  CHECK(::lseek(::fileno(file), 0, SEEK_END) == 0);
  std::fclose(file);
}

TEST_CASE("parse_route_match: a regex compiles and is not endless", "[xds][parse][A28][limits]") {
  CHECK(error_in(R"(safe_regex { regex: "a(" })") ==
        "safe_regex.regex: must be an RE2 pattern, found \"a(\": missing ): a(");
  CHECK(error_in(header(R"(safe_regex_match { regex: "[" })")) ==
        "headers[0].safe_regex_match.regex: must be an RE2 pattern, found \"[\": missing ]: [");
  CHECK(error_in(header(R"(string_match { safe_regex { regex: "*" } })")) ==
        "headers[0].string_match.safe_regex.regex: must be an RE2 pattern, found \"*\": "
        "no argument for repetition operator: *");
  const std::string longest(kMaxRegexLength, 'a');
  CHECK(error_in("safe_regex { regex: \"" + longest + "\" }").empty());
  CHECK(
      error_in("safe_regex { regex: \"a" + longest + "\" }") ==
      "safe_regex.regex: must not be longer than 4096 bytes, found 4097 (limit max_regex_length)");
}

TEST_CASE("parse_route_match: headers are matched in every way of gRPC", "[xds][parse][A28][A63]") {
  struct Row {
    std::string matcher;
    decltype(HeaderMatcher::matcher) parsed;
  };

  const auto row = GENERATE(values<Row>({
      {R"(exact_match: "v")", TextMatcher{Kind::kExact, "v", false}},
      {R"(prefix_match: "v")", TextMatcher{Kind::kPrefix, "v", false}},
      {R"(suffix_match: "v")", TextMatcher{Kind::kSuffix, "v", false}},
      {R"(contains_match: "v")", TextMatcher{Kind::kContains, "v", false}},
      {R"(safe_regex_match { regex: "v+" })", TextMatcher{Kind::kRegex, "v+", false}},
      {"range_match { start: -5 end: 5 }", IntegerRange{-5, 5}},
      {"range_match { start: 5 end: 5 }", IntegerRange{5, 5}},
      {"present_match: true", PresenceMatcher{true}},
      {"present_match: false", PresenceMatcher{false}},
      {R"(string_match { exact: "v" })", TextMatcher{Kind::kExact, "v", false}},
      {R"(string_match { exact: "V" ignore_case: true })", TextMatcher{Kind::kExact, "V", true}},
      {R"(string_match { prefix: "v" ignore_case: true })", TextMatcher{Kind::kPrefix, "v", true}},
      {R"(string_match { suffix: "v" ignore_case: true })", TextMatcher{Kind::kSuffix, "v", true}},
      {R"(string_match { contains: "v" ignore_case: true })",
       TextMatcher{Kind::kContains, "v", true}},
      {R"(string_match { safe_regex { regex: "v" } ignore_case: true })",
       TextMatcher{Kind::kRegex, "v", false}},
  }));
  DYNAMIC_SECTION(row.matcher) {
    CHECK(match_of(header(row.matcher)).headers ==
          std::vector<HeaderMatcher>{{"x-user", row.parsed, false}});
    CHECK(match_of(header(row.matcher + " invert_match: true")).headers ==
          std::vector<HeaderMatcher>{{"x-user", row.parsed, true}});
    CHECK(match_of(header(row.matcher + " treat_missing_header_as_empty: true")).headers ==
          std::vector<HeaderMatcher>{{"x-user", row.parsed, false, true}});
  }
}

TEST_CASE("parse_route_match: a route whose path no gRPC call has is left out",
          "[xds][parse][A28]") {
  struct Row {
    std::string match;
    bool is_kept;
  };

  const auto row = GENERATE(values<Row>({
      {R"(prefix: "")", true},
      {R"(prefix: "/")", true},
      {R"(prefix: "/s")", true},
      {R"(prefix: "/s/")", true},
      {R"(prefix: "/s/m")", true},
      {R"(prefix: "/S" case_sensitive { value: false })", true},
      {R"(prefix: "s")", false},
      {R"(prefix: "//")", false},
      {R"(prefix: "//m")", false},
      {R"(prefix: "/s/m/")", false},
      {R"(prefix: "/api/v1/users")", false},
      {R"(path: "/s/m")", true},
      {R"(path: "")", false},
      {R"(path: "/")", false},
      {R"(path: "/s")", false},
      {R"(path: "/s/")", false},
      {R"(path: "//m")", false},
      {R"(path: "s/m")", false},
      {R"(path: "/s/m/")", false},
      {R"(path: "/healthz")", false},
      // A route with a regular expression is kept, because the expression could match any path.
      {R"(safe_regex { regex: "x" })", true},
      // A route that is left out is not validated.
      {R"(path: "/s" headers { name: "" })", false},
  }));
  DYNAMIC_SECTION(row.match) {
    const auto received = parse(row.match);
    CHECK(value_of<RouteConfig>(received).virtual_hosts.at(0).routes.size() ==
          (row.is_kept ? 1 : 0));
  }
}

TEST_CASE("parse_route_match: a data plane with other paths keeps all routes",
          "[xds][parse][A28]") {
  ParseOptions options;
  options.grpc_paths_only = false;
  for (const char* match : {R"(path: "/healthz")", R"(prefix: "/api/v1/users")"}) {
    const auto received = parse(match, options);
    CHECK(value_of<RouteConfig>(received).virtual_hosts.at(0).routes.size() == 1);
  }
}

TEST_CASE("parse_route_match: a header matcher that is wrong is an error", "[xds][parse][A28]") {
  struct Row {
    std::string match;
    std::string error;
  };

  const auto row = GENERATE_COPY(values<Row>({
      {header(""),
       "headers[0].header_match_specifier: must be string_match, safe_regex_match, exact_match, "
       "prefix_match, suffix_match, contains_match, range_match or present_match, found none"},
      {header("string_match {}"),
       "headers[0].string_match.match_pattern: must be exact, prefix, suffix, contains or "
       "safe_regex, found none"},
      {header("range_match { start: 5 end: 4 }"),
       "headers[0].range_match: must not end before it starts, found [5, 4)"},
      {R"(prefix: "" headers { exact_match: "v" })",
       "headers[0].name: must not be empty, found \"\""},
  }));
  CHECK(error_in(row.match) == row.error);
}

TEST_CASE("parse_route_match: runtime_fraction counts by its default, in parts of a million",
          "[xds][parse][A28]") {
  struct Row {
    std::string fraction;
    std::optional<std::uint32_t> per_million;
  };

  const auto row = GENERATE(values<Row>({
      {"", std::nullopt},
      {"runtime_fraction { runtime_key: \"k\" }", std::nullopt},
      {"runtime_fraction { default_value {} }", 0},
      {"runtime_fraction { default_value { numerator: 30 } }", 300'000},
      {"runtime_fraction { default_value { numerator: 30 denominator: TEN_THOUSAND } }", 3'000},
      {"runtime_fraction { default_value { numerator: 30 denominator: MILLION } }", 30},
      {"runtime_fraction { default_value { numerator: 429497 } }", 1'000'000},
  }));
  DYNAMIC_SECTION(row.fraction) {
    CHECK(match_of(R"(prefix: "" )" + row.fraction).fraction_per_million == row.per_million);
  }
  CHECK(error_in(R"(prefix: "" runtime_fraction { default_value { denominator: 9 } })") ==
        "runtime_fraction.default_value.denominator: must be HUNDRED, TEN_THOUSAND or MILLION, "
        "found 9");
}

TEST_CASE("parse_route_match: a route with query parameters is ignored, valid or not",
          "[xds][parse][A28]") {
  const auto path = GENERATE(as<std::string>{}, R"(prefix: "")", "connect_matcher {}");
  const auto received = parse(path + R"( query_parameters { name: "q" })");
  CHECK(value_of<RouteConfig>(received).virtual_hosts.at(0).routes.empty());
}

TEST_CASE("parse_route_match: the matchers grpc and tls_context are ignored", "[xds][parse][A28]") {
  CHECK(match_of(R"(prefix: "/" grpc {} tls_context {})") ==
        RouteMatch{{Kind::kPrefix, "/", false}, {}, {}});
}

}  // namespace signalbox::xds::parse_route_match_test
