// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <string>

#include <catch2/catch.hpp>

#include "messages/cluster.hpp"
#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/parse/cluster.hpp"

namespace signalbox::xds {
namespace {

using namespace std::chrono_literals;
using ClusterProto = envoy::config::cluster::v3::Cluster;

const std::string kTimes = "timeout { seconds: 1 } interval { seconds: 5 } ";
const std::string kThresholds = "unhealthy_threshold { value: 2 } healthy_threshold { value: 3 } ";

ReceivedResource parse(const std::string& fields, const ParseOptions& options = {}) {
  return parse_cluster(
      serialise<ClusterProto>(
          R"(name: "orders" type: EDS eds_cluster_config { eds_config { ads {} } } )" + fields),
      options);
}

std::string check(const std::string& probe) {
  return "health_checks { " + kTimes + kThresholds + probe + " } ";
}

HealthChecksPtr checks_in(const std::string& fields, const ParseOptions& options = {}) {
  return value_of<Cluster>(parse(fields, options)).health_checks;
}

HealthCheck only_check_in(const std::string& fields) {
  const HealthChecksPtr checks = checks_in(fields);
  REQUIRE(checks != nullptr);
  REQUIRE(checks->size() == 1);
  return checks->front();
}

template <typename Probe>
Probe probe(const std::string& text) {
  const HealthCheck found = only_check_in(check(text));
  REQUIRE(std::holds_alternative<Probe>(found.probe));
  return std::get<Probe>(found.probe);
}

std::string error_in(const std::string& fields) {
  const std::string error = error_of(parse(fields));
  const std::string prefix = R"(CDS resource "orders": health_checks[0].)";
  return error.rfind(prefix, 0) == 0 ? error.substr(prefix.size()) : error;
}

}  // namespace

TEST_CASE("parse_health_checks: all that is said of times is read", "[xds][parse][health_checks]") {
  const HealthCheck plain = only_check_in(check("tcp_health_check {}"));
  CHECK(plain == HealthCheck{.probe = HealthCheck::Tcp{},
                             .timeout = 1s,
                             .interval = 5s,
                             .unhealthy_threshold = 2,
                             .healthy_threshold = 3});
  const HealthCheck jittered = only_check_in(
      check("tcp_health_check {} initial_jitter { seconds: 2 } interval_jitter { nanos: 7 } "
            "interval_jitter_percent: 100"));
  CHECK(jittered.initial_jitter == 2s);
  CHECK(jittered.interval_jitter == 7ns);
  CHECK(jittered.interval_jitter_percent == 100);
}

TEST_CASE("parse_health_checks: by gRPC", "[xds][parse][health_checks]") {
  CHECK(probe<HealthCheck::Grpc>("grpc_health_check {}") == HealthCheck::Grpc{});
  CHECK(probe<HealthCheck::Grpc>(R"(grpc_health_check { service_name: "s" authority: "a" })") ==
        HealthCheck::Grpc{"s", "a"});
}

TEST_CASE("parse_health_checks: by HTTP", "[xds][parse][health_checks]") {
  using Http = HealthCheck::Http;
  CHECK(probe<Http>(R"(http_health_check { path: "/up?a=b" })") ==
        Http{.host = "", .path = "/up?a=b", .expected = {{200, 201}}});
  CHECK(probe<Http>(R"(http_health_check { path: "/" host: "h" method: GET codec_client_type: HTTP1
                         expected_statuses { start: 100 end: 101 }
                         expected_statuses { start: 599 end: 600 }
                         retriable_statuses { start: 500 end: 600 } })") ==
        Http{.host = "h",
             .path = "/",
             .expected = {{100, 101}, {599, 600}},
             .retriable = {{500, 600}}});
}

TEST_CASE("parse_health_checks: by TCP", "[xds][parse][health_checks]") {
  using Tcp = HealthCheck::Tcp;
  CHECK(probe<Tcp>("tcp_health_check {}") == Tcp{});
  CHECK(probe<Tcp>(R"(tcp_health_check { send { text: "00fF41" } receive { text: "42" }
                        receive { binary: "xyz" } })") == Tcp{std::string("\0\xff"
                                                                          "A",
                                                                          3),
                                                              {"B", "xyz"}});
}

TEST_CASE("parse_health_checks: settings out of range are refused by their path",
          "[xds][parse][health_checks]") {
  struct Row {
    std::string fields;
    std::string error;
  };

  const std::string tcp = "tcp_health_check {} ";
  const std::string hex = "must have text of hexadecimal digits, two for each byte, found ";
  const auto with_times = [&](const std::string& times) {
    return "health_checks { " + times + kThresholds + tcp + "}";
  };
  const auto with_thresholds = [&](const std::string& thresholds) {
    return "health_checks { " + kTimes + thresholds + tcp + "}";
  };
  const auto http = [](const std::string& fields) {
    return check("http_health_check { path: \"/\" " + fields + " }");
  };
  const auto row = GENERATE_COPY(values<Row>({
      {with_times("interval { seconds: 1 }"), "timeout: must be set, found none"},
      {with_times("interval { seconds: 1 } timeout {}"), "timeout: must be longer than 0, found 0"},
      {with_times("timeout { seconds: 1 }"), "interval: must be set, found none"},
      {with_times("timeout { seconds: 1 } interval {}"),
       "interval: must be longer than 0, found 0"},
      {with_times("timeout { seconds: 1 } interval { seconds: -1 }"),
       "interval.seconds: must be in [0, 315576000000], found -1"},
      {check(tcp + "initial_jitter { nanos: 1000000000 }"),
       "initial_jitter.nanos: must be in [0, 999999999], found 1000000000"},
      {check(tcp + "interval_jitter { seconds: -1 }"),
       "interval_jitter.seconds: must be in [0, 315576000000], found -1"},
      {check(tcp + "interval_jitter_percent: 101"),
       "interval_jitter_percent: must be at most 100, found 101"},
      {with_thresholds("healthy_threshold { value: 1 }"),
       "unhealthy_threshold: must be set, found none"},
      {with_thresholds("unhealthy_threshold {} healthy_threshold { value: 1 }"),
       "unhealthy_threshold: must be at least 1, found 0"},
      {with_thresholds("unhealthy_threshold { value: 1 }"),
       "healthy_threshold: must be set, found none"},
      {with_thresholds("unhealthy_threshold { value: 1 } healthy_threshold {}"),
       "healthy_threshold: must be at least 1, found 0"},
      {check("http_health_check {}"), R"(http_health_check.path: must not be empty, found "")"},
      {check("http_health_check { path: \"/\\r\\nX: y\" }"),
       R"(http_health_check.path: must have no control characters, found "/\r\nX: y")"},
      {http("host: \"a\\tb\""),
       R"(http_health_check.host: must have no control characters, found "a\tb")"},
      {http("expected_statuses { start: 99 end: 200 }"),
       "http_health_check.expected_statuses[0]: must be a range [start, end) within [100, 600) "
       "that is not empty, found [99, 200)"},
      {http("expected_statuses { start: 200 end: 201 } expected_statuses { start: 200 end: 601 }"),
       "http_health_check.expected_statuses[1]: must be a range [start, end) within [100, 600) "
       "that is not empty, found [200, 601)"},
      {http("retriable_statuses { start: 200 end: 200 }"),
       "http_health_check.retriable_statuses[0]: must be a range [start, end) within [100, 600) "
       "that is not empty, found [200, 200)"},
      {check("tcp_health_check { send {} }"), "tcp_health_check.send: " + hex + "\"\""},
      {check(R"(tcp_health_check { send { text: "abc" } })"),
       "tcp_health_check.send: " + hex + "\"abc\""},
      {check(R"(tcp_health_check { receive { text: "00" } receive { text: "0g" } })"),
       "tcp_health_check.receive[1]: " + hex + "\"0g\""},
      {check(R"(grpc_health_check { authority: "\303\244" })"),
       "grpc_health_check.authority: must be printable ASCII, found \"ä\""},
      // Also of a check that would be left out.
      {"health_checks { " + kTimes + " custom_health_check {} healthy_threshold { value: 1 } }",
       "unhealthy_threshold: must be set, found none"},
  }));
  INFO(row.fields);
  CHECK(error_in(row.fields) == row.error);
}

TEST_CASE("parse_health_checks: what cannot be done as it is asked for is not done",
          "[xds][parse][health_checks]") {
  const std::string tls =
      "transport_socket { typed_config { "
      "[type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext] { "
      "common_tls_context { validation_context { ca_certificate_provider_instance { "
      "instance_name: \"roots\" } } } } } } ";
  ParseOptions options;
  options.certificate_providers = {"roots"};
  const auto is_left_out = [&](const std::string& fields) {
    return checks_in(fields, options) == nullptr;
  };
  const auto http = [](const std::string& fields) {
    return check("http_health_check { path: \"/\" " + fields + " }");
  };
  CHECK(is_left_out(check("custom_health_check {}")));
  CHECK(is_left_out(check("")));
  CHECK(is_left_out(http("codec_client_type: HTTP2")));
  CHECK(is_left_out(http("method: HEAD")));
  CHECK(is_left_out(http("request_headers_to_add {}")));
  CHECK(is_left_out(http("service_name_matcher { exact: \"s\" }")));
  CHECK(is_left_out(http("send { text: \"00\" }")));
  CHECK(is_left_out(http("receive { text: \"00\" }")));

  CHECK(is_left_out(tls + http("")));
  CHECK(is_left_out(tls + check("tcp_health_check { send { text: \"00\" } }")));
  CHECK(is_left_out(tls + check("tcp_health_check { receive { text: \"00\" } }")));
  CHECK_FALSE(is_left_out(tls + check("tcp_health_check {}")));
  CHECK_FALSE(is_left_out(tls + check("grpc_health_check {}")));

  // The others are.
  const HealthChecksPtr both =
      checks_in(check("custom_health_check {}") + check("grpc_health_check {}") +
                check("tcp_health_check {}"));
  REQUIRE(both != nullptr);
  CHECK(both->size() == 2);
}

TEST_CASE("parse_health_checks: may be left unread, as in gRPC", "[xds][parse][health_checks]") {
  ParseOptions options;
  options.health_checks = false;
  CHECK(checks_in("health_checks {}", options) == nullptr);
  CHECK(checks_in(check("tcp_health_check {}"), options) == nullptr);
}

TEST_CASE("parse_health_checks: those of an aggregate are its leaves'",
          "[xds][parse][health_checks]") {
  const auto received = parse_cluster(serialise<ClusterProto>(
      R"(name: "orders" cluster_type { typed_config {
           [type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig] {
             clusters: "primary" } } } )" +
      check("tcp_health_check {}")));
  CHECK(value_of<Cluster>(received).health_checks == nullptr);
}

}  // namespace signalbox::xds
