// SPDX-License-Identifier: Apache-2.0
//
// Envoy's active health checks, in the order of the fields of envoy.config.core.v3.HealthCheck:
// which checks a cluster has, when an endpoint is probed, and which results make it unfit.
//
// Not here:
//   - The requests of probes by HTTP, gRPC and TCP: health_prober_test, over real sockets.
//   - Settings that are refused: parse_health_check_test.
//   - Fields that signalbox does not read (decision 62): no_traffic_interval, unhealthy_interval,
//     the *_edge_interval fields, reuse_connection, tls_options, alt_port.
//
// Different from Envoy: an endpoint counts as fit until its first probe ends. Envoy gives it no
// calls until then.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/policy_registry.hpp"
#include "lb/tree/cds.hpp"
#include "messages/cluster.hpp"
#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "tests/support/policy_harness.hpp"
#include "tests/support/xds_world.hpp"
#include "tests/unit/lb/health_check_harness.hpp"
#include "tests/unit/lb/leaf_harness.hpp"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/parse/cluster.hpp"
#include "xds/parse/endpoints.hpp"
#include "xds/parse/parse_options.hpp"

namespace signalbox {
namespace {

using namespace std::chrono_literals;
using lb::CheckHarness;
using lb::some_check;
using ClusterProto = envoy::config::cluster::v3::Cluster;

const std::string kEds = "type: EDS eds_cluster_config { eds_config { ads {} } } ";
const std::string kTimes = "timeout { seconds: 1 } interval { seconds: 5 } ";
const std::string kThresholds = "unhealthy_threshold { value: 2 } healthy_threshold { value: 3 } ";

ReceivedResource parse_fields(const std::string& fields, const xds::ParseOptions& options = {}) {
  return xds::parse_cluster(xds::serialise<ClusterProto>("name: \"orders\" " + fields), options);
}

std::string check(const std::string& probe) {
  return "health_checks { " + kTimes + kThresholds + probe + " } ";
}

HealthChecksPtr checks_in(const std::string& fields, const xds::ParseOptions& options = {}) {
  return xds::value_of<Cluster>(parse_fields(kEds + fields, options)).health_checks;
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

}  // namespace

// --- timeout, interval, initial_jitter, interval_jitter, interval_jitter_percent ---------------

SCENARIO("health checks: the times of a check are read, and timeout and interval must be set",
         "[spec][xds][parse][health_checks][ENV-3]") {
  GIVEN("a check with all its times") {
    const HealthCheck found = only_check_in(
        check("tcp_health_check {} initial_jitter { seconds: 2 } interval_jitter { nanos: 7 } "
              "interval_jitter_percent: 100"));
    THEN("each has its value") {
      CHECK(found.timeout == 1s);
      CHECK(found.interval == 5s);
      CHECK(found.initial_jitter == 2s);
      CHECK(found.interval_jitter == 7ns);
      CHECK(found.interval_jitter_percent == 100);
    }
  }
  GIVEN("a check without jitter") {
    const HealthCheck found = only_check_in(check("tcp_health_check {}"));
    THEN("there is none") {
      CHECK(found.initial_jitter == 0s);
      CHECK(found.interval_jitter == 0s);
      CHECK(found.interval_jitter_percent == 0);
    }
  }
  GIVEN("a check without a timeout, and one without an interval") {
    const auto error_with = [](const std::string& times) {
      return xds::error_of(
          parse_fields(kEds + "health_checks { tcp_health_check {} " + times + kThresholds + "}"));
    };
    THEN("the cluster is rejected") {
      CHECK(error_with("interval { seconds: 5 } ") ==
            "CDS resource \"orders\": health_checks[0].timeout: must be set, found none");
      CHECK(error_with("timeout { seconds: 1 } ") ==
            "CDS resource \"orders\": health_checks[0].interval: must be set, found none");
    }
  }
}

SCENARIO("health checks: a probe begins an interval after the last one ended",
         "[spec][lb][health_check]") {
  GIVEN("a check every 5 s without jitter") {
    CheckHarness checked({some_check()});
    THEN("the first probe begins at once") {
      CHECK(checked.probing[0].has_value());
      CHECK_FALSE(checked.timers[0].has_value());
    }
    WHEN("the probe ends") {
      checked.answer(ProbeOutcome::kPassed);
      THEN("the next one begins 5 s later") {
        REQUIRE(checked.timers[0].has_value());
        CHECK(checked.timers[0]->delay == 5s);
        CHECK_FALSE(checked.probing[0].has_value());
        checked.fire();
        CHECK(checked.probing[0].has_value());
      }
    }
  }
}

SCENARIO("health checks: jitter delays the first probe, and lengthens intervals",
         "[spec][lb][health_check]") {
  GIVEN("a check every 5 s with an initial jitter of 10 s, and a jitter of 2 s and 20 %") {
    HealthCheck jittered = some_check();
    jittered.initial_jitter = 10s;
    jittered.interval_jitter = 2s;
    jittered.interval_jitter_percent = 20;
    std::set<Duration> first;
    std::set<Duration> pauses;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      CheckHarness checked({jittered}, seed);
      REQUIRE_FALSE(checked.probing[0].has_value());
      first.insert(checked.timers[0]->delay);
      checked.fire();
      checked.answer(ProbeOutcome::kPassed);
      pauses.insert(checked.timers[0]->delay);
    }
    THEN("the first probe begins within 10 s, at different times") {
      CHECK(*first.begin() >= 0s);
      CHECK(*first.rbegin() <= 10s);
      CHECK(*first.rbegin() - *first.begin() > 5s);
    }
    THEN("intervals have 5 s to 8 s") {
      CHECK(*pauses.begin() >= 5s);
      CHECK(*pauses.rbegin() <= 8s);
      CHECK(*pauses.rbegin() - *pauses.begin() > 1500ms);
    }
  }
}

// --- unhealthy_threshold, healthy_threshold ----------------------------------------------------

SCENARIO("health checks: both thresholds must be set", "[spec][xds][parse][health_checks]") {
  GIVEN("a check with both thresholds") {
    const HealthCheck found = only_check_in(check("tcp_health_check {}"));
    THEN("both are read") {
      CHECK(found.unhealthy_threshold == 2);
      CHECK(found.healthy_threshold == 3);
    }
  }
  GIVEN("a check that lacks one") {
    const auto error_with = [](const std::string& threshold) {
      return xds::error_of(
          parse_fields(kEds + "health_checks { tcp_health_check {} " + kTimes + threshold + "}"));
    };
    THEN("the cluster is rejected") {
      CHECK(error_with("healthy_threshold { value: 1 } ") ==
            "CDS resource \"orders\": health_checks[0].unhealthy_threshold: must be set, found "
            "none");
      CHECK(error_with("unhealthy_threshold { value: 1 } ") ==
            "CDS resource \"orders\": health_checks[0].healthy_threshold: must be set, found none");
    }
  }
}

SCENARIO("health checks: a threshold counts results in a row, and the first probe decides at once",
         "[spec][lb][health_check]") {
  struct Row {
    const char* when;
    std::uint32_t unhealthy;
    std::uint32_t healthy;
    std::string probes;    // + passed, - failed, ! refused.
    std::string endpoint;  // The endpoint after each probe: + fit, - unfit.
  };

  const auto row = GENERATE(values<Row>({
      {"the first probe passes", 3, 3, "+", "+"},
      {"the first probe fails", 3, 3, "-", "-"},
      {"three in a row have to fail", 3, 1, "+--+---", "++++++-"},
      {"one result is enough", 1, 1, "+-+-+", "+-+-+"},
      {"three in a row have to pass", 1, 3, "-++-+++", "------+"},
      {"a contrary result begins the count anew", 2, 2, "+--++--", "++--++-"},
      {"an answer that refuses needs no threshold", 3, 1, "+-!", "++-"},
      {"the first probe is refused", 3, 2, "!++", "--+"},
      {"a refusal of an unfit endpoint begins the count anew", 1, 2, "-+!++", "----+"},
  }));
  GIVEN(absl::StrCat("thresholds of ", row.unhealthy, " and ", row.healthy, "; ", row.when)) {
    CheckHarness checked({some_check(row.unhealthy, row.healthy)});
    std::string endpoint;
    for (const char each : row.probes) {
      if (!endpoint.empty()) checked.fire();
      checked.answer(each == '+'   ? ProbeOutcome::kPassed
                     : each == '-' ? ProbeOutcome::kFailed
                                   : ProbeOutcome::kRefused);
      REQUIRE_FALSE(checked.reports.empty());
      endpoint += checked.reports.back().ok() ? '+' : '-';
    }
    THEN("the endpoint is fit or unfit after each probe as expected") {
      CHECK(endpoint == row.endpoint);
    }
    THEN("the result is told the first time and when it changes, and every probe is observed") {
      const auto changes = std::ranges::count_if(
          row.endpoint, [last = '?'](char now) mutable { return std::exchange(last, now) != now; });
      CHECK(static_cast<std::ptrdiff_t>(checked.reports.size()) == changes);
      CHECK(checked.observations.size() == row.probes.size());
    }
  }
}

// --- health_checker: http, tcp, grpc, custom ---------------------------------------------------

SCENARIO("health checks: probes are by HTTP, by TCP or by gRPC",
         "[spec][xds][parse][health_checks]") {
  GIVEN("a check by HTTP") {
    using Http = HealthCheck::Http;
    THEN("status 200 is healthy where expected_statuses is not set") {
      CHECK(probe<Http>(R"(http_health_check { path: "/up?a=b" })") ==
            Http{.host = "", .path = "/up?a=b", .expected = {{200, 201}}});
    }
    THEN("host, path and ranges of statuses are read") {
      CHECK(probe<Http>(
                R"(http_health_check { path: "/" host: "h" method: GET codec_client_type: HTTP1
                         expected_statuses { start: 100 end: 101 }
                         expected_statuses { start: 599 end: 600 }
                         retriable_statuses { start: 500 end: 600 } })") ==
            Http{.host = "h",
                 .path = "/",
                 .expected = {{100, 101}, {599, 600}},
                 .retriable = {{500, 600}}});
    }
  }
  GIVEN("a check by TCP") {
    using Tcp = HealthCheck::Tcp;
    THEN("the payloads are optional") {
      CHECK(probe<Tcp>("tcp_health_check {}") == Tcp{});
    }
    THEN("a payload is hexadecimal text or bytes") {
      CHECK(probe<Tcp>(R"(tcp_health_check { send { text: "00fF41" } receive { text: "42" }
                        receive { binary: "xyz" } })") == Tcp{std::string("\0\xff"
                                                                          "A",
                                                                          3),
                                                              {"B", "xyz"}});
    }
  }
  GIVEN("a check by gRPC") {
    using Grpc = HealthCheck::Grpc;
    THEN("service and authority are optional") {
      CHECK(probe<Grpc>("grpc_health_check {}") == Grpc{});
      CHECK(probe<Grpc>(R"(grpc_health_check { service_name: "s" authority: "a" })") ==
            Grpc{"s", "a"});
    }
  }
}

SCENARIO("health checks: a check that cannot be done as it is asked for is left out",
         "[spec][xds][parse][health_checks]") {
  const std::string tls =
      "transport_socket { typed_config { "
      "[type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext] { "
      "common_tls_context { validation_context { ca_certificate_provider_instance { "
      "instance_name: \"roots\" } } } } } } ";
  xds::ParseOptions options;
  options.certificate_providers = {"roots"};
  const auto is_left_out = [&](const std::string& fields) {
    return checks_in(fields, options) == nullptr;
  };
  const auto http = [](const std::string& fields) {
    return check("http_health_check { path: \"/\" " + fields + " }");
  };
  GIVEN("a custom check, and a check of no kind") {
    THEN("they are left out") {
      CHECK(is_left_out(check("custom_health_check {}")));
      CHECK(is_left_out(check("")));
    }
  }
  GIVEN("checks by HTTP with settings that signalbox lacks") {
    THEN("they are left out") {
      CHECK(is_left_out(http("codec_client_type: HTTP2")));
      CHECK(is_left_out(http("method: HEAD")));
      CHECK(is_left_out(http("request_headers_to_add {}")));
      CHECK(is_left_out(http("service_name_matcher { exact: \"s\" }")));
      CHECK(is_left_out(http("send { text: \"00\" }")));
      CHECK(is_left_out(http("receive { text: \"00\" }")));
      CHECK_FALSE(is_left_out(http("")));
    }
  }
  GIVEN("a cluster with TLS") {
    THEN("checks by HTTP and payloads by TCP are left out, and other checks are not") {
      CHECK(is_left_out(tls + http("")));
      CHECK(is_left_out(tls + check("tcp_health_check { send { text: \"00\" } }")));
      CHECK(is_left_out(tls + check("tcp_health_check { receive { text: \"00\" } }")));
      CHECK_FALSE(is_left_out(tls + check("tcp_health_check {}")));
      CHECK_FALSE(is_left_out(tls + check("grpc_health_check {}")));
    }
  }
  GIVEN("one check of three that cannot be done") {
    const HealthChecksPtr checks =
        checks_in(check("custom_health_check {}") + check("grpc_health_check {}") +
                  check("tcp_health_check {}"));
    THEN("the two other checks are done") {
      REQUIRE(checks != nullptr);
      REQUIRE(checks->size() == 2);
      CHECK(std::holds_alternative<HealthCheck::Grpc>(checks->front().probe));
      CHECK(std::holds_alternative<HealthCheck::Tcp>(checks->back().probe));
    }
  }
  GIVEN("a runtime without active health checks") {
    options.health_checks = false;
    THEN("no check is read, not even an invalid one") {
      CHECK(is_left_out(check("tcp_health_check {}")));
      CHECK(is_left_out("health_checks {}"));
    }
  }
}

// --- several checks of a cluster ---------------------------------------------------------------

SCENARIO("health checks: an endpoint has to pass all checks of its cluster",
         "[spec][lb][health_check]") {
  GIVEN("a cluster with two checks") {
    CheckHarness checked({some_check(), some_check()});
    WHEN("one check passes and the other has no result yet") {
      checked.answer(ProbeOutcome::kPassed, 1);
      THEN("nothing is known of the endpoint, and it counts as fit") {
        CHECK(checked.reports.empty());
      }
      AND_WHEN("the other one passes, too") {
        checked.answer(ProbeOutcome::kPassed, 0);
        THEN("the endpoint is fit") {
          CHECK(checked.reports == std::vector<absl::Status>{absl::OkStatus()});
        }
        AND_WHEN("one fails later, and then the other") {
          checked.fire(1);
          checked.answer(ProbeOutcome::kFailed, 1, "refused");
          const absl::Status unfit = checked.reports.back();
          checked.fire(0);
          checked.answer(ProbeOutcome::kFailed, 0, "reset");
          THEN("the endpoint is unfit for the first reason") {
            CHECK(unfit == absl::UnavailableError("health check failed: refused"));
          }
          AND_WHEN("the check that failed first passes again") {
            checked.fire(1);
            checked.answer(ProbeOutcome::kPassed, 1);
            THEN("the endpoint stays unfit until both pass") {
              CHECK(checked.reports.size() == 2);
              checked.fire(0);
              checked.answer(ProbeOutcome::kPassed, 0);
              CHECK(checked.reports.back().ok());
            }
          }
        }
      }
    }
    WHEN("one check fails and the other has no result yet") {
      checked.answer(ProbeOutcome::kFailed, 1);
      THEN("the endpoint is unfit") {
        REQUIRE(checked.reports.size() == 1);
        CHECK_FALSE(checked.reports.front().ok());
      }
    }
  }
}

// --- Cluster.health_checks ---------------------------------------------------------------------

SCENARIO("health checks: each leaf of an aggregate has its own checks",
         "[spec][xds][lb][cds][health_checks][ENV-3]") {
  GIVEN("an aggregate with a health check") {
    const auto received = parse_fields(
        R"(cluster_type { typed_config {
           [type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig] {
             clusters: "primary" } } } )" +
        check("tcp_health_check {}"));
    THEN("the check is not read: it is for the aggregate's leaves to have checks") {
      CHECK(xds::value_of<Cluster>(received).health_checks == nullptr);
    }
  }
  GIVEN("two leaves with different checks") {
    test::XdsWorld world;
    world.eds("primary", {"east:a"});
    world.eds("secondary", {"west:b"});
    XdsConfig config = *world.config();
    const auto set_interval = [&](const char* name, Duration interval) {
      auto& entry = config.clusters.at(ClusterName(name));
      ClusterConfig changed = **entry;
      Cluster cluster = *changed.cluster;
      HealthCheck one = some_check();
      one.interval = interval;
      cluster.health_checks = std::make_shared<const std::vector<HealthCheck>>(1, one);
      changed.cluster = std::make_shared<const Cluster>(std::move(cluster));
      entry = std::make_shared<const ClusterConfig>(std::move(changed));
    };
    set_interval("primary", 7s);
    set_interval("secondary", 9s);
    const auto shared = std::make_shared<const XdsConfig>(std::move(config));
    const auto interval_of = [&](const char* name) {
      test::PolicyHarness policy{lb::make_cds()};
      policy.update(make_lb_config(CdsConfig{ClusterName(name)}), shared);
      const auto found = std::ranges::find_if(policy.effects(), [](const LbEffect& effect) {
        return std::holds_alternative<ServeSubchannels>(effect);
      });
      REQUIRE(found != policy.effects().end());
      const HealthChecksPtr& checks = std::get<ServeSubchannels>(*found).settings.health_checks;
      REQUIRE(checks != nullptr);
      return checks->at(0).interval;
    };
    THEN("the subchannels of each leaf are probed by the leaf's checks") {
      CHECK(interval_of("primary") == 7s);
      CHECK(interval_of("secondary") == 9s);
    }
  }
}

SCENARIO("health checks: an unfit endpoint gets no calls, and keeps its connection",
         "[spec][lb][round_robin][health_check][ENV-24]") {
  GIVEN("two endpoints that are READY") {
    const LbConfigPtr config = make_lb_config(RoundRobinConfig{});
    lb::PolicyContext context;
    context.asks = std::make_shared<const lb::DeafTarget>();
    lb::LeafHarness leaf(lb::make_policy(*config, std::move(context)));
    leaf.update({"a", "b"}, config);
    const auto fit = [&] {
      leaf.step(RebuildDue{});
      const HostReportPtr hosts = leaf.published.back().hosts;
      REQUIRE(hosts != nullptr);
      return hosts->priorities.at(0).healthy.hosts;
    };
    for (const char* address : {"a", "b"}) {
      leaf.idle(address);
      leaf.connecting(address);
      leaf.ready(address);
    }
    REQUIRE(fit() == 2);
    WHEN("one fails its checks") {
      leaf.unhealthy("a");
      THEN("it is not counted as healthy, calls go to the other, and its connection is kept") {
        CHECK(fit() == 1);
        for (int pick = 0; pick < 4; ++pick)
          CHECK(leaf.pick() == "b");
        CHECK(leaf.held.contains("a"));
      }
      AND_WHEN("it passes them again") {
        leaf.ready("a");
        THEN("it is counted again") {
          CHECK(fit() == 2);
        }
      }
    }
  }
}

// --- Endpoint.health_check_config --------------------------------------------------------------

SCENARIO("health checks: an endpoint may be probed on another port, or not at all",
         "[spec][xds][parse][health_checks]") {
  const auto exceptions_of = [](const std::string& health_check_config) {
    return xds::value_of<Endpoints>(
               xds::parse_endpoints(
                   xds::serialise<envoy::config::endpoint::v3::ClusterLoadAssignment>(
                       "cluster_name: \"orders\" endpoints { locality { zone: \"z\" } "
                       "load_balancing_weight { value: 1 } lb_endpoints { endpoint { address { "
                       "socket_address { address: \"10.0.0.1\" port_value: 80 } } " +
                       health_check_config + " } } }")))
        .probe_exceptions;
  };
  GIVEN("an endpoint without a health_check_config") {
    THEN("it is probed where it serves") {
      CHECK(exceptions_of("") == nullptr);
    }
  }
  GIVEN("an endpoint with port_value") {
    const auto exceptions = exceptions_of("health_check_config { port_value: 81 }");
    THEN("it is probed on that port") {
      REQUIRE(exceptions != nullptr);
      CHECK(*exceptions == ProbeExceptions{{Address("10.0.0.1:80"), {false, 81}}});
    }
  }
  GIVEN("an endpoint with disable_active_health_check") {
    const auto exceptions =
        exceptions_of("health_check_config { disable_active_health_check: true }");
    THEN("it is not probed") {
      REQUIRE(exceptions != nullptr);
      CHECK(*exceptions == ProbeExceptions{{Address("10.0.0.1:80"), {true, 0}}});
    }
  }
}

}  // namespace signalbox
