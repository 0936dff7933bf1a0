// SPDX-License-Identifier: Apache-2.0
//
// A route's retries, hash policies and authority. parse_route_config_test has its clusters and
// timeouts.
#include <chrono>

#include <catch2/catch.hpp>

#include "messages/route_config.hpp"
#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/parse/route_config.hpp"

namespace signalbox::xds::parse_route_action_test {
namespace {

using namespace std::chrono_literals;
using envoy::config::route::v3::RouteConfiguration;
using Code = absl::StatusCode;

const std::string kPlace = "virtual_hosts[0].routes[0].route";

ReceivedResource parse(const std::string& action,
                       const std::string& host = "",
                       const ParseOptions& options = {}) {
  return parse_route_config(
      serialise<RouteConfiguration>("name: \"r\" virtual_hosts { domains: \"*\" " + host +
                                    " routes { match { prefix: \"\" } route { cluster: \"c\" " +
                                    action + " } } }"),
      options);
}

ForwardAction action_of(const std::string& action,
                        const std::string& host = "",
                        const ParseOptions& options = {}) {
  const auto config = value_of<RouteConfig>(parse(action, host, options));
  return std::get<ForwardAction>(config.virtual_hosts.at(0).routes.at(0).action);
}

std::string error_in(const std::string& action, const std::string& host = "") {
  const std::string error = error_of(parse(action, host));
  const std::string prefix = R"(RDS resource "r": )";
  return error.rfind(prefix, 0) == 0 ? error.substr(prefix.size()) : error;
}

std::string retry(const std::string& fields) {
  return "retry_policy { " + fields + " } ";
}

RetryPolicy policy(std::vector<Code> codes,
                   std::uint32_t attempts = 2,
                   Duration base = 25ms,
                   Duration most = 250ms) {
  return {std::move(codes), attempts, base, most};
}

}  // namespace

// --- retries ------------------------------------------------------------------------

TEST_CASE("parse_route_config: a route is retried on the conditions that gRPC has",
          "[xds][parse][A44]") {
  using Policy = std::optional<RetryPolicy>;

  struct Row {
    const char* rule;
    std::string fields;
    Policy policy;
  };

  const std::string on = R"(retry_on: "unavailable" )";
  const std::string previous_name = R"(name: "envoy.retry_host_predicates.previous_hosts")";
  RetryPolicy elsewhere = policy({Code::kUnavailable});
  elsewhere.previous_hosts = true;
  const auto row = GENERATE_COPY(values<Row>({
      {"no policy", "", std::nullopt},
      {"all five conditions",
       retry(R"(retry_on: "unavailable,cancelled,internal,deadline-exceeded,resource-exhausted")"),
       policy({Code::kCancelled,
               Code::kDeadlineExceeded,
               Code::kResourceExhausted,
               Code::kInternal,
               Code::kUnavailable})},
      {"others are ignored",
       retry(R"(retry_on: "5xx,unavailable,gateway-error,UNAVAILABLE")"),
       policy({Code::kUnavailable})},
      {"twice is once", retry(R"(retry_on: "internal,internal")"), policy({Code::kInternal})},
      {"spaces around", retry(R"(retry_on: " internal , ")"), policy({Code::kInternal})},
      {"none that we have: no policy", retry(R"(retry_on: "5xx")"), std::nullopt},
      {"none at all: no policy", retry(""), std::nullopt},
      {"one retry more than none", retry(on), policy({Code::kUnavailable}, 2)},
      {"retries", retry(on + "num_retries { value: 3 }"), policy({Code::kUnavailable}, 4)},
      {"four retries at most",
       retry(on + "num_retries { value: 5 }"),
       policy({Code::kUnavailable}, 5)},
      {"four retries at most, of as many as can be said",
       retry(on + "num_retries { value: 4294967295 }"),
       policy({Code::kUnavailable}, 5)},
      {"a base interval",
       retry(on + "retry_back_off { base_interval { seconds: 1 } }"),
       policy({Code::kUnavailable}, 2, 1s, 10s)},
      {"both intervals",
       retry(on + "retry_back_off { base_interval { seconds: 1 } max_interval { seconds: 3 } }"),
       policy({Code::kUnavailable}, 2, 1s, 3s)},
      {"equal intervals",
       retry(on + "retry_back_off { base_interval { seconds: 1 } max_interval { seconds: 1 } }"),
       policy({Code::kUnavailable}, 2, 1s, 1s)},
      {"a millisecond at least",
       retry(on + "retry_back_off { base_interval { nanos: 1 } max_interval { nanos: 2 } }"),
       policy({Code::kUnavailable}, 2, 1ms, 1ms)},
      {"a millisecond at least, and ten times that",
       retry(on + "retry_back_off { base_interval { nanos: 1 } }"),
       policy({Code::kUnavailable}, 2, 1ms, 10ms)},
      {"a century at most",
       retry(on + "retry_back_off { base_interval { seconds: 315576000000 } "
                  "max_interval { seconds: 315576000000 } }"),
       policy({Code::kUnavailable}, 2, 24h * 36'525, 24h * 36'525)},
      {"previous hosts, as Istio says it",
       retry(on + "retry_host_predicate { " + previous_name +
             " typed_config { type_url: "
             "\"type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3."
             "PreviousHostsPredicate\" } }"),
       elsewhere},
      {"previous hosts, by any name",
       retry(on + "retry_host_predicate { name: \"mine\" typed_config { type_url: "
                  "\"type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3."
                  "PreviousHostsPredicate\" } }"),
       elsewhere},
      {"previous hosts, by the name alone, and others",
       retry(on + "retry_host_predicate { name: \"other\" } retry_host_predicate { " +
             previous_name + " }"),
       elsewhere},
      {"another predicate is passed over",
       retry(on + "retry_host_predicate { " + previous_name +
             " typed_config { type_url: "
             "\"type.googleapis.com/envoy.extensions.retry.host.omit_canary_hosts.v3."
             "OmitCanaryHostsPredicate\" } }"),
       policy({Code::kUnavailable})},
  }));
  DYNAMIC_SECTION(row.rule) {
    CHECK(action_of(row.fields).retry == row.policy);
    // The policy of the virtual host counts where the route has none.
    CHECK(action_of("", row.fields).retry == row.policy);
  }
}

TEST_CASE("parse_route_config: ten times a long base interval is still a time",
          "[xds][parse][A44]") {
  const auto found = action_of(
      retry(R"(retry_on: "internal" retry_back_off { base_interval { seconds: 315576000000 } })"));
  REQUIRE(found.retry.has_value());
  CHECK(found.retry->max_interval >= found.retry->base_interval);
}

TEST_CASE("parse_route_config: a route's retry policy takes the place of its host's",
          "[xds][parse][A44]") {
  const std::string host = retry(R"(retry_on: "internal")");
  CHECK(action_of(retry(R"(retry_on: "unavailable")"), host).retry == policy({Code::kUnavailable}));
  // A route's policy replaces the host's even if gRPC has none of its conditions ("5xx").
  CHECK(action_of(retry(R"(retry_on: "5xx")"), host).retry == std::nullopt);
  CHECK(action_of("", host).retry == policy({Code::kInternal}));
}

TEST_CASE("parse_route_config: a retry policy that cannot be is an error",
          "[xds][parse][A44][A75-23]") {
  struct Row {
    std::string fields;
    std::string error;
  };

  const auto row = GENERATE(values<Row>({
      {"num_retries {}", ".num_retries: must be at least 1, found 0"},
      {"retry_back_off {}", ".retry_back_off.base_interval: must be set, found none"},
      {"retry_back_off { max_interval { seconds: 1 } }",
       ".retry_back_off.base_interval: must be set, found none"},
      {"retry_back_off { base_interval {} }",
       ".retry_back_off.base_interval: must be longer than 0, found 0"},
      {"retry_back_off { base_interval { seconds: -1 } }",
       ".retry_back_off.base_interval.seconds: must be in [0, 315576000000], found -1"},
      {"retry_back_off { base_interval { seconds: 1 } max_interval { nanos: 1000000000 } }",
       ".retry_back_off.max_interval.nanos: must be in [0, 999999999], found 1000000000"},
      {"retry_back_off { base_interval { nanos: 8 } max_interval { nanos: 7 } }",
       ".retry_back_off.max_interval: must not be shorter than base_interval, found 7 ns and 8 "
       "ns"},
      {"retry_back_off { base_interval { seconds: 1 } max_interval {} }",
       ".retry_back_off.max_interval: must not be shorter than base_interval, found 0 ns and "
       "1000000000 ns"},
  }));
  // A policy is validated without conditions (retry_on), and with a condition that gRPC has.
  CHECK(error_in(retry(row.fields)) == kPlace + ".retry_policy" + row.error);
  CHECK(error_in("", retry(row.fields + " retry_on: \"internal\"")) ==
        "virtual_hosts[0].retry_policy" + row.error);
}

// --- hash policies --------------------------------------------------------------------

TEST_CASE("parse_route_config: a hash policy that cannot be is an error", "[xds][parse][A42]") {
  const std::string rewrite = "header_name: \"h\" regex_rewrite { ";

  struct Row {
    std::string header;
    std::string error;
  };

  const auto row = GENERATE_COPY(values<Row>({
      {"", "header_name: must not be empty, found \"\""},
      {rewrite + "}", "regex_rewrite.pattern.regex: must not be empty, found \"\""},
      {rewrite + "pattern { regex: \"(\" } }",
       "regex_rewrite.pattern.regex: must be an RE2 pattern, found \"(\": missing ): ("},
      {rewrite + "pattern { regex: \"a\" } substitution: \"\\\\1\" }",
       "regex_rewrite.substitution: must fit the pattern, found \"\\\\1\": Rewrite "
       "schema "
       "requests 1 matches, but the regexp only has 0 parenthesized subexpressions."},
      {rewrite + "pattern { regex: \"(\" } substitution: \"\\\\1\" }",
       "regex_rewrite.pattern.regex: must be an RE2 pattern, found \"(\": missing ): ("},
  }));
  CHECK(error_in("hash_policy { cookie {} } hash_policy { header { " + row.header + " } }") ==
        kPlace + ".hash_policy[1].header." + row.error);
}

TEST_CASE("parse_route_config: a substitution may refer to nine groups", "[xds][parse][A42]") {
  const auto error_with = [](const std::string& groups) {
    return error_in(
        "hash_policy { header { header_name: \"h\" regex_rewrite { pattern { regex: \"" + groups +
        "\" } substitution: \"\\\\1\\\\9\" } } }");
  };
  CHECK(error_with("(a)(b)(c)(d)(e)(f)(g)(h)(i)").empty());
  CHECK(error_with("(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)").empty());
  CHECK_FALSE(error_with("(a)(b)(c)(d)(e)(f)(g)(h)").empty());
}

// --- authority -----------------------------------------------------------------------

TEST_CASE("parse_route_config: the authority is rewritten only for servers that are trusted",
          "[xds][parse][A81]") {
  const std::string rewrite = "auto_host_rewrite { value: true }";
  CHECK_FALSE(action_of(rewrite).auto_host_rewrite);
  ParseOptions trusted;
  trusted.authority_rewrite = true;
  CHECK(action_of(rewrite, "", trusted).auto_host_rewrite);
  CHECK_FALSE(action_of("", "", trusted).auto_host_rewrite);
  CHECK_FALSE(action_of("auto_host_rewrite {}", "", trusted).auto_host_rewrite);
}

}  // namespace signalbox::xds::parse_route_action_test
