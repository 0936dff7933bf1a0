// SPDX-License-Identifier: Apache-2.0
//
// Metrics of a runtime: the calls of the application and their latencies, the endpoints of each
// priority, and the reasons of lost connections.
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <signal.h>

#include "tests/e2e/cut_headers.hpp"
#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

using Labels = std::vector<std::string>;

// A sum without series is 0.
double sum(const Runtime& runtime, const std::string& name, const Labels& labels = {}) {
  return metric(runtime, "signalbox_" + name, labels).value_or(0);
}

// The endpoints of cluster "c" at this priority.
double endpoints(const Runtime& runtime, int priority, const std::string& state = "") {
  return sum(runtime,
             "endpoints",
             {"cluster=\"c\"", "priority=\"" + std::to_string(priority) + "\"", state});
}

double changed(const Runtime& runtime, const std::string& change) {
  return sum(runtime, "endpoint_changes_total", {"cluster=\"c\"", "change=\"" + change + "\""});
}

double lost(const Runtime& runtime, const std::string& reason = "") {
  return sum(runtime, "subchannel_disconnections_total", {"cluster=\"c\"", reason});
}

const char kReady[] = "state=\"ready\"";

}  // namespace

TEST_CASE("runtime: without backends the calls of the application are counted, and no attempts",
          "[e2e][runtime][metrics]") {
  constexpr int kCalls = 20;
  BackendProcess first("first");
  BackendProcess second("second");
  const auto plane = start_plane(simple_yaml("orders", "c", {first.address, second.address}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  const Labels ok{"target=\"xds:///orders\"", "code=\"OK\""};
  const Labels unavailable{"target=\"xds:///orders\"", "code=\"UNAVAILABLE\""};
  CHECK(eventually([&] { return sum(*runtime, "calls_total", ok) == 1; }));
  CHECK(sum(*runtime, "rpcs_started_total") == 1);
  CHECK(sum(*runtime, "calls_total", unavailable) == 0);

  first.process.send_signal(SIGKILL);
  second.process.send_signal(SIGKILL);
  REQUIRE(eventually([&] { return runtime->ready() == false; }));
  wait_for_failure(channel);
  const double failed = sum(*runtime, "calls_total", unavailable);
  const double ended = sum(*runtime, "call_duration_seconds_count");
  const double started = sum(*runtime, "rpcs_started_total");
  const double completed = sum(*runtime, "rpcs_completed_total");
  for (int i = 0; i < kCalls; ++i)
    CHECK(call(channel).status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(sum(*runtime, "calls_total", unavailable) == failed + kCalls);
  CHECK(sum(*runtime, "call_duration_seconds_count") == ended + kCalls);
  CHECK(sum(*runtime, "rpcs_started_total") == started);
  CHECK(sum(*runtime, "rpcs_completed_total") == completed);
  CHECK(sum(*runtime, "calls_total", ok) == 1);
}

TEST_CASE("runtime: endpoints are counted by priority and state, with each change",
          "[e2e][runtime][metrics][A75]") {
  BackendProcess first("first");
  BackendProcess second("second");
  const BackendProcess lower("lower");
  const auto plane = start_plane(
      listener_yaml("orders", "orders") + routes_yaml("orders", "c") + cluster_yaml("c") +
      endpoints_yaml("c", {{first.address, second.address}, {lower.address}}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  CHECK(eventually([&] { return endpoints(*runtime, 0, kReady) == 2; }));
  CHECK(endpoints(*runtime, 1) == 0);
  CHECK(changed(*runtime, "added") == 2);
  CHECK(changed(*runtime, "removed") == 0);
  CHECK(lost(*runtime) == 0);
  CHECK(sum(*runtime, "connections_open", {"cluster=\"c\""}) == 2);
  // Prometheus sees the first failover only if its series exists before.
  const Labels failed{"cluster=\"c\"", "direction=\"down\"", "reason=\"failed\""};
  CHECK(metric(*runtime, "signalbox_failovers_total", failed) == 0.0);

  first.process.send_signal(SIGKILL);
  second.process.send_signal(SIGKILL);
  CHECK(eventually([&] { return endpoints(*runtime, 1, kReady) == 1; }));
  CHECK(eventually([&] {
    return endpoints(*runtime, 0, kReady) == 0 && endpoints(*runtime, 0) == 2 &&
           lost(*runtime) == 2;
  }));
  CHECK(changed(*runtime, "added") == 3);
  CHECK(eventually([&] { return sum(*runtime, "connections_open", {"cluster=\"c\""}) == 1; }));

  plane->update(resources(endpoints_yaml("c", {{first.address}, {lower.address}})));
  CHECK(
      eventually([&] { return endpoints(*runtime, 0) == 1 && changed(*runtime, "removed") == 1; }));
  CHECK(changed(*runtime, "added") == 3);
  CHECK(endpoints(*runtime, 1, kReady) == 1);
}

TEST_CASE("runtime: lost connections are counted by gRPC's word for the reason",
          "[e2e][runtime][metrics][A94]") {
  // A server that ends each connection upon the first call.
  TalkingSocket server({{"", http2_settings()}, {"one", goaway(0)}});
  std::string reason = "GOAWAY NO_ERROR";
  SECTION("a GOAWAY") {}
  SECTION("a reset") {
    server.say("");
    server.reset_after();
    reason = "connection reset";
  }
  const auto plane = start_plane(simple_yaml("orders", "c", {server.address()}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  // gRPC tells the reason to a call only, and the end of the connection may be noticed before the
  // call's. So some connections have an unknown reason.
  const std::string known = "reason=\"" + reason + "\"";
  CHECK(eventually([&] {
    const Answer answer = call(channel, {.item = "one", .wait_for_ready = true});
    return !answer.ok() && lost(*runtime, known) > 0;
  }));
  // Each connection was lost, or is open.
  CHECK(eventually([&] {
    return lost(*runtime) + sum(*runtime, "connections_open", {"cluster=\"c\""}) ==
           sum(*runtime, "connection_attempts_total", {"cluster=\"c\"", "result=\"success\""});
  }));
  // Each sum is read at its own time, and a connection may be lost in between. A socket of
  // signalbox's own does not know which error has ended it.
  CHECK(eventually([&] {
    return lost(*runtime, known) + lost(*runtime, "reason=\"unknown\"") +
               lost(*runtime, "reason=\"socket error\"") ==
           lost(*runtime);
  }));
}

TEST_CASE("runtime: latencies have the buckets that the program chose",
          "[e2e][runtime][metrics][A66]") {
  const auto plane = start_plane("");
  RuntimeOptions options = options_for(plane->address());
  const auto [scale, buckets] = GENERATE(values<std::pair<LatencyBuckets, int>>(
      {{LatencyBuckets::kShort, 14}, {LatencyBuckets::kGrpc, 41}}));
  options.latency_buckets = scale;
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  std::istringstream lines(runtime->metrics_text());
  int seen = 0;
  for (std::string line; std::getline(lines, line);)
    seen += line.find("signalbox_call_duration_seconds_bucket{") == 0 ? 1 : 0;
  CHECK(seen == buckets + 1);  // The last one is +Inf.
}

}  // namespace signalbox::test
