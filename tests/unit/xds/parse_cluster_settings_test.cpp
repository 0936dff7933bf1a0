// SPDX-License-Identifier: Apache-2.0
//
// Settings of a cluster except health checks, TLS and LB policies, which parse_health_check_test,
// parse_tls_test and parse_lb_policy_test have, and except those of parse_cluster_test.
#include <chrono>

#include <catch2/catch.hpp>

#include "messages/cluster.hpp"
#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "tests/support/parse_options.hpp"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/client/resource_cache.hpp"
#include "xds/parse/cluster.hpp"

namespace signalbox::xds::parse_cluster_settings_test {
namespace {

using namespace std::chrono_literals;
using ClusterProto = envoy::config::cluster::v3::Cluster;

const std::string kHttpOptions =
    "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

ReceivedResource parse(const std::string& fields, const ParseOptions& options = {}) {
  return parse_cluster(
      serialise<ClusterProto>(
          R"(name: "orders" type: EDS eds_cluster_config { eds_config { ads {} } } )" + fields),
      options);
}

Cluster cluster_with(const std::string& fields, const ParseOptions& options = {}) {
  return value_of<Cluster>(parse(fields, options));
}

std::string error_in(const std::string& fields) {
  const std::string error = error_of(parse(fields));
  const std::string prefix = R"(CDS resource "orders": )";
  return error.rfind(prefix, 0) == 0 ? error.substr(prefix.size()) : error;
}

std::string upstream(const std::string& options) {
  return "upstream_config { typed_config { [" + kHttpOptions + "] { " + options + " } } }";
}

std::string idle(const std::string& duration) {
  return upstream("common_http_protocol_options { idle_timeout { " + duration + " } }");
}

OutlierDetection detection(const std::string& fields) {
  const auto found = cluster_with("outlier_detection { " + fields + " }").outlier_detection;
  REQUIRE(found.has_value());
  return *found;
}

}  // namespace

// --- idle_timeout -------------------------------------------------------------

TEST_CASE("parse_cluster: idle_timeout is an hour unless all of the way to it is set",
          "[xds][parse][A75-14][A75-17][A75-18][A75-21][A75-22]") {
  struct Row {
    const char* rule;
    std::string fields;
    Duration timeout;
  };

  const auto row = GENERATE(values<Row>({
      {"A75-14: no upstream_config", "", 1h},
      {"A75-17: no common_http_protocol_options", upstream(""), 1h},
      {"A75-18: no idle_timeout", upstream("common_http_protocol_options {}"), 1h},
      {"A75-21: set", idle("seconds: 90 nanos: 5"), 90s + 5ns},
      {"A75-21: zero is legal", idle(""), 0s},
      {"A75-19: the least and the most are legal",
       idle("seconds: 315576000000 nanos: 999999999"),
       std::chrono::hours(24 * 36'525)},
  }));
  DYNAMIC_SECTION(row.rule) {
    CHECK(cluster_with(row.fields).idle_timeout == row.timeout);
  }
}

TEST_CASE("parse_cluster: an upstream_config that says no idle_timeout in range is an error",
          "[xds][parse][A75-15][A75-16][A75-19][A75-20][A75-23]") {
  const std::string place = "upstream_config.typed_config";
  const std::string duration = place + ".value.common_http_protocol_options.idle_timeout.";

  struct Row {
    const char* rule;
    std::string fields;
    std::string error;
  };

  const auto row = GENERATE_COPY(values<Row>({
      {"A75-15: another type",
       R"(upstream_config { typed_config { type_url: "type.googleapis.com/x.Y" } })",
       place + ".type_url: must be " + kHttpOptions + ", found \"x.Y\""},
      {"A75-15: no type",
       "upstream_config { typed_config {} }",
       place + ".type_url: must name a type, found \"\""},
      {"A75-15: nothing in it", "upstream_config {}", place + ": must be set, found none"},
      {"A75-16: undecodable",
       "upstream_config { typed_config { type_url: \"" + kHttpOptions + "\" value: \"\\377\" } }",
       place + ".value: must be of type HttpProtocolOptions, found 1 bytes that are not"},
      {"A75-19: negative seconds",
       idle("seconds: -1"),
       duration + "seconds: must be in [0, 315576000000], found -1"},
      {"A75-19: too many seconds",
       idle("seconds: 315576000001"),
       duration + "seconds: must be in [0, 315576000000], found 315576000001"},
      {"A75-20: negative nanos",
       idle("nanos: -1"),
       duration + "nanos: must be in [0, 999999999], found -1"},
      {"A75-20: too many nanos",
       idle("nanos: 1000000000"),
       duration + "nanos: must be in [0, 999999999], found 1000000000"},
  }));
  DYNAMIC_SECTION(row.rule) {
    CHECK(error_in(row.fields) == row.error);
  }
}

// --- override_host_status --------------------------------------------------------

TEST_CASE("parse_cluster: override_host_status keeps what a session can stay in",
          "[xds][parse][A55-3][A55-4][A55-5]") {
  const HealthStatusSet usual{HealthStatus::kUnknown, HealthStatus::kHealthy};

  struct Row {
    const char* rule;
    std::string fields;
    HealthStatusSet statuses;
  };

  const auto row = GENERATE_COPY(values<Row>({
      {"A55-5: no common_lb_config", "", usual},
      {"A55-5: not set", "common_lb_config {}", usual},
      {"A55-5: set but empty", "common_lb_config { override_host_status {} }", {}},
      {"A55-3: set",
       "common_lb_config { override_host_status { statuses: DRAINING statuses: HEALTHY } }",
       {HealthStatus::kDraining, HealthStatus::kHealthy}},
      {"A55-4: others are ignored",
       "common_lb_config { override_host_status { statuses: UNHEALTHY statuses: TIMEOUT "
       "statuses: DEGRADED statuses: 77 statuses: UNKNOWN } }",
       {HealthStatus::kUnknown}},
      {"A55-4: nothing but others",
       "common_lb_config { override_host_status { statuses: UNHEALTHY } }",
       {}},
  }));
  DYNAMIC_SECTION(row.rule) {
    CHECK(cluster_with(row.fields).override_host_status == row.statuses);
  }
}

TEST_CASE("parse_cluster: without session affinity override_host_status is not read",
          "[xds][parse][A55-40]") {
  ParseOptions options;
  options.session_affinity = false;
  CHECK(cluster_with("common_lb_config { override_host_status { statuses: DRAINING } }", options)
            .override_host_status == Cluster{}.override_host_status);
}

// --- circuit breakers ---------------------------------------------------------------

TEST_CASE("parse_cluster: the first threshold of priority DEFAULT limits the calls",
          "[xds][parse][A32][A37-18]") {
  struct Row {
    const char* rule;
    std::string thresholds;
    std::uint32_t limit;
  };

  const auto row = GENERATE(values<Row>({
      {"none", "", 1024},
      {"DEFAULT is what is not set", "thresholds { max_requests { value: 7 } }", 7},
      {"zero is a limit", "thresholds { max_requests { value: 0 } }", 0},
      {"HIGH does not count", "thresholds { priority: HIGH max_requests { value: 7 } }", 1024},
      {"DEFAULT after HIGH",
       "thresholds { priority: HIGH max_requests { value: 7 } } "
       "thresholds { priority: DEFAULT max_requests { value: 8 } }",
       8},
      {"the first of two",
       "thresholds { max_requests { value: 8 } } thresholds { max_requests { value: 9 } }",
       8},
      {"the first, even if it says nothing",
       "thresholds {} thresholds { max_requests { value: 9 } }",
       1024},
  }));
  DYNAMIC_SECTION(row.rule) {
    CHECK(cluster_with("circuit_breakers { " + row.thresholds + " }").max_concurrent_requests ==
          row.limit);
  }
}

// --- outlier detection ----------------------------------------------------------------

TEST_CASE("parse_cluster: outlier detection is as the gRFC has it where nothing is set",
          "[xds][parse][A50]") {
  CHECK(cluster_with("").outlier_detection == std::nullopt);
  OutlierDetection usual;
  usual.success_rate = OutlierDetection::SuccessRate{1900, 100, 5, 100};
  CHECK(detection("") == usual);
  CHECK(usual.interval == 10s);
  CHECK(usual.base_ejection_time == 30s);
  CHECK(usual.max_ejection_time == 300s);
  CHECK(usual.max_ejection_percent == 10);
}

TEST_CASE("parse_cluster: outlier detection takes every field", "[xds][parse][A50]") {
  const OutlierDetection all =
      detection(R"(interval { seconds: 1 } base_ejection_time { seconds: 2 }
                   max_ejection_time { seconds: 3 } max_ejection_percent { value: 4 }
                   enforcing_success_rate { value: 5 } success_rate_minimum_hosts { value: 6 }
                   success_rate_request_volume { value: 7 } success_rate_stdev_factor { value: 8 }
                   failure_percentage_threshold { value: 9 }
                   enforcing_failure_percentage { value: 10 }
                   failure_percentage_minimum_hosts { value: 11 }
                   failure_percentage_request_volume { value: 12 })");
  CHECK(all.interval == 1s);
  CHECK(all.base_ejection_time == 2s);
  CHECK(all.max_ejection_time == 3s);
  CHECK(all.max_ejection_percent == 4);
  CHECK(all.success_rate == OutlierDetection::SuccessRate{8, 5, 6, 7});
  CHECK(all.failure_percentage == OutlierDetection::FailurePercentage{9, 10, 11, 12});
}

TEST_CASE("parse_cluster: an algorithm of outlier detection that is not enforced is off",
          "[xds][parse][A50]") {
  CHECK(detection("enforcing_success_rate { value: 0 }").success_rate == std::nullopt);
  CHECK(detection("enforcing_failure_percentage { value: 0 }").failure_percentage == std::nullopt);
  CHECK(detection("enforcing_failure_percentage { value: 1 }").failure_percentage ==
        OutlierDetection::FailurePercentage{85, 1, 5, 50});
  // Fields of an algorithm that is off are not checked.
  CHECK(detection("failure_percentage_threshold { value: 101 }").failure_percentage ==
        std::nullopt);
}

TEST_CASE("parse_cluster: nothing is ejected for less than the base time", "[xds][parse][A50]") {
  CHECK(detection("base_ejection_time { seconds: 900 }").max_ejection_time == 900s);
  CHECK(detection("base_ejection_time { seconds: 9 } max_ejection_time { seconds: 1 }")
            .max_ejection_time == 9s);
  CHECK(detection("base_ejection_time { seconds: 9 }").max_ejection_time == 300s);
}

TEST_CASE("parse_cluster: percentages above 100 and durations out of range are errors",
          "[xds][parse][A50][A75-23]") {
  const std::string percents = GENERATE(as<std::string>{},
                                        "max_ejection_percent",
                                        "enforcing_success_rate",
                                        "enforcing_failure_percentage");
  CHECK(error_in("outlier_detection { " + percents + " { value: 100 } }").empty());
  CHECK(error_in("outlier_detection { " + percents + " { value: 101 } }") ==
        "outlier_detection." + percents + ": must be at most 100, found 101");
  const std::string enforced = "outlier_detection { enforcing_failure_percentage { value: 1 } ";
  CHECK(error_in(enforced + "failure_percentage_threshold { value: 101 } }") ==
        "outlier_detection.failure_percentage_threshold: must be at most 100, found 101");
  const std::string durations =
      GENERATE(as<std::string>{}, "interval", "base_ejection_time", "max_ejection_time");
  CHECK(error_in("outlier_detection { " + durations + " { seconds: -1 nanos: 1000000000 } }") ==
        "outlier_detection." + durations +
            ".seconds: must be in [0, 315576000000], found -1; outlier_detection." + durations +
            ".nanos: must be in [0, 999999999], found 1000000000");
}

// --- load reports ---------------------------------------------------------------------

TEST_CASE("parse_cluster: a server of load reports is self", "[xds][parse][A27][A37-17][C1]") {
  CHECK(error_in("lrs_server { self {} }").empty());
  const auto other =
      GENERATE(as<std::string>{}, "ads {}", "path: \"p\"", "api_config_source {}", "");
  CHECK(error_in("lrs_server { " + other + " }") ==
        "lrs_server: must be self, found another server");
}

TEST_CASE("parse_cluster: load is reported to the server that sent the cluster, if at all",
          "[xds][parse][A27][C1]") {
  ParseOptions options;
  options.server = 3;
  CHECK_FALSE(cluster_with("", options).load_reporting);
  CHECK_FALSE(
      cluster_with("lrs_report_endpoint_metrics: \"cpu_utilization\"", options).load_reporting);
  const auto reporting = cluster_with("lrs_server { self {} }", options).load_reporting;
  REQUIRE(reporting);
  CHECK(reporting->server == 3);
}

TEST_CASE("parse_cluster: load reports have the EDS service only if CDS names one",
          "[xds][parse][A27][C3]") {
  const auto service_of = [](const std::string& discovery) {
    const auto proto =
        serialise<ClusterProto>("name: \"orders\" lrs_server { self {} } " + discovery);
    return value_of<Cluster>(parse_cluster(proto, {})).load_reporting->service;
  };
  CHECK(service_of("type: EDS eds_cluster_config { eds_config { ads {} } }").empty());
  CHECK(service_of(
            "type: EDS eds_cluster_config { eds_config { ads {} } service_name: \"orders\" }") ==
        "orders");
}

TEST_CASE("parse_cluster: the chosen values of endpoints are reported",
          "[xds][parse][A64][A85][C6]") {
  struct Row {
    const char* when;
    bool chosen;  // GRPC_EXPERIMENTAL_XDS_ORCA_LRS_PROPAGATION.
    std::vector<std::string> names;
    LoadMetricChoice choice;
  };

  const LoadMetricChoice all_as_a64{.all_named = true, .prefixed = false};
  const auto row = GENERATE_COPY(values<Row>({
      {"nothing is listed", false, {}, all_as_a64},
      {"nothing is listed, and clusters choose", true, {}, {}},
      {"utilisations are listed",
       false,
       {"cpu_utilization", "mem_utilization", "application_utilization"},
       {.cpu_utilization = true, .mem_utilization = true, .application_utilization = true}},
      {"names are listed", false, {"named_metrics.a", "named_metrics.b"}, {.named = {"a", "b"}}},
      {"all names are listed", true, {"named_metrics.a", "named_metrics.*"}, {.all_named = true}},
      {"only unknown names are listed", false, {"rps", "named_metrics", "eps_fractional"}, {}},
  }));
  CAPTURE(row.when);
  std::string fields = "lrs_server { self {} }";
  for (const std::string& name : row.names)
    fields += " lrs_report_endpoint_metrics: \"" + name + "\"";
  ParseOptions options;
  options.endpoint_metrics_are_chosen = row.chosen;
  const auto reporting = cluster_with(fields, options).load_reporting;
  REQUIRE(reporting);
  CHECK(reporting->metrics == row.choice);
}

// --- clusters that differ ---------------------------------------------------------------

TEST_CASE("resource cache: a cluster that differs in any setting is another",
          "[xds][client][parse]") {
  const std::string system_roots =
      R"(transport_socket { typed_config {
           [type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext] {
             common_tls_context { validation_context { system_root_certs {} } } } } })";
  const std::vector<std::string> settings = {
      "",
      "connect_timeout { seconds: 1 }",
      idle("seconds: 1"),
      "common_lb_config { override_host_status {} }",
      "circuit_breakers { thresholds { max_requests { value: 1 } } }",
      "outlier_detection {}",
      "outlier_detection { interval { seconds: 1 } }",
      system_roots,
      "lb_policy: RING_HASH",
      "lb_policy: RING_HASH ring_hash_lb_config { maximum_ring_size { value: 2048 } }",
      "lrs_server { self {} }",
      "lrs_server { self {} } lrs_report_endpoint_metrics: \"cpu_utilization\"",
  };
  const auto resource = [&](std::size_t i) {
    const auto received = parse(settings[i], all_parse_options());
    INFO(settings[i] << error_of(received));
    REQUIRE(received.resource.ok());
    return *received.resource;
  };
  for (std::size_t i = 0; i < settings.size(); ++i) {
    for (std::size_t j = 0; j < settings.size(); ++j) {
      CAPTURE(settings[i], settings[j]);
      CHECK(same_content(resource(i), resource(j)) == (i == j));
    }
  }
}

}  // namespace signalbox::xds::parse_cluster_settings_test
