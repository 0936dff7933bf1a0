// SPDX-License-Identifier: Apache-2.0
//
// Settings of health checks that are refused. tests/spec/health_checks_test has the others.
#include <string>

#include <catch2/catch.hpp>

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/parse/cluster.hpp"

namespace signalbox::xds::parse_health_check_test {
namespace {

using ClusterProto = envoy::config::cluster::v3::Cluster;

const std::string kTimes = "timeout { seconds: 1 } interval { seconds: 5 } ";
const std::string kThresholds = "unhealthy_threshold { value: 2 } healthy_threshold { value: 3 } ";

ReceivedResource parse(const std::string& fields) {
  return parse_cluster(serialise<ClusterProto>(
      R"(name: "orders" type: EDS eds_cluster_config { eds_config { ads {} } } )" + fields));
}

std::string check(const std::string& probe) {
  return "health_checks { " + kTimes + kThresholds + probe + " } ";
}

std::string error_in(const std::string& fields) {
  const std::string error = error_of(parse(fields));
  const std::string prefix = R"(CDS resource "orders": health_checks[0].)";
  return error.rfind(prefix, 0) == 0 ? error.substr(prefix.size()) : error;
}

}  // namespace

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
      // A health check that signalbox does not support is left out, but validated.
      {"health_checks { " + kTimes + " custom_health_check {} healthy_threshold { value: 1 } }",
       "unhealthy_threshold: must be set, found none"},
  }));
  INFO(row.fields);
  CHECK(error_in(row.fields) == row.error);
}

}  // namespace signalbox::xds::parse_health_check_test
