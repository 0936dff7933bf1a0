// SPDX-License-Identifier: Apache-2.0
#include "metrics/exporter.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>
#include <unistd.h>

#include "tests/support/large_metrics.hpp"
#include "tests/unit/metrics/metrics_fixture.hpp"

namespace signalbox::metrics {
namespace {

using namespace std::chrono_literals;

ProcessFacts some_process() {
  return {.stat = "1 (a) S 1 1 1 0 -1 0 1 0 0 0 150 50 0 0 20 0 1 0 3000 8192 7",
          .ticks_per_second = 100,
          .page_bytes = 4096,
          .boot_time = 1'000'000,
          .open_descriptors = 12,
          .most_descriptors = 1024};
}

// Instruments that make every metric appear on the page.
std::shared_ptr<Instruments> busy_instruments() {
  auto instruments = std::make_shared<Instruments>();
  const ClusterName cluster("orders \"primary\"\n");
  instruments->observe(PriorityActive{cluster, 1});
  instruments->observe(FailedOver{cluster});
  instruments->observe(FailoverEnded{cluster, 30ms});
  instruments->observe(FailoverEnded{cluster, 90s});
  instruments->observe(EndpointsCounted{cluster, {2, 1, 0, 0, 0, 0}});
  instruments->observe(EndpointsChanged{cluster, 1, 0});
  instruments->observe(ConnectionAttempted{cluster, true});
  instruments->observe(ConnectionLost{cluster});
  instruments->observe(SessionsHeld{cluster, 1});
  instruments->observe(SessionsSwept{cluster, 1});
  auto load = instruments->hold_load({cluster, ClusterName("leaf"), 1, 70});
  instruments->observe(HealthProbed{cluster, true});
  instruments->observe(WeightsTaken{cluster, false, 1, 1, 1, {0, 200}, "shop", "zone-a"});
  instruments->observe(
      OutliersDetected{cluster, DetectionMethod::kSuccessRate, DetectionOutcome::kEjected, 1});
  instruments->observe(OutliersDetected{
      cluster, DetectionMethod::kSuccessRate, DetectionOutcome::kMaxEjectionOverflow, 1});
  instruments->set_xds_connected("xds.host:443", true);
  instruments->count_updates("xds.host:443", ResourceType::kListener, 1, 1);
  instruments->set_xds_resources(ResourceType::kCluster, "acked", 2);
  instruments->set_config_generation("shop", 3);
  instruments->record_applied("shop", 1ms, 2ms, std::chrono::system_clock::now());
  instruments->count_stream_end("xds.host:443", StreamEnd::kOk);
  instruments->count_load_stream_end("cp:1", StreamEnd::kOk);
  instruments->count_load_report_sent("cp:1");
  instruments->count_streamed_load_report(LoadReportResult::kTaken);
  instruments->count_endpoint_load_stream(LoadStreamEnd::kEnded);
  instruments->record_response(ResourceType::kListener, 100);
  instruments->add_policies("priority", 1);
  instruments->add_subchannels(ConnectivityState::kReady, 1);
  instruments->add_connections(cluster, 1);
  instruments->count_actor_death("policy", "runtime_error");
  instruments->count_config_rejected("parse");
  instruments->count_admin_refused(AdminLimit::kHttpRequests);
  instruments->count_log_lines_lost(1);
  instruments->count_recording_dropped(1);
  instruments->count_recording_late(1);
  instruments->actor_stats("policy")->count_message();
  instruments->actor_stats("policy")->record_handled(1ms);
  instruments->watch_certificates("endpoint", [] {
    return CertificateEnds{std::chrono::system_clock::now(), std::chrono::system_clock::now()};
  });
  instruments->count_certificate_failure("endpoint");
  static const auto gate = std::make_shared<const signalbox::testing::FakeGate>(7, false);
  instruments->observe(CircuitBreakerSet{cluster, gate});
  instruments->drops(cluster, "lb")->add(0, 1);
  instruments->breaker_drops(cluster)->add(0, 1);
  instruments->endpoint(cluster, Address("10.0.0.1:80"))->add(0, 1);
  instruments->pick_failures("com.example.Nearest")->add(0, 1);
  instruments->filter_failures("com.example.Tenant")->add(0, 1);
  const auto stats = instruments->call_stats("shop", cluster);
  stats->count_pick(PickOutcome::kComplete, CallZone::kOwn);
  stats->count_retry(RetryResult::kRetried);
  stats->count_affinity(AffinityResult::kHit);
  stats->count_cookie(CookieSet::kNew);
  stats->count_started();
  stats->count_completed(0);
  stats->record_duration(30ms);
  stats->count_load_report(LoadReportResult::kTaken);
  const auto callers = instruments->caller_stats("shop");
  callers->count(0, 30ms);
  callers->record_wait({DelayReason::kConnecting, 0}, 30ms);
  for (std::size_t i = 0; i < kMaxSeries; ++i)
    instruments->call_stats("shop", ClusterName("c" + std::to_string(i)));

  struct Busy {
    std::shared_ptr<Instruments> instruments;
    std::shared_ptr<const void> load;  // Destroyed before the instruments.
  };

  const auto busy = std::make_shared<const Busy>(Busy{instruments, std::move(load)});
  return {busy, instruments.get()};
}

TEST_CASE("exporter: writes what Prometheus reads", "[metrics][exporter]") {
  const std::string text = Exporter(busy_instruments(), some_process).text();
  CHECK_THAT(text, Catch::Contains("# TYPE signalbox_failovers_total counter\n"));
  CHECK_THAT(text, Catch::Contains("signalbox_config_generation{target=\"shop\"} 3\n"));
  CHECK_THAT(text,
             Catch::Contains("signalbox_priority_active{cluster=\"orders \\\"primary\\\"\\n\"} 1"));
  CHECK_THAT(text, Catch::Contains("code=\"OK\"} 1\n"));
}

TEST_CASE("exporter: a call below no aggregate has no such label", "[metrics][exporter][A75-54]") {
  const auto instruments = std::make_shared<Instruments>();
  instruments->call_stats("shop", ClusterName("a"))->count_started();
  instruments->call_stats("shop", ClusterName("b"), ClusterName("both"))->count_started();
  const std::string text = Exporter(instruments).text();
  CHECK_THAT(text,
             Catch::Contains("signalbox_rpcs_started_total{target=\"shop\",cluster=\"a\"} 1\n"));
  CHECK_THAT(text,
             Catch::Contains("signalbox_rpcs_started_total{target=\"shop\",cluster=\"b\",aggregate="
                             "\"both\"} 1\n"));
  CHECK_THAT(text, Catch::Contains("signalbox_rpcs_active{cluster=\"a\"} 1\n"));
}

TEST_CASE("exporter: buckets are cumulative", "[metrics][exporter]") {
  const std::string text = Exporter(busy_instruments(), some_process).text();
  CHECK_THAT(text, Catch::Contains(",le=\"0.025\"} 0\n"));
  CHECK_THAT(text, Catch::Contains(",le=\"0.05\"} 1\n"));
  CHECK_THAT(text, Catch::Contains(",le=\"60\"} 1\n"));
  CHECK_THAT(text, Catch::Contains(",le=\"+Inf\"} 2\n"));
}

TEST_CASE("exporter: the page of 100 clusters of 100 endpoints has a bounded size",
          "[metrics][exporter]") {
  const auto lines = [](const std::string& page) { return std::ranges::count(page, '\n'); };
  const auto page_of = [](std::size_t endpoints, LatencyScale scale) {
    const auto made = signalbox::testing::large_metrics(/*targets=*/1, 100, endpoints, scale);
    return Exporter(made.instruments).text();
  };
  const std::string page = page_of(100, LatencyScale::kShort);
  CHECK(page.size() < 1U << 20U);
  // The number of endpoints with series of their own is limited. Other endpoints add no line.
  CHECK(lines(page) == lines(page_of(1000, LatencyScale::kShort)));
  // gRPC's scale has 27 more buckets in each histogram: one for each cluster, one for the target's
  // calls, and two for its waits.
  CHECK(lines(page_of(100, LatencyScale::kGrpc)) == lines(page) + 27L * (100 + 1 + 2));
}

TEST_CASE("exporter: exports every metric of the table", "[metrics][exporter]") {
  const std::string text = Exporter(busy_instruments(), some_process).text();
  for (const MetricRow& row : kMetrics)
    CHECK_THAT(text, Catch::Contains("# HELP " + std::string(row.name) + " "));
}

TEST_CASE("exporter: the metrics of the process are on the page, and not in the program's exposer",
          "[metrics][exporter][process]") {
  const Exporter exporter(std::make_shared<Instruments>(), some_process);
  CHECK_THAT(exporter.text(), Catch::Contains("\nprocess_open_fds 12\n"));
  for (const prometheus::MetricFamily& family : exporter.Collect())
    CHECK_THAT(family.name, Catch::StartsWith("signalbox_"));
}

#ifdef SIGNALBOX_PROMTOOL
TEST_CASE("exporter: passes promtool", "[metrics][exporter]") {
  const std::string text = Exporter(busy_instruments(), some_process).text();
  const auto directory = std::filesystem::temp_directory_path();
  const auto file = directory / ("signalbox_metrics_" + std::to_string(getpid()) + ".txt");
  std::ofstream(file) << text;
  const std::string command = std::string(SIGNALBOX_PROMTOOL) + " check metrics < " + file.string();
  CHECK(std::system(command.c_str()) == 0);
  std::filesystem::remove(file);
}
#endif

}  // namespace
}  // namespace signalbox::metrics
