// SPDX-License-Identifier: Apache-2.0
#include "metrics/exporter.hpp"

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/metrics/metrics_fixture.hpp"

namespace signalbox::metrics {
namespace {

using namespace std::chrono_literals;

// Something of every metric.
std::shared_ptr<Instruments> busy_instruments() {
  auto instruments = std::make_shared<Instruments>();
  const ClusterName cluster("orders \"primary\"\n");
  instruments->observe(PriorityActive{cluster, 1});
  instruments->observe(FailedOver{cluster});
  instruments->observe(FailoverEnded{cluster, 30ms});
  instruments->observe(FailoverEnded{cluster, 90s});
  instruments->observe(EndpointsCounted{cluster, {2, 1, 0, 0, 0, 0}});
  instruments->observe(ConnectionAttempted{cluster, true});
  instruments->observe(ConnectionLost{cluster});
  instruments->observe(SessionsHeld{cluster, 1});
  instruments->observe(SessionsSwept{cluster, 1});
  auto load = instruments->hold_load({cluster, ClusterName("leaf"), 1, 70});
  instruments->observe(HealthProbed{cluster, true});
  instruments->observe(
      OutliersDetected{cluster, DetectionMethod::kSuccessRate, DetectionOutcome::kEjected, 1});
  instruments->observe(OutliersDetected{
      cluster, DetectionMethod::kSuccessRate, DetectionOutcome::kMaxEjectionOverflow, 1});
  instruments->set_xds_connected("xds.host:443", true);
  instruments->count_updates("xds.host:443", ResourceType::kListener, 1, 1);
  instruments->set_xds_resources(ResourceType::kCluster, "acked", 2);
  instruments->set_config_generation("shop", 3);
  instruments->add_policies("priority", 1);
  instruments->add_subchannels(ConnectivityState::kReady, 1);
  instruments->add_connections(cluster, 1);
  instruments->count_actor_death("policy", "runtime_error");
  instruments->count_config_rejected("parse");
  instruments->actor_messages("policy")->add(0, 5);
  static const auto gate = std::make_shared<const signalbox::testing::FakeGate>(7, false);
  instruments->observe(CircuitBreakerSet{cluster, gate});
  instruments->drops(cluster, "lb")->add(0, 1);
  instruments->breaker_drops(cluster)->add(0, 1);
  instruments->pick_failures("com.example.Nearest")->add(0, 1);
  instruments->filter_failures("com.example.Tenant")->add(0, 1);
  const auto stats = instruments->call_stats("shop", cluster);
  stats->count_pick(PickOutcome::kComplete);
  stats->count_retry(RetryResult::kRetried);
  stats->count_affinity(AffinityResult::kHit);
  stats->count_cookie(CookieSet::kNew);
  stats->count_started();
  stats->count_completed(0);
  for (std::size_t i = 0; i < kMaxSeries; ++i)
    instruments->call_stats("shop", ClusterName("c" + std::to_string(i)));

  struct Busy {
    std::shared_ptr<Instruments> instruments;
    std::shared_ptr<const void> load;  // Goes first.
  };

  const auto busy = std::make_shared<const Busy>(Busy{instruments, std::move(load)});
  return {busy, instruments.get()};
}

// GET /metrics over a socket; empty if nobody answers.
std::string get_metrics(int port) {
  const int socket_fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
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

  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(socket_fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    const std::string request = "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n";
    if (send(socket_fd, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
      std::array<char, 4096> buffer;
      for (ssize_t got; (got = recv(socket_fd, buffer.data(), buffer.size(), 0)) > 0;)
        answer.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }
  close(socket_fd);
  return answer;
}

TEST_CASE("exporter: writes what Prometheus reads", "[metrics][exporter]") {
  const std::string text = Exporter(busy_instruments()).text();
  CHECK_THAT(text, Catch::Contains("# TYPE signalbox_failovers_total counter\n"));
  CHECK_THAT(text, Catch::Contains("signalbox_config_generation{target=\"shop\"} 3\n"));
  CHECK_THAT(text,
             Catch::Contains("signalbox_priority_active{cluster=\"orders \\\"primary\\\"\\n\"} 1"));
  CHECK_THAT(text, Catch::Contains("code=\"OK\"} 1\n"));
}

TEST_CASE("exporter: buckets are cumulative", "[metrics][exporter]") {
  const std::string text = Exporter(busy_instruments()).text();
  CHECK_THAT(text, Catch::Contains(",le=\"0.025\"} 0\n"));
  CHECK_THAT(text, Catch::Contains(",le=\"0.05\"} 1\n"));
  CHECK_THAT(text, Catch::Contains(",le=\"60\"} 1\n"));
  CHECK_THAT(text, Catch::Contains(",le=\"+Inf\"} 2\n"));
}

TEST_CASE("exporter: exports every metric of the table", "[metrics][exporter]") {
  const std::string text = Exporter(busy_instruments()).text();
  for (const MetricRow& row : kMetrics)
    CHECK_THAT(text, Catch::Contains("# HELP " + std::string(row.name) + " "));
}

TEST_CASE("exporter: serves its page on a free port until it is destroyed", "[metrics][exporter]") {
  auto instruments = std::make_shared<Instruments>();
  auto server = serve_metrics("127.0.0.1:0", std::make_shared<Exporter>(instruments));
  REQUIRE(server.ok());
  const int port = (*server)->port();
  CHECK(port > 0);
  instruments->set_config_generation("shop", 9);
  CHECK_THAT(get_metrics(port),
             Catch::StartsWith("HTTP/1.1 200") &&
                 Catch::Contains("signalbox_config_generation{target=\"shop\"} 9\n"));
  server->reset();
  CHECK(get_metrics(port).empty());
}

TEST_CASE("exporter: says so when the port is taken or the address is none",
          "[metrics][exporter]") {
  const auto exporter = std::make_shared<Exporter>(std::make_shared<Instruments>());
  const auto first = serve_metrics("127.0.0.1:0", exporter);
  REQUIRE(first.ok());
  const std::string taken = "127.0.0.1:" + std::to_string((*first)->port());

  const auto second = serve_metrics(taken, exporter);
  CHECK(second.status().code() == absl::StatusCode::kUnavailable);
  CHECK_THAT(std::string(second.status().message()), Catch::Contains(taken));
  CHECK(serve_metrics("no address", exporter).status().code() == absl::StatusCode::kUnavailable);
}

#ifdef SIGNALBOX_PROMTOOL
TEST_CASE("exporter: passes promtool, the page too", "[metrics][exporter]") {
  const auto exporter = std::make_shared<Exporter>(busy_instruments());
  const auto server = serve_metrics("127.0.0.1:0", exporter);
  REQUIRE(server.ok());
  const std::string page = get_metrics((*server)->port());
  const auto directory = std::filesystem::temp_directory_path();
  const auto file = directory / ("signalbox_metrics_" + std::to_string(getpid()) + ".txt");

  for (const std::string& text : {exporter->text(), page.substr(page.find("\r\n\r\n") + 4)}) {
    std::ofstream(file) << text;
    const std::string command =
        std::string(SIGNALBOX_PROMTOOL) + " check metrics < " + file.string();
    CHECK(std::system(command.c_str()) == 0);
  }
  std::filesystem::remove(file);
}
#endif

}  // namespace
}  // namespace signalbox::metrics
