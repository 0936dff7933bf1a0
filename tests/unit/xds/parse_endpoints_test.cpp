// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "messages/endpoints.hpp"
#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/limits.hpp"
#include "xds/parse/endpoints.hpp"

namespace signalbox::xds::parse_endpoints_test {
namespace {

using AssignmentProto = envoy::config::endpoint::v3::ClusterLoadAssignment;

ReceivedResource parse(const std::string& fields) {
  return parse_endpoints(serialise<AssignmentProto>("cluster_name: \"orders\" " + fields));
}

std::string error_in(const std::string& fields) {
  const std::string error = error_of(parse(fields));
  const std::string prefix = R"(EDS resource "orders": )";
  return error.rfind(prefix, 0) == 0 ? error.substr(prefix.size()) : error;
}

std::string address(const std::string& ip, int port = 80) {
  return absl::StrCat(
      "address { socket_address { address: \"", ip, "\" port_value: ", port, " } } ");
}

// An endpoint at 10.0.0.<host>:80.
std::string endpoint(int host, const std::string& more = "") {
  return absl::StrCat(
      "lb_endpoints { endpoint { ", address(absl::StrCat("10.0.0.", host)), "} ", more, " } ");
}

// A locality with this zone, priority and weight.
std::string locality(const std::string& zone,
                     int priority,
                     const std::string& endpoints,
                     std::uint64_t weight = 1) {
  return absl::StrCat("endpoints { locality { zone: \"",
                      zone,
                      "\" } priority: ",
                      priority,
                      " load_balancing_weight { value: ",
                      weight,
                      " } ",
                      endpoints,
                      " } ");
}

std::string one_endpoint(const std::string& inside) {
  return locality("z", 0, "lb_endpoints { " + inside + " }");
}

Endpoint at(const std::string& text, HealthStatus health = HealthStatus::kUnknown) {
  return Endpoint{{Address{text}}, health, 1};
}

const std::string kFirst = "endpoints[0].lb_endpoints[0]";

}  // namespace

TEST_CASE("parse_endpoints: priorities, localities and endpoints keep their place",
          "[xds][parse][A27]") {
  const auto received =
      parse(locality("b", 1, endpoint(3)) + locality("a", 0, endpoint(1) + endpoint(2), 7) +
            locality("c", 0, "", 9));
  const Endpoints& endpoints = value_of<Endpoints>(received);

  CHECK(received.name == "orders");
  REQUIRE(endpoints.priorities.size() == 2);
  REQUIRE(endpoints.priorities[0].localities.size() == 2);
  CHECK(*endpoints.priorities[0].localities[0] ==
        Locality{{"", "a", ""}, 7, {at("10.0.0.1:80"), at("10.0.0.2:80")}});
  CHECK(*endpoints.priorities[0].localities[1] == Locality{{"", "c", ""}, 9, {}});
  REQUIRE(endpoints.priorities[1].localities.size() == 1);
  CHECK(*endpoints.priorities[1].localities[0] == Locality{{"", "b", ""}, 1, {at("10.0.0.3:80")}});
}

TEST_CASE("parse_endpoints: a locality's name has three parts", "[xds][parse][A27]") {
  const auto received = parse(R"(endpoints { locality { region: "r" zone: "z" sub_zone: "s" }
                                             load_balancing_weight { value: 1 } })");
  CHECK(value_of<Endpoints>(received).priorities.at(0).localities.at(0)->name ==
        LocalityName{"r", "z", "s"});
}

TEST_CASE("parse_endpoints: no endpoints at all are valid", "[xds][parse][A27][A37-25]") {
  CHECK(value_of<Endpoints>(parse("")) == Endpoints{});
}

TEST_CASE("parse_endpoints: a locality without weight is left out unread", "[xds][parse][A27]") {
  const std::string bad = "lb_endpoints { endpoint {} } }";
  const auto received =
      parse("endpoints { locality { zone: \"x\" } " + bad +
            " endpoints { load_balancing_weight {} " + bad + locality("a", 0, endpoint(1)));
  const Endpoints& endpoints = value_of<Endpoints>(received);
  REQUIRE(endpoints.priorities.size() == 1);
  REQUIRE(endpoints.priorities[0].localities.size() == 1);
  CHECK(endpoints.priorities[0].localities[0]->name.zone == "a");
  // Their number is told only where no locality has a weight.
  CHECK(endpoints.unweighted_localities == 0);
  CHECK(value_of<Endpoints>(parse("endpoints {} " + locality("a", 0, endpoint(1), 0)))
            .unweighted_localities == 2);
}

TEST_CASE("parse_endpoints: priorities with a weighted locality have no gaps",
          "[xds][parse][A27]") {
  struct Row {
    const char* when;
    std::string localities;
    std::string error;
  };

  const auto row = GENERATE(values<Row>({
      {"zero is missing",
       locality("a", 1, ""),
       "endpoints: priorities must have no gaps, found 1 but no 0"},
      {"one is missing",
       locality("a", 0, "") + locality("b", 2, ""),
       "endpoints: priorities must have no gaps, found 2 but no 1"},
      {"the one between has no weight",
       locality("a", 0, "") + locality("b", 1, "", 0) + locality("c", 2, ""),
       "endpoints: priorities must have no gaps, found 2 but no 1"},
      {"the last has no weight", locality("a", 0, "") + locality("b", 1, "", 0), ""},
      {"they come in another order", locality("a", 1, "") + locality("b", 0, ""), ""},
      {"the number is huge",
       "endpoints { locality {} priority: 4294967295 load_balancing_weight { value: 1 } }",
       "endpoints: priorities must have no gaps, found 4294967295 but no 0"},
  }));
  DYNAMIC_SECTION(row.when) {
    CHECK(error_in(row.localities) == row.error);
  }
}

TEST_CASE("parse_endpoints: a locality is unique in its priority, not beyond it",
          "[xds][parse][A27]") {
  CHECK(error_in(locality("a", 0, "") + locality("a", 0, "")) ==
        "endpoints: locality must be unique in its priority, found "
        "{region=\"\", zone=\"a\", sub_zone=\"\"} again in priority 0");
  CHECK(error_in(locality("a", 0, "") + locality("a", 1, "")).empty());
}

TEST_CASE("parse_endpoints: a weighted locality has a name", "[xds][parse][A27]") {
  CHECK(error_in("endpoints { load_balancing_weight { value: 1 } }") ==
        "endpoints[0].locality: must be set, found none");
}

TEST_CASE("parse_endpoints: locality weights of a priority sum up to 32 bits",
          "[xds][parse][A27]") {
  CHECK(error_in(locality("a", 0, "", 4294967294) + locality("b", 0, "", 1)).empty());
  CHECK(error_in(locality("a", 0, "", 4294967295) + locality("b", 1, "", 1)).empty());
  CHECK(error_in(locality("a", 0, "", 4294967295) + locality("b", 0, "", 1)) ==
        "endpoints: the sum of locality weights of priority 0 must be at most 4294967295, found "
        "4294967296");
}

TEST_CASE("parse_endpoints: an address is an IP literal and a port", "[xds][parse][A27]") {
  struct Row {
    std::string ip;
    int port;
    std::string text;
  };

  const auto row = GENERATE(values<Row>({
      {"1.2.3.4", 80, "1.2.3.4:80"},
      {"255.255.255.255", 65535, "255.255.255.255:65535"},
      {"::1", 1, "[::1]:1"},
      {"2001:DB8:0:0::1", 80, "[2001:db8::1]:80"},
  }));
  const auto received = parse(one_endpoint("endpoint { " + address(row.ip, row.port) + " }"));
  CHECK(value_of<Endpoints>(received).priorities.at(0).localities.at(0)->endpoints ==
        std::vector<Endpoint>{at(row.text)});
}

TEST_CASE("parse_endpoints: an address of another kind is an error", "[xds][parse][A27]") {
  const std::string place = kFirst + ".endpoint.address.socket_address";

  struct Row {
    std::string endpoint;
    std::string error;
  };

  const auto row = GENERATE_COPY(values<Row>({
      {"", kFirst + ".endpoint: must be set, found none"},
      {"endpoint_name: \"e\"", kFirst + ".endpoint: must be set, found none"},
      {"endpoint {}", place + ": must be set, found none"},
      {"endpoint { address { pipe {} } }", place + ": must be set, found pipe"},
      {"endpoint { address { envoy_internal_address {} } }",
       place + ": must be set, found envoy_internal_address"},
      {"endpoint { " + address("localhost") + "}",
       place + ".address: must be an IPv4 or IPv6 literal, found \"localhost\""},
      {"endpoint { " + address("1.2.3") + "}",
       place + ".address: must be an IPv4 or IPv6 literal, found \"1.2.3\""},
      {"endpoint { " + address("[::1]") + "}",
       place + ".address: must be an IPv4 or IPv6 literal, found \"[::1]\""},
      {"endpoint { " + address("1.2.3.4\\000") + "}",
       place + ".address: must be an IPv4 or IPv6 literal, found \"1.2.3.4\\000\""},
      {"endpoint { " + address("") + "}",
       place + ".address: must be an IPv4 or IPv6 literal, found \"\""},
      {"endpoint { " + address("1.2.3.4", 0) + "}",
       place + ".port_value: must be in [1, 65535], found 0"},
      {"endpoint { " + address("1.2.3.4", 65536) + "}",
       place + ".port_value: must be in [1, 65535], found 65536"},
      {R"(endpoint { address { socket_address { address: "1.2.3.4" named_port: "http" } } })",
       place + ".port_value: must be set, found named_port \"http\""},
  }));
  DYNAMIC_SECTION(row.endpoint) {
    CHECK(error_in(one_endpoint(row.endpoint)) == row.error);
  }
}

TEST_CASE("parse_endpoints: an address is its endpoint's alone in the cluster",
          "[xds][parse][A27][A61]") {
  const std::string again = ".endpoint.address: must be unique in the cluster, found ";
  CHECK(error_in(locality("a", 0, endpoint(1) + endpoint(1))) ==
        "endpoints[0].lb_endpoints[1]" + again + "10.0.0.1:80 again");
  CHECK(error_in(locality("a", 0, endpoint(1)) + locality("b", 1, endpoint(1))) ==
        "endpoints[1].lb_endpoints[0]" + again + "10.0.0.1:80 again");
  // Two spellings of one address are the same address.
  CHECK(error_in(locality("a",
                          0,
                          "lb_endpoints { endpoint { " + address("::1") +
                              "} } lb_endpoints { endpoint { " + address("0::0:1") + "} }")) ==
        "endpoints[0].lb_endpoints[1]" + again + "[::1]:80 again");
  CHECK(error_in(one_endpoint("endpoint { " + address("1.1.1.1") + "additional_addresses { " +
                              address("1.1.1.1") + "} }")) ==
        kFirst +
            ".endpoint.additional_addresses[0].address: must be unique in the cluster, found "
            "1.1.1.1:80 again");
  CHECK(error_in(locality("a",
                          0,
                          "lb_endpoints { endpoint { " + address("1.1.1.1", 80) +
                              "} } lb_endpoints { endpoint { " + address("1.1.1.1", 81) + "} }"))
            .empty());
}

TEST_CASE("parse_endpoints: keeps the healthy, the unknown and the draining",
          "[xds][parse][A55-1][A55-2]") {
  const auto received = parse(
      locality("a",
               0,
               endpoint(1, "health_status: UNKNOWN") + endpoint(2, "health_status: HEALTHY") +
                   endpoint(3, "health_status: UNHEALTHY") +
                   endpoint(4, "health_status: DRAINING") + endpoint(5, "health_status: TIMEOUT") +
                   endpoint(6, "health_status: DEGRADED") + endpoint(7, "health_status: 42")));
  CHECK(value_of<Endpoints>(received).priorities.at(0).localities.at(0)->endpoints ==
        std::vector<Endpoint>{at("10.0.0.1:80", HealthStatus::kUnknown),
                              at("10.0.0.2:80", HealthStatus::kHealthy),
                              at("10.0.0.4:80", HealthStatus::kDraining)});
}

TEST_CASE("parse_endpoints: who is degraded or unhealthy stands in lists of their own",
          "[xds][parse][ENV-9]") {
  const auto received = parse(
      locality("a",
               0,
               endpoint(1) +
                   endpoint(2, "health_status: UNHEALTHY load_balancing_weight { value: 3 }") +
                   endpoint(3, "health_status: TIMEOUT") + endpoint(4, "health_status: DEGRADED") +
                   endpoint(5, "health_status: DRAINING") + endpoint(6, "health_status: 42"),
               7) +
      locality("b", 0, endpoint(7, "health_status: DEGRADED"), 8) + locality("c", 0, endpoint(8)) +
      locality("d", 1, endpoint(9, "health_status: UNHEALTHY"), 9));
  const Endpoints& endpoints = value_of<Endpoints>(received);
  const auto is = [](const std::vector<LocalityPtr>& found, const std::vector<Locality>& expected) {
    return std::ranges::equal(found, expected, {}, [](const LocalityPtr& each) { return *each; });
  };
  Endpoint weighted = at("10.0.0.2:80", HealthStatus::kUnhealthy);
  weighted.weight = 3;
  REQUIRE(endpoints.priorities.size() == 2);
  const Priority& first = endpoints.priorities[0];
  CHECK(is(first.localities,
           {{{"", "a", ""}, 7, {at("10.0.0.1:80"), at("10.0.0.5:80", HealthStatus::kDraining)}},
            {{"", "b", ""}, 8, {}},
            {{"", "c", ""}, 1, {at("10.0.0.8:80")}}}));
  CHECK(is(first.degraded,
           {{{"", "a", ""}, 7, {at("10.0.0.4:80", HealthStatus::kDegraded)}},
            {{"", "b", ""}, 8, {at("10.0.0.7:80", HealthStatus::kDegraded)}}}));
  CHECK(is(first.unhealthy,
           {{{"", "a", ""}, 7, {weighted, at("10.0.0.3:80", HealthStatus::kTimeout)}}}));
  const Priority& second = endpoints.priorities[1];
  CHECK(is(second.localities, {{{"", "d", ""}, 9, {}}}));
  CHECK(second.degraded.empty());
  CHECK(is(second.unhealthy, {{{"", "d", ""}, 9, {at("10.0.0.9:80", HealthStatus::kUnhealthy)}}}));
}

TEST_CASE("parse_endpoints: what is wrong with an endpoint that gets no calls refuses nothing",
          "[xds][parse][ENV-9][A27][A55-2]") {
  const std::string unhealthy = "health_status: UNHEALTHY";

  struct Row {
    const char* what;
    std::string endpoints;
    std::vector<Endpoint> kept;
  };

  const auto row = GENERATE_COPY(values<Row>({
      {"no address", "lb_endpoints { health_status: UNHEALTHY }", {}},
      {"no IP", "lb_endpoints { health_status: UNHEALTHY endpoint { " + address("h") + " } }", {}},
      {"no weight", endpoint(2, unhealthy + " load_balancing_weight {}"), {}},
      {"the address of a later one that gets calls", endpoint(2, unhealthy) + endpoint(2), {}},
      {"the address of one like it",
       endpoint(2, unhealthy) + endpoint(2, unhealthy),
       {at("10.0.0.2:80", HealthStatus::kUnhealthy)}},
      {"too much weight in all",
       endpoint(2, unhealthy + " load_balancing_weight { value: 4294967295 }") +
           endpoint(3, unhealthy),
       {}},
  }));
  DYNAMIC_SECTION(row.what) {
    const auto received = parse(locality("a", 0, endpoint(1) + row.endpoints));
    const Priority& priority = value_of<Endpoints>(received).priorities.at(0);
    std::vector<Endpoint> found;
    for (const LocalityPtr& each : priority.unhealthy)
      found.insert(found.end(), each->endpoints.begin(), each->endpoints.end());
    CHECK(found == row.kept);
    CHECK(priority.localities.at(0)->endpoints.front() == at("10.0.0.1:80"));
  }
}

TEST_CASE("parse_endpoints: a limit that is lowered leaves out nobody who gets no calls",
          "[xds][parse][ENV-9][limits]") {
  const auto kept = [](std::size_t length, std::size_t most) {
    const std::string unhealthy =
        absl::StrCat("lb_endpoints { health_status: UNHEALTHY endpoint { ",
                     address("10.0.0.2"),
                     " hostname: \"",
                     std::string(length, 'h'),
                     "\" } } ");
    ParseOptions options;
    options.limits.max_name_length = most;
    const auto received =
        parse_endpoints(serialise<AssignmentProto>("cluster_name: \"orders\" " +
                                                   locality("a", 0, endpoint(1) + unhealthy)),
                        options);
    return value_of<Endpoints>(received).priorities.at(0).unhealthy.size();
  };
  CHECK(kept(20, 10) == 1);
  CHECK(kept(kMaxNameLength + 1, kMaxNameLength) == 0);
  CHECK(kept(kMaxNameLength + 1, kMaxNameLength + 1) == 1);
}

TEST_CASE("parse_endpoints: an endpoint may be probed elsewhere, or not at all", "[xds][parse]") {
  const auto checked =
      [](const std::string& ip, const std::string& config, const std::string& more = "") {
        return "lb_endpoints { endpoint { " + address(ip) + " health_check_config { " + config +
               " } " + more + " } } ";
      };
  CHECK(value_of<Endpoints>(parse(locality("a", 0, endpoint(1) + checked("1.1.1.1", ""))))
            .probe_exceptions == nullptr);
  const Endpoints endpoints = value_of<Endpoints>(
      parse(locality("a",
                     0,
                     checked("1.1.1.1", "port_value: 81") +
                         checked("1.1.1.2",
                                 "disable_active_health_check: true",
                                 "additional_addresses { " + address("::1") + " }"))));
  REQUIRE(endpoints.probe_exceptions != nullptr);
  CHECK(*endpoints.probe_exceptions == ProbeExceptions{{Address("1.1.1.1:80"), {false, 81}},
                                                       {Address("1.1.1.2:80"), {true, 0}},
                                                       {Address("[::1]:80"), {true, 0}}});
  CHECK_FALSE(endpoints == value_of<Endpoints>(parse(locality("a", 0, endpoint(1)))));
  CHECK(error_in(locality("a", 0, checked("1.1.1.1", "port_value: 65536"))) ==
        kFirst + ".endpoint.health_check_config.port_value: must be at most 65535, found 65536");
  CHECK(error_in(locality("a", 0, checked("1.1.1.1", "port_value: 65535"))).empty());
  // A runtime without active health checks does not read them.
  ParseOptions unchecked;
  unchecked.health_checks = false;
  const auto unread = parse_endpoints(
      serialise<AssignmentProto>("cluster_name: \"orders\" " +
                                 locality("a", 0, checked("1.1.1.1", "port_value: 65536"))),
      unchecked);
  CHECK(value_of<Endpoints>(unread).probe_exceptions == nullptr);
  // An endpoint that is left out does not affect another endpoint with the same address.
  CHECK(value_of<Endpoints>(
            parse(locality("a",
                           0,
                           "lb_endpoints { health_status: UNHEALTHY endpoint { " +
                               address("10.0.0.1") +
                               " health_check_config { port_value: 81 } } } " + endpoint(1))))
            .probe_exceptions == nullptr);
}

TEST_CASE("parse_endpoints: a weight is 1 where it is not set, and never 0", "[xds][parse][A27]") {
  const auto received =
      parse(locality("a", 0, endpoint(1) + endpoint(2, "load_balancing_weight { value: 9 }")));
  const auto& endpoints =
      value_of<Endpoints>(received).priorities.at(0).localities.at(0)->endpoints;
  CHECK(endpoints.at(0).weight == 1);
  CHECK(endpoints.at(1).weight == 9);
  CHECK(error_in(locality("a", 0, endpoint(1, "load_balancing_weight {}"))) ==
        kFirst + ".load_balancing_weight: must be greater than 0, found 0");
}

TEST_CASE("parse_endpoints: endpoint weights of a locality sum up to 32 bits",
          "[xds][parse][A27]") {
  const auto weights = [](std::uint64_t first, std::uint64_t second) {
    return endpoint(1, absl::StrCat("load_balancing_weight { value: ", first, " }")) +
           endpoint(2, absl::StrCat("load_balancing_weight { value: ", second, " }"));
  };
  CHECK(error_in(locality("a", 0, weights(4294967294, 1))).empty());
  CHECK(error_in(locality("a", 0, weights(4294967295, 1))) ==
        "endpoints[0].lb_endpoints: the sum of endpoint weights must be at most 4294967295, found "
        "4294967296");
  // Unfit endpoints, such as UNHEALTHY ones, do not count in the sum of a locality's weights.
  CHECK(error_in(locality("a",
                          0,
                          endpoint(1, "load_balancing_weight { value: 4294967295 }") +
                              endpoint(2, "health_status: UNHEALTHY")))
            .empty());
}

TEST_CASE("parse_endpoints: an endpoint may have a hostname", "[xds][parse][A81]") {
  const auto received =
      parse(one_endpoint("endpoint { hostname: \"h.example\" " + address("1.1.1.1") + " }"));
  const auto& endpoints =
      value_of<Endpoints>(received).priorities.at(0).localities.at(0)->endpoints;
  CHECK(endpoints.at(0).hostname == "h.example");
  CHECK(at("1.1.1.1:80") != endpoints.at(0));
  CHECK(error_in(one_endpoint("endpoint { hostname: \"" + std::string(kMaxNameLength + 1, 'h') +
                              "\" " + address("1.1.1.1") + " }"))
            .rfind(kFirst + ".endpoint.hostname: must not be longer than 1024 bytes", 0) == 0);
  // The hostname may become the value of the :authority header.
  CHECK(error_in(one_endpoint("endpoint { hostname: \"h\\n\" " + address("1.1.1.1") + " }")) ==
        kFirst + ".endpoint.hostname: must be printable ASCII, found \"h\\n\"");
}

TEST_CASE("parse_endpoints: the address of a proxy is validated where it is asked for",
          "[xds][parse][A86]") {
  const auto proxy = [](const std::string& ip,
                        const std::string& type = "envoy.config.core.v3.Address",
                        const std::string& key =
                            "envoy.http11_proxy_transport_socket.proxy_address") {
    return "metadata { typed_filter_metadata { key: \"" + key + "\" value { [type.googleapis.com/" +
           type + "] { " +
           (type == "envoy.config.core.v3.Address"
                ? "socket_address { address: \"" + ip + "\" port_value: 3128 }"
                : "") +
           " } } } }";
  };
  ParseOptions options;
  options.http_connect = true;
  const auto parsed = [&](const std::string& endpoint_metadata,
                          const std::string& locality_metadata,
                          const ParseOptions& used) {
    return parse_endpoints(
        serialise<AssignmentProto>(
            "cluster_name: \"orders\" " +
            locality("a", 0, locality_metadata + " " + endpoint(1, endpoint_metadata))),
        used);
  };
  const auto is_valid = [&](const std::string& own, const std::string& common) {
    return parsed(own, common, options).resource.ok();
  };
  CHECK(is_valid("", ""));
  CHECK(is_valid(proxy("10.9.9.9"), proxy("::1")));
  // Metadata of another type, or under another key, is not the address of a proxy.
  CHECK(is_valid(proxy("", "envoy.config.core.v3.Locality"), ""));
  CHECK(is_valid(proxy("x", "envoy.config.core.v3.Address", "other"), ""));
  const std::string error =
      R"(metadata.typed_filter_metadata["envoy.http11_proxy_transport_socket.proxy_address"].value)"
      R"(.socket_address.address: must be an IPv4 or IPv6 literal, found "x")";
  CHECK(error_of(parsed(proxy("x"), "", options)) ==
        "EDS resource \"orders\": " + kFirst + "." + error);
  CHECK(error_of(parsed("", proxy("x"), options)) ==
        "EDS resource \"orders\": endpoints[0]." + error);
  // With the default options this metadata is not read.
  CHECK(parsed(proxy("x"), proxy("x"), {}).resource.ok());
}

TEST_CASE("parse_endpoints: without session affinity what drains is left out",
          "[xds][parse][A55-40]") {
  ParseOptions options;
  options.session_affinity = false;
  const auto received = parse_endpoints(
      serialise<AssignmentProto>("cluster_name: \"orders\" " +
                                 locality("a", 0, endpoint(1, "health_status: DRAINING"))),
      options);
  CHECK(value_of<Endpoints>(received).priorities.at(0).localities.at(0)->endpoints.empty());
}

TEST_CASE("parse_endpoints: how far a priority may shrink is told in percent",
          "[xds][parse][ENV-7][ENV-9]") {
  const auto of = [](const std::string& policy) {
    return value_of<Endpoints>(parse("policy { " + policy + " }"));
  };
  CHECK(of("").overprovisioning_percent == 140);
  CHECK_FALSE(of("").weighted_priority_health);
  CHECK(of("overprovisioning_factor { value: 100 }").overprovisioning_percent == 100);
  CHECK(of("weighted_priority_health: true").weighted_priority_health);
  CHECK_FALSE(of("overprovisioning_factor { value: 100 }") == of(""));
  CHECK_FALSE(of("weighted_priority_health: true") == of(""));
  CHECK(error_in("policy { overprovisioning_factor {} }") ==
        "policy.overprovisioning_factor: must be greater than 0, found 0");
}

TEST_CASE("parse_endpoints: drops are parts of a million, at most all",
          "[xds][parse][A37-27][A37-32]") {
  struct Row {
    std::string fraction;
    std::uint32_t per_million;
  };

  const auto row = GENERATE(values<Row>({
      {"numerator: 5", 50'000},
      {"numerator: 5 denominator: TEN_THOUSAND", 500},
      {"numerator: 5 denominator: MILLION", 5},
      {"", 0},
      {"numerator: 100", 1'000'000},
      {"numerator: 101", 1'000'000},
      // In 32 bits, 429,497 × 10,000 overflows to 2,704.
      {"numerator: 429497", 1'000'000},
      {"numerator: 4294967295 denominator: TEN_THOUSAND", 1'000'000},
      {"numerator: 4294967295 denominator: MILLION", 1'000'000},
  }));
  DYNAMIC_SECTION(row.fraction) {
    const auto received = parse("policy { drop_overloads { category: \"c\" drop_percentage { " +
                                row.fraction + " } } }");
    CHECK(value_of<Endpoints>(received).drops == std::vector<DropCategory>{{"c", row.per_million}});
  }
}

TEST_CASE("parse_endpoints: a drop has a category and a share", "[xds][parse][A37-32]") {
  struct Row {
    std::string drop;
    std::string error;
  };

  const auto row = GENERATE(values<Row>({
      {"drop_percentage {}", "category: must not be empty, found \"\""},
      {"category: \"c\"", "drop_percentage: must be set, found none"},
      {"category: \"c\" drop_percentage { denominator: 7 }",
       "drop_percentage.denominator: must be HUNDRED, TEN_THOUSAND or MILLION, found 7"},
  }));
  CHECK(error_in("policy { drop_overloads { " + row.drop + " } }") ==
        "policy.drop_overloads[0]." + row.error);
}

TEST_CASE("parse_endpoints: a cluster has a hundred thousand endpoints at most",
          "[xds][parse][limits]") {
  AssignmentProto proto;
  proto.set_cluster_name("orders");
  auto* group = proto.add_endpoints();
  group->mutable_locality();
  group->mutable_load_balancing_weight()->set_value(1);
  for (std::size_t i = 0; i < kMaxEndpointsPerCluster; ++i) {
    auto* socket =
        group->add_lb_endpoints()->mutable_endpoint()->mutable_address()->mutable_socket_address();
    socket->set_address(absl::StrCat("10.", i >> 16, ".", (i >> 8) & 255, ".", i & 255));
    socket->set_port_value(80);
  }
  CHECK(count_endpoints(value_of<Endpoints>(parse_endpoints(proto.SerializeAsString()))) ==
        kMaxEndpointsPerCluster);

  group->add_lb_endpoints();
  CHECK(error_of(parse_endpoints(proto.SerializeAsString())) ==
        "EDS resource \"orders\": endpoints: must have at most 100000 endpoints in all, found "
        "100001 (limit max_endpoints)");
}

TEST_CASE("parse_endpoints: every error is told at once", "[xds][parse][A40]") {
  CHECK(error_in(locality("a", 0, "lb_endpoints {} " + endpoint(1, "load_balancing_weight {}")) +
                 locality("a", 0, "") + locality("b", 2, "") +
                 "policy { drop_overloads { category: \"c\" } }") ==
        "endpoints[0].lb_endpoints[0].endpoint: must be set, found none; "
        "endpoints[0].lb_endpoints[1].load_balancing_weight: must be greater than 0, found 0; "
        "endpoints: locality must be unique in its priority, found {region=\"\", zone=\"a\", "
        "sub_zone=\"\"} again in priority 0; "
        "endpoints: priorities must have no gaps, found 2 but no 1; "
        "policy.drop_overloads[0].drop_percentage: must be set, found none");
}

TEST_CASE("parse_endpoints: bytes that are none have no name", "[xds][parse]") {
  const ReceivedResource received = parse_endpoints("\xff");
  CHECK(received.name.empty());
  CHECK(error_of(received) ==
        "EDS resource must be a ClusterLoadAssignment, found 1 bytes that are not");
  CHECK(error_of(parse_endpoints("")) ==
        "EDS resource \"\": cluster_name: must not be empty, found \"\"");
}

}  // namespace signalbox::xds::parse_endpoints_test
