// SPDX-License-Identifier: Apache-2.0
//
// gRFC A28, "Response validation" and "Picking", and gRFC A63: from a RouteConfiguration, as a
// control plane sends it, to the cluster of a call, in the order of the documents.

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/route/config_selector.hpp"
#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "tests/support/route_fixture.hpp"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/depend/virtual_host.hpp"
#include "xds/parse/route_config.hpp"

namespace signalbox {
namespace {

using envoy::config::route::v3::RouteConfiguration;
using testing::TestHeaders;

ReceivedResource received(const std::string& hosts) {
  return xds::parse_route_config(xds::serialise<RouteConfiguration>("name: \"routes\" " + hosts));
}

std::string host(const std::string& domain, const std::string& routes) {
  return absl::StrCat(
      "virtual_hosts { name: \"", domain, "\" domains: \"", domain, "\" ", routes, " } ");
}

std::string route(const std::string& match, const std::string& cluster) {
  return absl::StrCat("routes { match { ", match, " } route { cluster: \"", cluster, "\" } } ");
}

// The routes of a target, as its calls use them.
class Target {
 public:
  explicit Target(const std::string& hosts, const std::string& authority = "orders.example") {
    const auto resource = received(hosts);
    auto routes = std::make_shared<const RouteConfig>(xds::value_of<RouteConfig>(resource));
    XdsConfig config;
    config.virtual_host = xds::find_virtual_host(*routes, authority);
    config.route_config = std::move(routes);
    if (config.virtual_host == nullptr) return;
    host_ = config.virtual_host->name;
    selector_ = lb::make_config_selector(config, testing::refs_for(config));
  }

  /// The name of the virtual host that serves the target; empty: no virtual host matches.
  const std::string& host() const { return host_; }

  /// The cluster of a call, or the status that it fails with.
  std::string operator()(const std::string& path,
                         const TestHeaders& headers = {},
                         std::uint64_t seed = 0) const {
    const auto chosen = selector_->select({path, &headers, nullptr, seed});
    if (const auto* status = std::get_if<absl::Status>(&chosen)) return status->ToString();
    return std::get<lb::Selection>(chosen).cluster->name().str();
  }

  /// The number of `calls` that went to each cluster.
  std::map<std::string, double> shares(std::uint64_t calls) const {
    std::map<std::string, double> shares;
    for (std::uint64_t seed = 0; seed < calls; ++seed)
      ++shares[(*this)("/s/M", {}, seed)];
    return shares;
  }

 private:
  std::string host_;
  lb::ConfigSelectorPtr selector_;
};

// Matching calls go to "yes", all others to "no".
Target matching(const std::string& match) {
  return Target(host("*", route(match, "yes") + route("prefix: \"\"", "no")));
}

std::string header_match(const std::string& matcher) {
  return absl::StrCat("prefix: \"\" headers { name: \"Env\" ", matcher, " }");
}

}  // namespace

// --- the virtual host -------------------------------------------------------------

TEST_CASE("A28: the virtual host whose domain matches best serves", "[spec][A28][A27]") {
  struct Row {
    std::string authority;
    std::string host;
  };

  std::string hosts;
  // The order of the virtual hosts contradicts the rules, so that only the rules can choose.
  for (const char* domain : {"*",
                             "orders.example.and.a.long.prefix*",
                             "orders.*",
                             "orders.e*",
                             "*e",
                             "*.example",
                             "orders.exampl*",
                             "Orders.Example"})
    hosts += host(domain, "");

  const auto row = GENERATE(values<Row>({
      {"orders.example", "Orders.Example"},
      {"ORDERS.EXAMPLE", "Orders.Example"},
      {"orders.examplE2", "orders.exampl*"},
      {"shop.EXAMPLE", "*.example"},
      {"orders.e.example", "*.example"},
      {"shop.sample", "*e"},
      {"orders.one", "*e"},
      {"ORDERS.even", "orders.e*"},
      {"orders.org", "orders.*"},
      {".example", "*e"},
      {"orders.", "*"},
      {"elsewhere:443", "*"},
      {"", "*"},
  }));
  CHECK(Target(hosts, row.authority).host() == row.host);
}

TEST_CASE("A28: without a domain that matches no virtual host serves", "[spec][A28]") {
  const std::string hosts = host("a.example", "") + host("*.b.example", "") + host("c.*", "");
  CHECK(Target(hosts, "a.example.org").host().empty());
  CHECK(Target(hosts, ".b.example").host().empty());
  CHECK(Target(hosts, "b.example").host().empty());
  CHECK(Target(hosts, "c.").host().empty());
}

// --- match: the path --------------------------------------------------------------

TEST_CASE("A28: a path is compared by prefix, whole, or by a regular expression", "[spec][A28]") {
  struct Row {
    std::string match;
    std::string yes;
    std::string no;
  };

  const auto row = GENERATE(values<Row>({
      {R"(prefix: "/s/")", "/s/M", "/S/M"},
      {R"(prefix: "/s/M")", "/s/Many", "/s/m"},
      {R"(path: "/s/M")", "/s/M", "/s/Many"},
      {R"(path: "/s/M")", "/s/M", "/s/"},
      {R"(path: "/s/M")", "/s/M", "/s/m"},
      {R"(safe_regex { regex: "/s/[MN]" })", "/s/N", "/s/NN"},
      {R"(safe_regex { regex: "s/M" })", "s/M", "/s/M"},
      {R"(prefix: "/S/" case_sensitive { value: false })", "/s/M", "/t/M"},
      {R"(path: "/S/m" case_sensitive { value: false })", "/s/M", "/s/MM"},
      {R"(path: "/s/M" case_sensitive { value: true })", "/s/M", "/s/m"},
      {R"(safe_regex { regex: "/s/M" } case_sensitive { value: false })", "/s/M", "/s/m"},
      {R"(safe_regex { google_re2 {} regex: "/s/.*" })", "/s/M", "/t/M"},
  }));
  CAPTURE(row.match, row.yes, row.no);
  const Target target = matching(row.match);
  CHECK(target(row.yes) == "yes");
  CHECK(target(row.no) == "no");
}

TEST_CASE("A28: a regular expression's max_program_size is ignored", "[spec][A28]") {
  auto config = xds::from_text<RouteConfiguration>(
      "name: \"r\" " + host("*", route(R"(safe_regex { google_re2 {} regex: "/s/.*" })", "a")));
  auto* re2 = config.mutable_virtual_hosts(0)
                  ->mutable_routes(0)
                  ->mutable_match()
                  ->mutable_safe_regex()
                  ->mutable_google_re2();
  // Adds max_program_size (field 1), a UInt32Value of 1. The linked message lacks this field.
  re2->GetReflection()->MutableUnknownFields(re2)->AddLengthDelimited(1, "\x08\x01");
  CHECK(xds::error_of(xds::parse_route_config(config.SerializeAsString())).empty());
}

TEST_CASE("A28: a route that says nothing of the path is refused", "[spec][A28]") {
  CHECK(xds::error_of(received(host("*", route("", "a")))) ==
        "RDS resource \"routes\": virtual_hosts[0].routes[0].match.path_specifier: must be "
        "prefix, path or safe_regex, found none");
}

// --- match: headers ---------------------------------------------------------------

TEST_CASE("A28, A63: a header is compared in every way, and in its inverse", "[spec][A28][A63]") {
  struct Row {
    std::string matcher;
    std::string yes;
    std::string no;
  };

  const auto row = GENERATE(values<Row>({
      {R"(exact_match: "ab")", "ab", "abc"},
      {R"(exact_match: "ab")", "ab", "AB"},
      {R"(prefix_match: "ab")", "abc", "cab"},
      {R"(suffix_match: "ab")", "cab", "abc"},
      {R"(contains_match: "ab")", "xaby", "xayb"},
      {R"(safe_regex_match { regex: "a+" })", "aa", "aab"},
      {"range_match { start: -1 end: 5 }", "-1", "5"},
      {"range_match { start: -1 end: 5 }", "4", "-2"},
      {"range_match { start: -1 end: 5 }", "0", "many"},
      {R"(string_match { exact: "ab" })", "ab", "aB"},
      {R"(string_match { exact: "ab" ignore_case: true })", "aB", "a"},
      {R"(string_match { prefix: "Ab" ignore_case: true })", "aBc", "b"},
      {R"(string_match { suffix: "Ab" ignore_case: true })", "caB", "b"},
      {R"(string_match { contains: "Ab" ignore_case: true })", "xaBy", "xayb"},
      {R"(string_match { safe_regex { regex: "ab" } ignore_case: true })", "ab", "AB"},
  }));
  CAPTURE(row.matcher, row.yes, row.no);
  const Target target = matching(header_match(row.matcher));
  CHECK(target("/s/M", {{"env", row.yes}}) == "yes");
  CHECK(target("/s/M", {{"env", row.no}}) == "no");
  CHECK(target("/s/M") == "no");
  const Target inverse = matching(header_match(row.matcher + " invert_match: true"));
  CHECK(inverse("/s/M", {{"env", row.yes}}) == "no");
  CHECK(inverse("/s/M", {{"env", row.no}}) == "yes");
  // An inverted matcher does not match an absent header either.
  CHECK(inverse("/s/M") == "no");
}

TEST_CASE("A28: a header is present or absent", "[spec][A28]") {
  const auto expects_present = [](const std::string& matcher, bool present) {
    CAPTURE(matcher);
    const Target target = matching(header_match(matcher));
    CHECK(target("/s/M", {{"env", ""}}) == (present ? "yes" : "no"));
    CHECK(target("/s/M") == (present ? "no" : "yes"));
  };
  expects_present("present_match: true", true);
  expects_present("present_match: false", false);
  expects_present("present_match: true invert_match: true", false);
  expects_present("present_match: false invert_match: true", true);
}

TEST_CASE("A28: what gRPC makes of a call's headers", "[spec][A28]") {
  // Several values of a header are joined into one. Header names ignore case.
  const Target joined = matching(header_match(R"(exact_match: "a,b")"));
  CHECK(joined("/s/M", {{"env", "a"}, {"other", "x"}, {"env", "b"}}) == "yes");
  CHECK(joined("/s/M", {{"env", "b"}, {"env", "a"}}) == "no");
  const Target binary = matching(R"(prefix: "" headers { name: "env-bin" present_match: true })");
  CHECK(binary("/s/M", {{"env-bin", "a"}}) == "no");
  const Target type =
      matching(R"(prefix: "" headers { name: "content-type" exact_match: "application/grpc" })");
  CHECK(type("/s/M") == "yes");
  CHECK(type("/s/M", {{"content-type", "text/html"}}) == "yes");
}

TEST_CASE("A28: all headers of a route must match", "[spec][A28]") {
  const Target target = matching(
      R"(prefix: "" headers { name: "a" exact_match: "1" } headers { name: "b" exact_match: "2" })");
  CHECK(target("/s/M", {{"a", "1"}, {"b", "2"}}) == "yes");
  CHECK(target("/s/M", {{"a", "1"}}) == "no");
  CHECK(target("/s/M", {{"b", "2"}}) == "no");
}

TEST_CASE("A28: a header matcher of the old, unsafe kind is refused", "[spec][A28]") {
  auto config = xds::from_text<RouteConfiguration>(
      "name: \"r\" " + host("*", route("prefix: \"\" headers { name: \"env\" }", "a")));
  auto* header =
      config.mutable_virtual_hosts(0)->mutable_routes(0)->mutable_match()->mutable_headers(0);
  // The v2 field `regex_match` = 5, which the v3 API does not name any more.
  header->GetReflection()->MutableUnknownFields(header)->AddLengthDelimited(5, ".*");
  CHECK_THAT(xds::error_of(xds::parse_route_config(config.SerializeAsString())),
             Catch::Contains("headers[0].header_match_specifier: must be "));
}

// --- match: the rest --------------------------------------------------------------

TEST_CASE("A28: a fraction of the calls is considered, by its default value", "[spec][A28]") {
  constexpr double kCalls = 100'000;

  struct Row {
    std::string fraction;
    double share;
  };

  const auto row = GENERATE(values<Row>({
      {"default_value { numerator: 30 }", 0.3},
      {"default_value { numerator: 3000 denominator: TEN_THOUSAND }", 0.3},
      {"default_value { numerator: 1000 denominator: MILLION }", 0.001},
      {"default_value { numerator: 30 } runtime_key: \"ignored\"", 0.3},
      {"default_value { numerator: 0 }", 0},
      {"default_value { numerator: 100 }", 1},
      {"default_value { numerator: 4000000000 }", 1},
      {"runtime_key: \"ignored\"", 1},
  }));
  CAPTURE(row.fraction);
  const auto shares = matching("prefix: \"\" runtime_fraction { " + row.fraction + " }")
                          .shares(static_cast<std::uint64_t>(kCalls));
  const double taken = shares.contains("yes") ? shares.at("yes") : 0;
  const double sigma = std::sqrt(kCalls * row.share * (1 - row.share));
  CHECK(std::abs(taken - kCalls * row.share) <= 5 * sigma);
}

TEST_CASE("A28: a route with query parameters is ignored", "[spec][A28]") {
  const Target target = matching(R"(prefix: "" query_parameters { name: "q" })");
  CHECK(target("/s/M") == "no");
  CHECK(target("/s/M?q=1") == "no");
}

TEST_CASE("A28: the matchers grpc and tls_context are ignored, the others are not", "[spec][A28]") {
  const Target target = matching(R"(prefix: "/s/" grpc {} tls_context {})");
  CHECK(target("/s/M") == "yes");
  CHECK(target("/t/M") == "no");
}

// --- action -----------------------------------------------------------------------

TEST_CASE("A28: calls are shared among clusters by weight", "[spec][A28][A31-8]") {
  constexpr double kCalls = 100'000;
  const Target target(host("*", R"(routes { match { prefix: "" } route { weighted_clusters {
      total_weight { value: 7 }
      clusters { name: "none" weight { value: 0 } }
      clusters { name: "a" weight { value: 1 } }
      clusters { name: "unset" }
      clusters { name: "b" weight { value: 20 } }
      clusters { name: "c" weight { value: 79 } }
      clusters { name: "last" weight { value: 0 } } } } })"));
  const auto shares = target.shares(static_cast<std::uint64_t>(kCalls));
  CHECK(shares.size() == 3);
  for (const auto& [cluster, share] : {std::pair("a", 0.01), {"b", 0.2}, {"c", 0.79}}) {
    CAPTURE(cluster);
    const double sigma = std::sqrt(kCalls * share * (1 - share));
    CHECK(std::abs(shares.at(cluster) - kCalls * share) <= 5 * sigma);
  }
}

TEST_CASE("A28: weights sum to more than 0, and fit into 32 bits", "[spec][A28]") {
  struct Row {
    std::string weights;
    std::string found;  // Empty: the route is valid.
  };

  const auto row = GENERATE(values<Row>({
      {"4294967295", ""},
      {"0", "0 in 2 entries"},
      {"4294967294", ""},
      {"4294967296", "4294967296 in 2 entries"},
  }));
  const std::uint64_t sum = std::stoull(row.weights);
  const std::uint64_t first = sum / 2;
  const std::string error = xds::error_of(
      received(host("*",
                    absl::StrCat("routes { match { prefix: \"\" } route { weighted_clusters { ",
                                 "clusters { name: \"a\" weight { value: ",
                                 first,
                                 " } } clusters { name: \"b\" weight { value: ",
                                 sum - first,
                                 " } } } } }"))));
  CHECK(error == (row.found.empty()
                      ? ""
                      : "RDS resource \"routes\": virtual_hosts[0].routes[0].route."
                        "weighted_clusters.clusters: the sum of weights must be in [1, "
                        "4294967295], found " +
                            row.found));
}

TEST_CASE("A28: a route with a cluster specifier that we do not have is ignored", "[spec][A28]") {
  const auto specifier =
      GENERATE(as<std::string>{}, "cluster_header: \"env\"", "cluster_specifier_plugin: \"p\"", "");
  const Target target(host("*",
                           "routes { match { prefix: \"\" } route { " + specifier + " } } " +
                               route("prefix: \"\"", "next")));
  CHECK(target("/s/M", {{"env", "a"}}) == "next");
}

TEST_CASE("A28, A36: a route with another action takes its calls, and fails them",
          "[spec][A28][A36]") {
  const auto action = GENERATE(
      as<std::string>{}, "redirect", "direct_response", "non_forwarding_action", "filter_action");
  const Target target(host("*",
                           "routes { name: \"odd\" match { path: \"/s/M\" } " + action + " {} } " +
                               route("prefix: \"\"", "next")));
  CHECK(target("/s/M") ==
        "UNAVAILABLE: route \"odd\" of virtual host \"*\" has an unsupported "
        "action: " +
            action);
  CHECK(target("/s/N") == "next");
}

// --- picking ----------------------------------------------------------------------

TEST_CASE("A28: the first match wins, though a later one is closer", "[spec][A28]") {
  const Target target(host(
      "*",
      route("prefix: \"/MyService\"", "first") + route("path: \"/MyService/MyMethod\"", "second") +
          route("prefix: \"/My\"", "third") + route("safe_regex { regex: \"/.*\" }", "fourth")));
  CHECK(target("/MyService/MyMethod") == "first");
  CHECK(target("/MyOther/MyMethod") == "third");
  CHECK(target("/Yours/Method") == "fourth");
}

TEST_CASE("A28: of equal matchers the second is never used", "[spec][A28]") {
  const auto match = GENERATE(as<std::string>{},
                              "prefix: \"/s/\"",
                              "path: \"/s/M\"",
                              "safe_regex { regex: \"/s/M\" }",
                              "path: \"/S/m\" case_sensitive { value: false }");
  const Target target(host("*", route(match, "first") + route(match, "second")));
  CHECK(target("/s/M") == "first");
}

TEST_CASE("A28: a call that no route takes fails, and hears why", "[spec][A28][A31-6]") {
  const Target target(host("*", route("path: \"/s/M\"", "a")));
  CHECK(target("/s/N") == "UNAVAILABLE: no route for \"/s/N\" in virtual host \"*\"");
  CHECK(Target(host("*", ""))("/s/M") ==
        "UNAVAILABLE: no route for \"/s/M\" in virtual host \"*\"");
}

}  // namespace signalbox
