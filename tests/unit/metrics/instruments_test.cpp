// SPDX-License-Identifier: Apache-2.0
#include "metrics/instruments.hpp"

#include <array>
#include <chrono>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/unit/metrics/metrics_fixture.hpp"

namespace signalbox::metrics {
namespace {

using namespace signalbox::testing;
using namespace std::chrono_literals;

const ClusterName kOrders{"orders"};

TEST_CASE("instruments: say which build they belong to", "[metrics][instruments]") {
  const Instruments instruments;
  REQUIRE(series_count(instruments, Metric::kBuildInfo) == 1);
  const Series info = instruments.collect().front().series.front();
  CHECK(info.value == 1);
  CHECK_FALSE(info.labels[0].empty());
  CHECK_FALSE(info.labels[1].empty());
  CHECK_FALSE(info.labels[2].empty());
}

TEST_CASE("instruments: show the priority that is active now", "[metrics][instruments][A56]") {
  Instruments instruments;
  instruments.observe(PriorityActive{kOrders, 0});
  instruments.observe(PriorityActive{kOrders, 2, 0});
  CHECK(value(instruments, Metric::kPriorityActive, {"orders"}) == 2);
  instruments.observe(PriorityActive{kOrders, -1, 2});
  CHECK(value(instruments, Metric::kPriorityActive, {"orders"}) == -1);
}

TEST_CASE("instruments: the load of a tier is what was said last by who still says anything",
          "[metrics][instruments][ENV-11]") {
  Instruments instruments;
  const ClusterName leaf("leaf");
  const auto load = [&](const char* priority) {
    return value(instruments, Metric::kTierLoad, {"orders", "leaf", priority});
  };
  const auto other = instruments.hold_load({kOrders, leaf, 0, 30});
  auto one = instruments.hold_load({kOrders, leaf, 1, 70});
  CHECK(load("1") == 70);
  auto two = instruments.hold_load({kOrders, leaf, 1, 20});
  CHECK(load("1") == 20);
  one = instruments.hold_load({kOrders, leaf, 1, 0});
  CHECK(load("1") == 0);
  one.reset();
  CHECK(load("1") == 20);
  one = instruments.hold_load({kOrders, leaf, 1, 50});
  two.reset();
  CHECK(load("1") == 50);
  one.reset();
  CHECK(load("1") == std::nullopt);
  CHECK(load("0") == 30);
}

TEST_CASE("instruments: count failovers by direction and reason", "[metrics][instruments][A56]") {
  Instruments instruments;
  const FailedOver down{kOrders, FailoverDirection::kDown, FailoverReason::kTimedOut};
  instruments.observe(down);
  instruments.observe(down);
  instruments.observe(FailedOver{kOrders, FailoverDirection::kUp, FailoverReason::kRecovered});
  CHECK(value(instruments, Metric::kFailovers, {"orders", "down", "timed_out"}) == 2);
  CHECK(value(instruments, Metric::kFailovers, {"orders", "up", "recovered"}) == 1);
}

TEST_CASE("instruments: failovers and connection attempts have series before the first event",
          "[metrics][instruments][A56]") {
  Instruments instruments;
  CHECK(series_count(instruments, Metric::kFailovers) == 0);
  instruments.observe(PriorityActive{kOrders, 0});
  const std::array<LabelValues, 5> moves{{{"orders", "down", "failed"},
                                          {"orders", "down", "timed_out"},
                                          {"orders", "down", "reconfigured"},
                                          {"orders", "up", "recovered"},
                                          {"orders", "up", "reconfigured"}}};
  for (const LabelValues& labels : moves)
    CHECK(value(instruments, Metric::kFailovers, labels) == 0);
  CHECK(series_count(instruments, Metric::kFailovers) == moves.size());

  CHECK(series_count(instruments, Metric::kConnectionAttempts) == 0);
  instruments.observe(EndpointsCounted{kOrders, {0, 0, 1}});
  CHECK(value(instruments, Metric::kConnectionAttempts, {"orders", "success"}) == 0);
  CHECK(value(instruments, Metric::kConnectionAttempts, {"orders", "failure"}) == 0);

  // A second policy, or a second subchannel map, of the cluster keeps the values.
  instruments.observe(FailedOver{kOrders});
  instruments.observe(ConnectionAttempted{kOrders, true});
  instruments.observe(PriorityActive{kOrders, 0});
  instruments.observe(EndpointsCounted{kOrders, {0, 0, 1}});
  CHECK(value(instruments, Metric::kFailovers, moves[0]) == 1);
  CHECK(value(instruments, Metric::kConnectionAttempts, {"orders", "success"}) == 1);
}

TEST_CASE("instruments: a cluster that was forgotten begins with 0 again",
          "[metrics][instruments][A56]") {
  Instant now{std::chrono::hours(1)};
  Instruments instruments([&now] { return now; });
  const auto serve_once = [&] {
    const auto held = instruments.hold_cluster(kOrders);
    instruments.observe(PriorityActive{kOrders, 0});
    instruments.observe(EndpointsCounted{kOrders, {1}});
    instruments.observe(FailedOver{kOrders});
    instruments.observe(ConnectionAttempted{kOrders, false});
  };
  serve_once();
  CHECK(value(instruments, Metric::kFailovers, {"orders", "up", "recovered"}) == 0);
  now += Instruments::kRetention;
  CHECK(series_count(instruments, Metric::kFailovers) == 0);
  CHECK(series_count(instruments, Metric::kConnectionAttempts) == 0);
  serve_once();
  CHECK(value(instruments, Metric::kFailovers, {"orders", "up", "recovered"}) == 0);
  CHECK(value(instruments, Metric::kFailovers, {"orders", "down", "failed"}) == 1);
  CHECK(value(instruments, Metric::kConnectionAttempts, {"orders", "success"}) == 0);
}

TEST_CASE("instruments: series without an event leave half of the limit to others, M1",
          "[metrics][instruments]") {
  Instruments instruments;
  for (std::size_t i = 0; i < kMaxSeries; ++i)
    instruments.observe(PriorityActive{ClusterName("c" + std::to_string(i)), 0});
  CHECK(series_count(instruments, Metric::kFailovers) == kMaxSeries / 2);
  const LabelValues overflow{"signalbox_failovers_total"};
  CHECK(value(instruments, Metric::kSeriesOverflow, overflow) == std::nullopt);
  for (std::size_t i = kMaxSeries / 2; i < kMaxSeries; ++i)
    instruments.observe(FailedOver{ClusterName("c" + std::to_string(i))});
  CHECK(series_count(instruments, Metric::kFailovers) == kMaxSeries);
  CHECK(value(instruments, Metric::kSeriesOverflow, overflow) == std::nullopt);
}

TEST_CASE("instruments: sort failovers into buckets, the bound included",
          "[metrics][instruments]") {
  Instruments instruments;
  for (const Duration duration :
       {Duration(1ms), Duration(2ms), Duration(10s + 1ms), Duration(2min)})
    instruments.observe(FailoverEnded{kOrders, duration});
  const auto histogram = series(instruments, Metric::kFailoverDuration, {"orders"})->histogram;
  CHECK(histogram.counts[0] == 1);   // ≤ 1 ms
  CHECK(histogram.counts[1] == 1);   // ≤ 5 ms
  CHECK(histogram.counts[12] == 1);  // ≤ 11 s
  CHECK(histogram.counts[16] == 1);  // more than 60 s
  CHECK(histogram.sum == Approx(130.004));
}

TEST_CASE("instruments: calls count by target and code, as their callers saw them",
          "[metrics][instruments]") {
  Instruments instruments;
  const auto shop = instruments.caller_stats("shop");
  CHECK(instruments.caller_stats("shop") == shop);
  instruments.caller_stats("hall")->count(14, 2s);
  shop->count(0, 1ms);
  shop->count(0, 20ms);
  shop->count_call(4);  // The Pick API counts calls without their durations.
  CHECK(value(instruments, Metric::kCalls, {"shop", "OK"}) == 2);
  CHECK(value(instruments, Metric::kCalls, {"shop", "DEADLINE_EXCEEDED"}) == 1);
  CHECK(value(instruments, Metric::kCalls, {"shop", "UNAVAILABLE"}) == std::nullopt);
  CHECK(value(instruments, Metric::kCalls, {"hall", "OK"}) == 0);
  CHECK(value(instruments, Metric::kCalls, {"hall", "UNAVAILABLE"}) == 1);
  const auto durations = series(instruments, Metric::kCallDuration, {"shop"})->histogram;
  CHECK(durations.counts.size() == kLatencyBuckets.size() + 1);
  CHECK(durations.counts[1] == 1);  // ≤ 1 ms
  CHECK(durations.counts[5] == 1);  // ≤ 25 ms
  CHECK(durations.sum == Approx(0.021));
}

TEST_CASE("instruments: waits for an endpoint count by target and reason, in gRPC's words",
          "[metrics][instruments][A121]") {
  Instruments instruments;
  const auto stats = instruments.caller_stats("shop");
  CHECK(series_count(instruments, Metric::kPickWait) == 0);
  stats->record_wait({DelayReason::kResolving}, 3s);
  stats->record_wait({DelayReason::kConnecting, 0}, 2ms);
  stats->record_wait({DelayReason::kStalePick}, 2ms);
  stats->record_wait({DelayReason::kFailing, 12}, 2ms);
  stats->record_wait({DelayReason::kFilterDelay}, 2ms);
  const auto sum = [&](const char* type) {
    const auto found = series(instruments, Metric::kPickWait, {"shop", type});
    return found ? found->histogram.sum : -1;
  };
  CHECK(sum("resolving") == Approx(3));
  CHECK(sum("p0:connecting") == Approx(0.002));
  CHECK(sum("subchannel_state_mismatch") == Approx(0.002));
  CHECK(sum("p12:picker_failing_with_wait_for_ready") == Approx(0.002));
  CHECK(sum("filter_delay") == Approx(0.002));
  CHECK(series_count(instruments, Metric::kPickWait) == 5);
}

TEST_CASE("instruments: durations of attempts add up over the targets of a cluster",
          "[metrics][instruments]") {
  Instruments instruments;
  const auto durations = [&] {
    const auto found = series(instruments, Metric::kRpcDuration, {"orders"});
    return found ? found->histogram : Histogram();
  };
  const auto one = instruments.call_stats("shop", kOrders);
  CHECK(durations().counts.empty());
  one->record_duration(1ms);
  instruments.call_stats("hall", kOrders)->record_duration(11s);
  CHECK(durations().counts.size() == kLatencyBuckets.size() + 1);
  CHECK(durations().counts[1] == 1);
  CHECK(durations().counts.back() == 1);
  CHECK(durations().sum == Approx(11.001));
}

TEST_CASE("instruments: calls that are not counted have no series", "[metrics][instruments]") {
  Instruments instruments(std::chrono::steady_clock::now, LatencyScale::kShort, CallMetrics::kOff);
  CHECK(instruments.call_stats("shop", kOrders) == nullptr);
  CHECK(instruments.call_stats("shop", kOrders, ClusterName("all")) == nullptr);
  CHECK(instruments.caller_stats("shop") == nullptr);
  for (const Metric metric : {Metric::kCalls,
                              Metric::kCallDuration,
                              Metric::kPickWait,
                              Metric::kRpcsStarted,
                              Metric::kRpcsCompleted,
                              Metric::kRpcsActive,
                              Metric::kRpcDuration,
                              Metric::kPicks,
                              Metric::kRetries,
                              Metric::kAffinityPicks,
                              Metric::kAffinityCookies,
                              Metric::kLoadReports}) {
    INFO(row_of(metric).name);
    CHECK(series_count(instruments, metric) == 0);
  }
  instruments.drops(kOrders, "lb")->add(0, 1);
  CHECK(value(instruments, Metric::kDrops, {"orders", "lb"}) == 1);
}

TEST_CASE("instruments: latencies have gRPC's buckets if the program asks for them",
          "[metrics][instruments][A66]") {
  Instruments instruments(std::chrono::steady_clock::now, LatencyScale::kGrpc);
  instruments.caller_stats("shop")->count(0, 10us);
  instruments.call_stats("shop", kOrders)->record_duration(200s);
  const auto calls = series(instruments, Metric::kCallDuration, {"shop"})->histogram;
  CHECK(calls.counts.size() == kGrpcLatencyBuckets.size() + 1);
  CHECK(calls.counts[1] == 1);  // ≤ 10 µs
  const auto attempts = series(instruments, Metric::kRpcDuration, {"orders"})->histogram;
  CHECK(attempts.counts.back() == 1);  // more than 100 s
  for (const Family& family : instruments.collect()) {
    if (family.row->buckets == Buckets::kLatency && family.row->kind == MetricKind::kHistogram)
      CHECK(family.bounds.size() == kGrpcLatencyBuckets.size());
  }
}

TEST_CASE("instruments: streams count by server and end, and responses by their size",
          "[metrics][instruments][A78]") {
  Instruments instruments;
  instruments.count_stream_end("cp:1", StreamEnd::kOk, 0);
  instruments.count_stream_end("cp:1", StreamEnd::kNoResponse);
  instruments.count_stream_end("cp:1", StreamEnd::kError, 2);
  CHECK(value(instruments, Metric::kXdsStreams, {"cp:1", "ok"}) == 0);
  CHECK(value(instruments, Metric::kXdsStreams, {"cp:1", "no_response"}) == 1);
  CHECK(value(instruments, Metric::kXdsStreams, {"cp:1", "error"}) == 2);
  // Streams of load reports have metrics of their own.
  instruments.count_load_stream_end("cp:1", StreamEnd::kError, 0);
  instruments.count_load_stream_end("cp:1", StreamEnd::kOk);
  instruments.count_load_report_sent("cp:1");
  instruments.count_load_report_sent("cp:1");
  CHECK(value(instruments, Metric::kLrsStreams, {"cp:1", "error"}) == 0);
  CHECK(value(instruments, Metric::kLrsStreams, {"cp:1", "ok"}) == 1);
  CHECK(value(instruments, Metric::kLrsReports, {"cp:1"}) == 2);
  instruments.count_streamed_load_report(LoadReportResult::kPartly);
  CHECK(value(instruments, Metric::kStreamedLoadReports, {"partly"}) == 1);
  instruments.count_endpoint_load_stream(LoadStreamEnd::kUnimplemented);
  CHECK(value(instruments, Metric::kEndpointLoadStreams, {"unimplemented"}) == 1);
  instruments.record_response(ResourceType::kEndpoints, 1024);
  instruments.record_response(ResourceType::kEndpoints, 5 << 20U);
  const auto sizes = series(instruments, Metric::kXdsResponseBytes, {"EDS"})->histogram;
  CHECK(sizes.counts.size() == kSizeBuckets.size() + 1);
  CHECK(sizes.counts[1] == 1);  // ≤ 1 KiB
  CHECK(sizes.counts[9] == 1);  // ≤ 16 MiB
  CHECK(sizes.sum == 1024 + (5 << 20U));
}

TEST_CASE("instruments: complete picks count by zone, over all targets", "[metrics][instruments]") {
  Instruments instruments;
  const auto shop = instruments.call_stats("shop", kOrders);
  const auto desk = instruments.call_stats("desk", kOrders);
  shop->count_pick(PickOutcome::kComplete, CallZone::kUnknown);
  CHECK(series_count(instruments, Metric::kZoneCalls) == 1);
  shop->count_pick(PickOutcome::kQueue, CallZone::kOther);
  shop->count_pick(PickOutcome::kComplete, CallZone::kOwn);
  desk->count_pick(PickOutcome::kComplete, CallZone::kOwn);
  CHECK(value(instruments, Metric::kZoneCalls, {"orders", "unknown"}) == 1);
  CHECK(value(instruments, Metric::kZoneCalls, {"orders", "own"}) == 2);
  CHECK(value(instruments, Metric::kZoneCalls, {"orders", "other"}) == 0);
  desk->count_pick(PickOutcome::kComplete, CallZone::kOther);
  CHECK(value(instruments, Metric::kZoneCalls, {"orders", "other"}) == 1);
}

TEST_CASE("instruments: weights of endpoints count by target, cluster and locality when taken",
          "[metrics][instruments][A78-1][A78-2][A78-3][A78-4][A78-5][A100-10]") {
  Instruments instruments;
  const LabelValues labels{"shop", "orders", "zone-a"};
  instruments.observe(WeightsTaken{kOrders, true, 2, 1, 1, {0, 0, 0}, "shop", "zone-a"});
  CHECK(value(instruments, Metric::kWrrFallbacks, labels) == 1);
  instruments.observe(WeightsTaken{kOrders, false, 0, 1, 0, {200, 20'000, 0}, "shop", "zone-a"});
  CHECK(value(instruments, Metric::kWrrFallbacks, labels) == 1);
  CHECK(value(instruments, Metric::kWrrNotYetUsable, labels) == 2);
  CHECK(value(instruments, Metric::kWrrStale, labels) == 2);
  CHECK(value(instruments, Metric::kWrrInSlowStart, labels) == 1);
  const auto weights = series(instruments, Metric::kWrrWeights, labels)->histogram;
  CHECK(weights.counts.size() == kWeightBuckets.size() + 1);
  CHECK(weights.counts.front() == 4);  // Without a weight.
  CHECK(weights.counts[7] == 1);       // More than 100, at most 250.
  CHECK(weights.counts.back() == 1);   // More than 10,000.
  CHECK(weights.sum == 20'200);
  // All five series exist from the first event on.
  instruments.observe(WeightsTaken{kOrders, false, 0, 0, 0, {}, "desk"});
  CHECK(value(instruments, Metric::kWrrStale, {"desk", "orders", ""}) == 0);
  CHECK(series(instruments, Metric::kWrrWeights, {"desk", "orders", ""})->histogram.sum == 0);
}

TEST_CASE("instruments: a configuration that picks see has its time and its durations",
          "[metrics][instruments]") {
  Instruments instruments;
  const std::chrono::system_clock::time_point now(1'700'000'000s);
  instruments.record_applied("shop", 2ms, 7s, now);
  // No response caused a configuration that DNS changed, so it has no time since a response.
  instruments.record_applied("shop", 2ms, std::nullopt, now + 500ms);
  CHECK(value(instruments, Metric::kConfigLastApplied, {"shop"}) == 1'700'000'000.5);
  CHECK(series(instruments, Metric::kConfigApplyDuration, {"shop"})->histogram.counts[2] == 2);
  const auto propagation = series(instruments, Metric::kConfigPropagation, {"shop"})->histogram;
  CHECK(propagation.sum == Approx(7));
  CHECK(propagation.counts[13] == 1);  // ≤ 10 s
}

TEST_CASE("instruments: targets beyond the limit share other, M1", "[metrics][instruments]") {
  Instruments instruments;
  for (std::size_t i = 0; i < kMaxSeries + 2; ++i)
    instruments.caller_stats("t" + std::to_string(i))->count_call(0);
  CHECK(value(instruments, Metric::kCalls, {"other", "OK"}) == 2);
  CHECK(value(instruments, Metric::kCalls, {"t3", "OK"}) == 1);
  CHECK(value(instruments, Metric::kSeriesOverflow, {std::string(row_of(Metric::kCalls).name)}) ==
        2);
}

TEST_CASE("instruments: show endpoints in every state, zeros too", "[metrics][instruments]") {
  Instruments instruments;
  instruments.observe(EndpointsCounted{kOrders, {3, 0, 1, 2, 0, 4, 5}});
  CHECK(value(instruments, Metric::kEndpoints, {"orders", "", "ready"}) == 3);
  CHECK(value(instruments, Metric::kEndpoints, {"orders", "", "connecting"}) == 0);
  CHECK(value(instruments, Metric::kEndpoints, {"orders", "", "idle"}) == 1);
  CHECK(value(instruments, Metric::kEndpoints, {"orders", "", "transient_failure"}) == 2);
  CHECK(value(instruments, Metric::kEndpoints, {"orders", "", "draining"}) == 0);
  CHECK(value(instruments, Metric::kEndpoints, {"orders", "", "ejected"}) == 4);
  CHECK(value(instruments, Metric::kEndpoints, {"orders", "", "unhealthy"}) == 5);
}

TEST_CASE("instruments: endpoints add up in each priority, and end with the cluster",
          "[metrics][instruments]") {
  Instruments instruments;
  auto held = instruments.hold_cluster(kOrders);
  instruments.observe(EndpointsCounted{kOrders, {3}, {}, 0});
  instruments.observe(EndpointsCounted{kOrders, {2}, {}, 0});
  instruments.observe(EndpointsCounted{kOrders, {1}, {}, 1});
  instruments.observe(EndpointsCounted{kOrders, {7}, {}});
  instruments.observe(EndpointsCounted{kOrders, {1}, {3}, 0});
  const auto ready = [&](const char* priority) {
    return value(instruments, Metric::kEndpoints, {"orders", priority, "ready"});
  };
  CHECK(ready("0") == 3);
  CHECK(ready("1") == 1);
  CHECK(ready("") == 7);
  CHECK(value(instruments, Metric::kEndpoints, {"orders", "1", "idle"}) == 0);
  held.reset();
  CHECK(ready("0") == std::nullopt);
}

TEST_CASE("instruments: count addresses that come and go", "[metrics][instruments]") {
  Instruments instruments;
  instruments.observe(EndpointsChanged{kOrders, 3, 0});
  instruments.observe(EndpointsChanged{kOrders, 1, 2});
  CHECK(value(instruments, Metric::kEndpointChanges, {"orders", "added"}) == 4);
  CHECK(value(instruments, Metric::kEndpointChanges, {"orders", "removed"}) == 2);
}

TEST_CASE("instruments: count probes by how they ended, and those that waited",
          "[metrics][instruments][health_check]") {
  Instruments instruments;
  instruments.observe(HealthProbed{kOrders, true, false});
  CHECK(value(instruments, Metric::kHealthProbesDelayed, {"orders"}) == 0);
  instruments.observe(HealthProbed{kOrders, true, true});
  instruments.observe(HealthProbed{kOrders, false, false});
  CHECK(value(instruments, Metric::kHealthProbes, {"orders", "success"}) == 2);
  CHECK(value(instruments, Metric::kHealthProbes, {"orders", "failure"}) == 1);
  CHECK(value(instruments, Metric::kHealthProbesDelayed, {"orders"}) == 1);
}

TEST_CASE("instruments: count attempts and losses of connections", "[metrics][instruments]") {
  Instruments instruments;
  instruments.observe(ConnectionAttempted{kOrders, true});
  instruments.observe(ConnectionAttempted{kOrders, false});
  instruments.observe(ConnectionAttempted{kOrders, false});
  instruments.observe(ConnectionLost{kOrders});
  instruments.observe(ConnectionLost{kOrders, "GOAWAY NO_ERROR"});
  CHECK(value(instruments, Metric::kSubchannelDisconnections, {"orders", "GOAWAY NO_ERROR"}) == 1);
  CHECK(value(instruments, Metric::kConnectionAttempts, {"orders", "success"}) == 1);
  CHECK(value(instruments, Metric::kConnectionAttempts, {"orders", "failure"}) == 2);
  CHECK(value(instruments, Metric::kSubchannelDisconnections, {"orders", "unknown"}) == 1);
}

TEST_CASE("instruments: what sessions keep adds up over maps, and ends with the cluster",
          "[metrics][instruments][A75-29]") {
  Instruments instruments;
  auto served = instruments.hold_cluster(kOrders);
  const auto held = [&] { return value(instruments, Metric::kAffinityHeld, {"orders"}); };
  instruments.observe(SessionsHeld{kOrders, 3});
  instruments.observe(SessionsHeld{kOrders, 2});
  CHECK(held() == 5);
  instruments.observe(SessionsHeld{kOrders, 1, 3});
  CHECK(held() == 3);
  instruments.observe(SessionsSwept{kOrders, 2});
  instruments.observe(SessionsSwept{kOrders, 0});
  CHECK(value(instruments, Metric::kAffinitySweeps, {"orders"}) == 2);
  CHECK(value(instruments, Metric::kAffinityReleased, {"orders"}) == 2);
  CHECK(row_of(Metric::kAffinityHeld).name == "signalbox_affinity_subchannels_held");
  served.reset();
  CHECK(held() == std::nullopt);
  served = instruments.hold_cluster(kOrders);
  instruments.observe(SessionsHeld{kOrders, 1});
  CHECK(held() == 1);
}

TEST_CASE("instruments: count ejections, and outliers that were not ejected by why not",
          "[metrics][instruments][A91]") {
  Instruments instruments;
  const auto method = DetectionMethod::kSuccessRate;
  instruments.observe(OutliersDetected{kOrders, method, DetectionOutcome::kEjected, 1});
  instruments.observe(OutliersDetected{kOrders, method, DetectionOutcome::kEjected, 2});
  instruments.observe(
      OutliersDetected{kOrders, method, DetectionOutcome::kEnforcementPercentage, 4});
  instruments.observe(OutliersDetected{
      kOrders, DetectionMethod::kFailurePercentage, DetectionOutcome::kMaxEjectionOverflow, 5});
  const auto metric = Metric::kOutlierEjections;
  CHECK(row_of(metric).name == "signalbox_outlier_ejections_total");
  CHECK(value(instruments, metric, {"orders", "success_rate", "true", ""}) == 3);
  CHECK(value(instruments, metric, {"orders", "success_rate", "false", "enforcement_percentage"}) ==
        4);
  CHECK(value(instruments,
              metric,
              {"orders", "failure_percentage", "false", "max_ejection_overflow"}) == 5);
  CHECK(series_count(instruments, metric) == 3);
}

TEST_CASE("instruments: count drops by category, and those of the circuit breaker",
          "[metrics][instruments][A37-30][A32]") {
  Instruments instruments;
  instruments.drops(kOrders, "lb")->add(0, 2);
  instruments.drops(kOrders, "lb")->add(0, 1);
  instruments.drops(kOrders, "throttle");
  instruments.breaker_drops(kOrders)->add(0, 4);
  CHECK(value(instruments, Metric::kDrops, {"orders", "lb"}) == 3);
  CHECK(value(instruments, Metric::kDrops, {"orders", "throttle"}) == 0);
  CHECK(value(instruments, Metric::kCircuitBreakerDrops, {"orders"}) == 4);
}

TEST_CASE("instruments: hold drops to a number of series", "[metrics][instruments]") {
  Instruments instruments;
  for (std::size_t i = 0; i < kMaxSeries + 2; ++i) {
    const std::string name = std::to_string(i);
    instruments.drops(kOrders, name)->add(0, 1);
    instruments.breaker_drops(ClusterName(name))->add(0, 1);
  }
  CHECK(series_count(instruments, Metric::kDrops) == kMaxSeries + 1);
  CHECK(value(instruments, Metric::kDrops, {"other", "other"}) == 2);
  CHECK(series_count(instruments, Metric::kCircuitBreakerDrops) == kMaxSeries + 1);
  CHECK(value(instruments, Metric::kCircuitBreakerDrops, {"other"}) == 2);
  CHECK(value(instruments, Metric::kSeriesOverflow, {"signalbox_drops_total"}) == 2);
  const LabelValues breaker{"signalbox_circuit_breaker_drops_total"};
  CHECK(value(instruments, Metric::kSeriesOverflow, breaker) == 2);

  instruments.breaker_drops(ClusterName("3"))->add(0, 1);
  CHECK(value(instruments, Metric::kCircuitBreakerDrops, {"3"}) == 2);
  CHECK(value(instruments, Metric::kSeriesOverflow, breaker) == 2);
}

TEST_CASE("instruments: show circuit breakers as long as somebody calls the cluster",
          "[metrics][instruments][A32]") {
  Instruments instruments;
  auto full = std::make_shared<const FakeGate>(7, true);
  auto free = std::make_shared<const FakeGate>(9, false);
  instruments.observe(CircuitBreakerSet{kOrders, full});
  CHECK(value(instruments, Metric::kCircuitBreakerLimit, {"orders"}) == 7);
  CHECK(value(instruments, Metric::kCircuitBreakerOpen, {"orders"}) == 1);
  instruments.observe(CircuitBreakerSet{kOrders, free});
  CHECK(value(instruments, Metric::kCircuitBreakerLimit, {"orders"}) == 9);
  CHECK(value(instruments, Metric::kCircuitBreakerOpen, {"orders"}) == 1);
  full.reset();
  CHECK(value(instruments, Metric::kCircuitBreakerOpen, {"orders"}) == 0);
  free.reset();
  CHECK_FALSE(value(instruments, Metric::kCircuitBreakerLimit, {"orders"}));
}

TEST_CASE("instruments: a circuit breaker that nobody uses any more takes no memory",
          "[metrics][instruments][A32]") {
  Instruments instruments;
  // The gate's deleter holds `memory`. A weak pointer to the gate keeps the deleter alive.
  const auto memory = std::make_shared<int>();
  std::shared_ptr<const FakeGate> old(new FakeGate(7, false),
                                      [memory](const FakeGate* gate) { delete gate; });
  instruments.observe(CircuitBreakerSet{kOrders, old});
  old.reset();
  CHECK(memory.use_count() == 2);
  const auto next = std::make_shared<const FakeGate>(9, false);
  instruments.observe(CircuitBreakerSet{kOrders, next});
  CHECK(memory.use_count() == 1);
  CHECK(value(instruments, Metric::kCircuitBreakerLimit, {"orders"}) == 9);
}

// Observes circuit breakers of kMaxSeries clusters, which is the most that have series. kOrders has
// the gate `of_orders`; the other clusters share `of_others`.
void fill_breakers(Instruments& instruments, CallGatePtr of_orders, const CallGatePtr& of_others) {
  instruments.observe(CircuitBreakerSet{kOrders, std::move(of_orders)});
  for (std::size_t i = 1; i < kMaxSeries; ++i)
    instruments.observe(CircuitBreakerSet{ClusterName("c" + std::to_string(i)), of_others});
}

TEST_CASE("instruments: circuit breakers beyond the limit have no gauge, until others end, M1",
          "[metrics][instruments][A32]") {
  Instruments instruments;
  const auto gate = std::make_shared<const FakeGate>(7, false);
  auto ending = std::make_shared<const FakeGate>(8, false);
  fill_breakers(instruments, ending, gate);
  const auto limit = [&](const std::string& cluster) {
    return value(instruments, Metric::kCircuitBreakerLimit, {cluster});
  };
  const auto overflow = [&] {
    return value(instruments, Metric::kSeriesOverflow, {"signalbox_circuit_breaker_limit"});
  };

  instruments.observe(CircuitBreakerSet{ClusterName("late"), gate});
  CHECK(limit("late") == std::nullopt);
  CHECK(overflow() == 1);
  // A cluster that already has a series can still change its circuit breaker.
  const auto changed = std::make_shared<const FakeGate>(5, false);
  instruments.observe(CircuitBreakerSet{kOrders, changed});
  CHECK(limit("orders") == 5);
  // The first gate of kOrders has ended, but its second gate lives, so kOrders keeps its series.
  ending.reset();
  instruments.observe(CircuitBreakerSet{ClusterName("late"), gate});
  CHECK(limit("orders") == 5);
  CHECK(limit("late") == std::nullopt);
  CHECK(overflow() == 2);
}

TEST_CASE("instruments: a circuit breaker that nobody uses any more makes room for another's, M1",
          "[metrics][instruments][A32]") {
  Instruments instruments;
  const auto gate = std::make_shared<const FakeGate>(7, false);
  auto ending = std::make_shared<const FakeGate>(8, false);
  fill_breakers(instruments, ending, gate);
  ending.reset();
  instruments.observe(CircuitBreakerSet{ClusterName("late"), gate});
  CHECK(value(instruments, Metric::kCircuitBreakerLimit, {"late"}) == 7);
  CHECK(value(instruments, Metric::kCircuitBreakerLimit, {"c1"}) == 7);
  CHECK(series_count(instruments, Metric::kCircuitBreakerLimit) == kMaxSeries);
  CHECK(value(instruments, Metric::kSeriesOverflow, {"signalbox_circuit_breaker_limit"}) ==
        std::nullopt);
}

TEST_CASE("instruments: follow what lives and what dies", "[metrics][instruments]") {
  Instruments instruments;
  instruments.add_policies("priority", 1);
  instruments.add_policies("priority", 1);
  instruments.add_policies("priority", -1);
  instruments.add_subchannels(ConnectivityState::kReady, 1);
  instruments.add_subchannels(ConnectivityState::kReady, -1);
  instruments.add_subchannels(ConnectivityState::kTransientFailure, 1);
  instruments.add_connections(kOrders, 1);
  instruments.count_actor_death("policy", "runtime_error");
  CHECK(value(instruments, Metric::kPolicies, {"priority"}) == 1);
  CHECK(value(instruments, Metric::kSubchannels, {"ready"}) == 0);
  CHECK(value(instruments, Metric::kSubchannels, {"transient_failure"}) == 1);
  CHECK(value(instruments, Metric::kConnectionsOpen, {"orders"}) == 1);
  CHECK(value(instruments, Metric::kActorDeaths, {"policy", "runtime_error"}) == 1);
}

TEST_CASE("instruments: count rejected files by reason, from zero", "[metrics][instruments]") {
  Instruments instruments;
  instruments.count_config_rejected("parse", 0);
  CHECK(value(instruments, Metric::kConfigRejected, {"parse"}) == 0);
  instruments.count_config_rejected("parse");
  CHECK(value(instruments, Metric::kConfigRejected, {"parse"}) == 1);
}

TEST_CASE("instruments: count each limit of the admin servers under its own name, from zero",
          "[metrics][instruments]") {
  Instruments instruments;
  const std::pair<AdminLimit, const char*> rows[]{
      {AdminLimit::kHttpHeaders, "http_headers"},
      {AdminLimit::kHttpSilent, "http_silent"},
      {AdminLimit::kHttpWaiting, "http_waiting"},
      {AdminLimit::kHttpRequests, "http_requests"},
      {AdminLimit::kHttpUnreadBytes, "http_unread_bytes"},
      {AdminLimit::kHttpIdle, "http_idle"},
      {AdminLimit::kGrpcRequests, "grpc_requests"},
      {AdminLimit::kCsdsStreams, "csds_streams"},
      {AdminLimit::kHealthWatches, "health_watches"},
      {AdminLimit::kHealthServices, "health_services"},
  };
  CHECK(std::size(rows) == kAdminLimits);
  CHECK(kHttpLimits.size() + kGrpcLimits.size() == kAdminLimits);
  for (const auto& [limit, label] : rows) {
    instruments.count_admin_refused(limit, 0);
    CHECK(value(instruments, Metric::kAdminRefused, {label}) == 0);
    instruments.count_admin_refused(limit);
    CHECK(value(instruments, Metric::kAdminRefused, {label}) == 1);
  }
}

TEST_CASE("instruments: lost lines of the log begin with 0", "[metrics][instruments]") {
  Instruments instruments;
  instruments.count_log_lines_lost(0);
  CHECK(value(instruments, Metric::kLogLinesLost, {}) == 0);
  instruments.count_log_lines_lost(2);
  CHECK(value(instruments, Metric::kLogLinesLost, {}) == 2);
}

TEST_CASE("instruments: events that a recording misses and files that it cannot begin, from 0",
          "[metrics][instruments]") {
  Instruments instruments;
  instruments.count_recording_dropped(0);
  CHECK(value(instruments, Metric::kRecordingDropped, {}) == 0);
  instruments.count_recording_dropped(2);
  CHECK(value(instruments, Metric::kRecordingDropped, {}) == 2);
  instruments.count_recording_late(0);
  CHECK(value(instruments, Metric::kRecordingLate, {}) == 0);
  instruments.count_recording_late(1);
  CHECK(value(instruments, Metric::kRecordingLate, {}) == 1);
}

TEST_CASE("instruments: know how the control plane does", "[metrics][instruments]") {
  Instruments instruments;
  instruments.set_xds_connected("xds.host:443", true);
  instruments.count_updates("xds.host:443", ResourceType::kCluster, 5, 0);
  instruments.count_updates("xds.host:443", ResourceType::kCluster, 1, 2);
  instruments.set_config_generation("orders", 7);
  CHECK(value(instruments, Metric::kXdsConnected, {"xds.host:443"}) == 1);
  CHECK(value(instruments, Metric::kXdsUpdatesValid, {"xds.host:443", "CDS"}) == 6);
  CHECK(value(instruments, Metric::kXdsUpdatesInvalid, {"xds.host:443", "CDS"}) == 2);
  CHECK(value(instruments, Metric::kConfigGeneration, {"orders"}) == 7);
  instruments.set_xds_connected("xds.host:443", false);
  CHECK(value(instruments, Metric::kXdsConnected, {"xds.host:443"}) == 0);
  instruments.forget_xds_connected("xds.host:443");
  CHECK_FALSE(value(instruments, Metric::kXdsConnected, {"xds.host:443"}));
  instruments.set_xds_resources(ResourceType::kCluster, "acked", 5);
  CHECK(value(instruments, Metric::kXdsResources, {"CDS", "acked"}) == 5);
}

TEST_CASE("instruments: give a pair the same counters for ever", "[metrics][instruments]") {
  Instruments instruments;
  const auto stats = instruments.call_stats("shop", kOrders);
  CHECK(instruments.call_stats("shop", kOrders) == stats);
  CHECK(instruments.call_stats("till", kOrders) != stats);
  CHECK(instruments.call_stats("shop", ClusterName("stock")) != stats);
}

TEST_CASE("instruments: sum calls over targets where the metric has no target",
          "[metrics][instruments]") {
  Instruments instruments;
  for (const char* target : {"shop", "till"}) {
    const auto stats = instruments.call_stats(target, kOrders);
    stats->count_pick(PickOutcome::kQueue);
    stats->count_pick(PickOutcome::kComplete);
    stats->count_started();
    stats->count_started();
    stats->count_completed(14);
  }
  CHECK(value(instruments, Metric::kRpcsStarted, {"shop", "orders"}) == 2);
  CHECK(value(instruments, Metric::kRpcsCompleted, {"till", "orders", "UNAVAILABLE"}) == 1);
  CHECK(value(instruments, Metric::kRpcsCompleted, {"till", "orders", "OK"}) == 0);
  CHECK(value(instruments, Metric::kRpcsCompleted, {"till", "orders", "ABORTED"}) == std::nullopt);
  CHECK(value(instruments, Metric::kRpcsActive, {"orders"}) == 2);
  CHECK(value(instruments, Metric::kPicks, {"orders", "queue"}) == 2);
  CHECK(value(instruments, Metric::kPicks, {"orders", "complete"}) == 2);
  CHECK(value(instruments, Metric::kPicks, {"orders", "drop"}) == 0);
}

TEST_CASE("instruments: show calls below an aggregate by leaf, and say which aggregate",
          "[metrics][instruments][A75-54][A89]") {
  Instruments instruments;
  const ClusterName both("both");
  const auto direct = instruments.call_stats("shop", kOrders);
  const auto below = instruments.call_stats("shop", kOrders, both);
  CHECK(below != direct);
  CHECK(instruments.call_stats("shop", kOrders, both) == below);
  CHECK(instruments.call_stats("shop", kOrders, ClusterName("all")) != below);
  for (const auto& stats : {direct, below, below}) {
    stats->count_pick(PickOutcome::kComplete);
    stats->count_started();
    stats->count_started();
    stats->count_completed(0);
    stats->count_retry(RetryResult::kRetried);
    stats->count_affinity(AffinityResult::kHit);
    stats->count_cookie(CookieSet::kNew);
  }
  for (const auto& [aggregate, calls] : {std::pair("", 1), std::pair("both", 2)}) {
    INFO(aggregate);
    CHECK(value(instruments, Metric::kRpcsStarted, {"shop", "orders", aggregate}) == 2 * calls);
    CHECK(value(instruments, Metric::kRpcsCompleted, {"shop", "orders", "OK", aggregate}) == calls);
    CHECK(value(instruments, Metric::kRpcsActive, {"orders", aggregate}) == calls);
    CHECK(value(instruments, Metric::kPicks, {"orders", "complete", aggregate}) == calls);
    CHECK(value(instruments, Metric::kRetries, {"orders", "retried", aggregate}) == calls);
    CHECK(value(instruments, Metric::kAffinityPicks, {"orders", "hit", aggregate}) == calls);
    CHECK(value(instruments, Metric::kAffinityCookies, {"orders", "new", aggregate}) == calls);
  }
}

TEST_CASE("instruments: show what became of attempts that could be retried",
          "[metrics][instruments][A6][A44]") {
  constexpr std::array kWords{
      "retried", "exhausted", "throttled", "pushed_back", "committed", "too_large", "too_late"};
  static_assert(kWords.size() == kRetryResults);
  Instruments instruments;
  for (const char* target : {"shop", "till"}) {
    const auto stats = instruments.call_stats(target, kOrders);
    CHECK(series_count(instruments, Metric::kRetries) == 0);
  }
  for (std::size_t i = 0; i < kRetryResults; ++i) {
    for (const char* target : {"shop", "till"})
      instruments.call_stats(target, kOrders)->count_retry(static_cast<RetryResult>(i));
    CHECK(value(instruments, Metric::kRetries, {"orders", kWords[i]}) == 2);
    CHECK(series_count(instruments, Metric::kRetries) == i + 1);
  }
}

TEST_CASE("instruments: show what became of sessions, all of it once there is one",
          "[metrics][instruments][A55]") {
  constexpr std::array kWords{"new",
                              "hit",
                              "hit_draining",
                              "queued",
                              "created",
                              "fallback_unknown_host",
                              "fallback_unhealthy",
                              "fallback_bad_cookie",
                              "fallback_cluster"};
  static_assert(kWords.size() == kAffinityResults - 1);  // kNone has no series.
  Instruments instruments;
  const auto stats = instruments.call_stats("shop", kOrders);
  stats->count_pick(PickOutcome::kComplete);
  stats->count_affinity(AffinityResult::kNone);
  CHECK(series_count(instruments, Metric::kAffinityPicks) == 0);
  CHECK(series_count(instruments, Metric::kAffinityCookies) == 0);
  for (std::size_t i = 0; i < kWords.size(); ++i) {
    for (const char* target : {"shop", "till"}) {
      for (std::size_t times = 0; times <= i; ++times)
        instruments.call_stats(target, kOrders)->count_affinity(static_cast<AffinityResult>(i + 1));
    }
    CHECK(series_count(instruments, Metric::kAffinityPicks) == kWords.size());
  }
  for (std::size_t i = 0; i < kWords.size(); ++i)
    CHECK(value(instruments, Metric::kAffinityPicks, {"orders", kWords[i]}) == 2.0 * (i + 1.0));
}

TEST_CASE("instruments: show why sessions were given a cookie", "[metrics][instruments][A55]") {
  Instruments instruments;
  instruments.call_stats("shop", kOrders)->count_cookie(CookieSet::kMoved);
  CHECK(value(instruments, Metric::kAffinityCookies, {"orders", "new"}) == 0);
  CHECK(value(instruments, Metric::kAffinityCookies, {"orders", "moved"}) == 1);
  CHECK(value(instruments, Metric::kAffinityPicks, {"orders", "hit"}) == 0);
  instruments.call_stats("till", kOrders)->count_cookie(CookieSet::kNew);
  CHECK(value(instruments, Metric::kAffinityCookies, {"orders", "new"}) == 1);
  instruments.call_stats("till", ClusterName("stock"))->count_pick(PickOutcome::kComplete);
  CHECK(value(instruments, Metric::kAffinityCookies, {"stock", "new"}) == std::nullopt);
}

TEST_CASE("instruments: name every status code", "[metrics][instruments]") {
  Instruments instruments;
  const auto stats = instruments.call_stats("shop", kOrders);
  for (int code = 0; code < 17; ++code)
    stats->count_completed(code);
  stats->count_completed(99);
  CHECK(series_count(instruments, Metric::kRpcsCompleted) == 17);
  CHECK(value(instruments, Metric::kRpcsCompleted, {"shop", "orders", "UNKNOWN"}) == 2);
  CHECK(value(instruments, Metric::kRpcsCompleted, {"shop", "orders", "UNAUTHENTICATED"}) == 1);
}

TEST_CASE("instruments: count what actors handle", "[metrics][instruments]") {
  Instruments instruments;
  const auto stats = instruments.actor_stats("policy");
  stats->count_message();
  std::thread([&] { instruments.actor_stats("policy")->count_message(); }).join();
  CHECK(value(instruments, Metric::kActorMessages, {"policy"}) == 2);
  stats->record_handled(2ms);
  const auto durations = series(instruments, Metric::kActorHandleDuration, {"policy"})->histogram;
  CHECK(durations.counts.at(2) == 1);  // ≤ 2.5 ms
}

TEST_CASE("instruments: a mailbox is as long as it was at most since the last collection",
          "[metrics][instruments]") {
  Instruments instruments;
  const auto stats = instruments.actor_stats("policy");
  for (const std::int64_t length : {3, 12'000, 7})
    stats->record_waiting(length);
  CHECK(value(instruments, Metric::kActorMailbox, {"policy"}) == 12'000);
  CHECK(value(instruments, Metric::kActorMailbox, {"policy"}) == 0);
}

TEST_CASE("instruments: certificates are asked for at each collection, and the first end is shown",
          "[metrics][instruments]") {
  const auto at = [](int seconds) { return CertificateEnds::Time(std::chrono::seconds(seconds)); };
  Instruments instruments;
  CertificateEnds ends{at(100), at(300)};
  bool is_used = true;
  instruments.watch_certificates("endpoint", [&]() -> std::optional<CertificateEnds> {
    return is_used ? std::optional(ends) : std::nullopt;
  });
  instruments.watch_certificates("endpoint", [&] { return CertificateEnds{at(200), {}}; });
  instruments.watch_certificates("control_plane", [&] { return CertificateEnds{{}, at(50)}; });
  const auto shown = [&](const char* role) {
    return value(instruments, Metric::kCertificateExpiry, {role});
  };
  CHECK(shown("endpoint_identity") == 100);
  CHECK(shown("endpoint_root") == 300);
  CHECK(shown("control_plane_identity") == std::nullopt);
  CHECK(shown("control_plane_root") == 50);
  ends.identity = at(150);  // The certificate's file was replaced.
  CHECK(shown("endpoint_identity") == 150);
  is_used = false;
  CHECK(shown("endpoint_identity") == 200);
  CHECK(shown("endpoint_root") == std::nullopt);
}

TEST_CASE("instruments: count what a custom policy's pickers fail at", "[metrics][instruments]") {
  Instruments instruments;
  const auto count = instruments.pick_failures("com.example.One");
  CHECK(value(instruments, Metric::kPickFailures, {"com.example.One"}) == 0);
  count->add(0, 1);
  instruments.pick_failures("com.example.One")->add(0, 1);
  instruments.pick_failures("com.example.Two");
  CHECK(value(instruments, Metric::kPickFailures, {"com.example.One"}) == 2);
  CHECK(value(instruments, Metric::kPickFailures, {"com.example.Two"}) == 0);
}

TEST_CASE("instruments: count what custom filters throw at, and faults",
          "[metrics][instruments][A33]") {
  Instruments instruments;
  instruments.filter_failures("com.example.One")->add(0, 1);
  instruments.filter_failures("com.example.One")->add(0, 1);
  CHECK(value(instruments, Metric::kFilterFailures, {"com.example.One"}) == 2);
  CHECK(value(instruments, Metric::kFaultsInjected, {"abort"}) == 0);
  instruments.faults()->add(kDelayFault, 1);
  instruments.faults()->add(kAbortFault, 2);
  CHECK(value(instruments, Metric::kFaultsInjected, {"delay"}) == 1);
  CHECK(value(instruments, Metric::kFaultsInjected, {"abort"}) == 2);
}

TEST_CASE("instruments: a full metric counts newcomers under other, M1", "[metrics][instruments]") {
  Instruments instruments;
  const auto name = [](std::size_t i) { return ClusterName("c" + std::to_string(i)); };
  for (std::size_t i = 0; i < kMaxSeries + 10; ++i)
    instruments.observe(ConnectionLost{name(i)});
  CHECK(series_count(instruments, Metric::kSubchannelDisconnections) == kMaxSeries + 1);
  CHECK(value(instruments, Metric::kSubchannelDisconnections, {"other", "unknown"}) == 10);
  const LabelValues metric{std::string(row_of(Metric::kSubchannelDisconnections).name)};
  CHECK(value(instruments, Metric::kSeriesOverflow, metric) == 10);

  instruments.observe(ConnectionLost{name(3)});
  CHECK(value(instruments, Metric::kSubchannelDisconnections, {"c3", "unknown"}) == 2);
  CHECK(value(instruments, Metric::kSeriesOverflow, metric) == 10);
}

TEST_CASE("instruments: other keeps the labels that are not free text, M1",
          "[metrics][instruments]") {
  Instruments instruments;
  for (std::size_t i = 0; i < kMaxSeries + 1; ++i)
    instruments.observe(ConnectionAttempted{ClusterName("c" + std::to_string(i)), true});
  instruments.observe(ConnectionAttempted{ClusterName("late"), false});
  CHECK(value(instruments, Metric::kConnectionAttempts, {"other", "success"}) == 1);
  CHECK(value(instruments, Metric::kConnectionAttempts, {"other", "failure"}) == 1);
}

TEST_CASE("instruments: a full gauge leaves newcomers out, M1", "[metrics][instruments]") {
  Instruments instruments;
  for (std::size_t i = 0; i < kMaxSeries + 1; ++i)
    instruments.observe(PriorityActive{ClusterName("c" + std::to_string(i)), 1});
  CHECK(series_count(instruments, Metric::kPriorityActive) == kMaxSeries);
  CHECK(value(instruments, Metric::kPriorityActive, {"other"}) == std::nullopt);
  CHECK(value(instruments, Metric::kSeriesOverflow, {"signalbox_priority_active"}) == 1);
}

TEST_CASE("instruments: connections of a cluster without a series are right once it has one, M1",
          "[metrics][instruments]") {
  Instant now{1h};
  Instruments instruments([&now] { return now; });
  const auto held = instruments.hold_cluster(kOrders);
  const auto open = [&](const char* cluster) {
    return value(instruments, Metric::kConnectionsOpen, {cluster});
  };
  const auto each = [&](int amount) {
    for (std::size_t i = 0; i < kMaxSeries; ++i)
      instruments.add_connections(ClusterName("c" + std::to_string(i)), amount);
  };
  each(+1);
  instruments.add_connections(kOrders, +2);
  CHECK(open("orders") == std::nullopt);
  CHECK(open("c7") == 1);
  each(-1);
  CHECK(open("c7") == 0);
  static_cast<void>(instruments.collect());
  now += 1min;
  static_cast<void>(instruments.collect());  // The others are forgotten.
  instruments.add_connections(kOrders, -1);
  CHECK(open("orders") == 1);
  CHECK(open("other") == std::nullopt);
}

TEST_CASE("instruments: pairs beyond the limit share their counters, M1",
          "[metrics][instruments]") {
  Instruments instruments;
  for (std::size_t i = 0; i < kMaxSeries; ++i)
    instruments.call_stats("shop", ClusterName("c" + std::to_string(i)));
  const auto late = instruments.call_stats("shop", ClusterName("late"));
  CHECK(instruments.call_stats("shop", ClusterName("later")) == late);
  CHECK(instruments.call_stats("shop", ClusterName("c7")) != late);
  late->count_started();
  CHECK(value(instruments, Metric::kRpcsStarted, {"other", "other"}) == 1);
  CHECK(value(instruments, Metric::kSeriesOverflow, {"signalbox_rpcs_started_total"}) == 2);
}

TEST_CASE("instruments: of several trees, the worst priority in use is told",
          "[metrics][instruments]") {
  Instruments instruments;
  const auto hold = instruments.hold_cluster(kOrders);
  const auto active = [&] { return value(instruments, Metric::kPriorityActive, {"orders"}); };
  instruments.observe(PriorityActive{kOrders, -1});
  instruments.observe(PriorityActive{kOrders, 0});
  CHECK(active() == -1);  // One tree can serve no call; the other tree's value must not hide that.
  instruments.observe(PriorityActive{kOrders, 1, -1});
  CHECK(active() == 1);
  instruments.observe(PriorityActive{kOrders, 2, 0});
  CHECK(active() == 2);
  instruments.observe(PriorityActive{kOrders, -1, 1});
  CHECK(active() == -1);
  instruments.observe(PriorityActive{kOrders, 1, -1});
  instruments.forget_priority(kOrders, 2);
  CHECK(active() == 1);
  instruments.forget_priority(kOrders, 1);
  CHECK(active() == std::nullopt);  // No tree says one, though the cluster is in use.
  instruments.observe(PriorityActive{kOrders, 0});
  CHECK(active() == 0);
}

TEST_CASE("instruments: the endpoints of a cluster add up over its subchannel maps",
          "[metrics][instruments]") {
  Instruments instruments;
  auto one = instruments.hold_cluster(kOrders);
  auto other = instruments.hold_cluster(kOrders);
  const auto ready = [&] {
    return value(instruments, Metric::kEndpoints, {"orders", "", "ready"});
  };
  instruments.observe(EndpointsCounted{kOrders, {3, 0, 0, 0, 0, 0}});
  instruments.observe(EndpointsCounted{kOrders, {2, 1, 0, 0, 0, 0}});
  CHECK(ready() == 5);
  CHECK(value(instruments, Metric::kEndpoints, {"orders", "", "connecting"}) == 1);
  instruments.observe(EndpointsCounted{kOrders, {1, 0, 0, 0, 0, 0}, {3, 0, 0, 0, 0, 0}});
  CHECK(ready() == 3);
  instruments.observe(EndpointsCounted{kOrders, {}, {1, 0, 0, 0, 0, 0}});
  one.reset();
  CHECK(ready() == 2);
  other.reset();
  CHECK(ready() == std::nullopt);
  auto again = instruments.hold_cluster(kOrders);
  instruments.observe(EndpointsCounted{kOrders, {1, 0, 0, 0, 0, 0}});
  CHECK(ready() == 1);
}

TEST_CASE("instruments: forget the gauges of a cluster that nobody serves any more",
          "[metrics][instruments]") {
  Instruments instruments;
  auto one = instruments.hold_cluster(kOrders);
  auto other = instruments.hold_cluster(kOrders);
  instruments.observe(PriorityActive{kOrders, 0});
  instruments.observe(EndpointsCounted{kOrders, {1, 0, 0, 0, 0, 0}});
  instruments.observe(EndpointsCounted{ClusterName("stock"), {1, 0, 0, 0, 0, 0}});
  instruments.observe(ConnectionLost{kOrders});
  one.reset();
  CHECK(value(instruments, Metric::kPriorityActive, {"orders"}) == 0);
  other.reset();
  CHECK(value(instruments, Metric::kPriorityActive, {"orders"}) == std::nullopt);
  CHECK(value(instruments, Metric::kEndpoints, {"orders", "", "ready"}) == std::nullopt);
  CHECK(value(instruments, Metric::kEndpoints, {"stock", "", "ready"}) == 1);
  CHECK(value(instruments, Metric::kSubchannelDisconnections, {"orders", "unknown"}) == 1);

  // A cluster that comes back has new series, without the values of its former series.
  const auto again = instruments.hold_cluster(kOrders);
  instruments.observe(PriorityActive{kOrders, -1});
  instruments.observe(EndpointsCounted{kOrders, {2, 0, 0, 0, 0, 0}});
  CHECK(value(instruments, Metric::kPriorityActive, {"orders"}) == -1);
  CHECK(value(instruments, Metric::kEndpoints, {"orders", "", "ready"}) == 2);
}

TEST_CASE("instruments: the series of a cluster that is gone end a minute later",
          "[metrics][instruments]") {
  Instant now{std::chrono::hours(1)};
  Instruments instruments([&now] { return now; });
  const ClusterName stock("stock");
  const auto kept = instruments.hold_cluster(stock);
  auto held = instruments.hold_cluster(kOrders);
  auto stats = instruments.call_stats("shop", kOrders);
  stats->count_started();
  for (const ClusterName& cluster : {kOrders, stock}) {
    instruments.observe(ConnectionLost{cluster});
    instruments.call_stats("hall", cluster);
    instruments.drops(cluster, "overload");
    instruments.breaker_drops(cluster);
    instruments.endpoint(cluster, Address("10.0.0.1:80"));
    instruments.other_endpoints(cluster)->add(0, 1);
  }
  held.reset();
  const auto is_seen = [&](const ClusterName& cluster) {
    return std::vector<bool>{
        value(instruments, Metric::kSubchannelDisconnections, {cluster.str(), "unknown"})
            .has_value(),
        value(instruments, Metric::kRpcsStarted, {"hall", cluster.str()}).has_value(),
        value(instruments, Metric::kDrops, {cluster.str(), "overload"}).has_value(),
        value(instruments, Metric::kCircuitBreakerDrops, {cluster.str()}).has_value(),
        value(instruments, Metric::kEndpointRpcs, {cluster.str(), "10.0.0.1:80", "OK"}).has_value(),
        value(instruments, Metric::kEndpointRpcs, {cluster.str(), "other", "OK"}).has_value()};
  };
  const std::vector<bool> all(6, true), none(6, false);
  CHECK(is_seen(kOrders) == all);
  now += std::chrono::seconds(59);
  CHECK(is_seen(kOrders) == all);

  SECTION("but for what calls still count") {
    now += std::chrono::seconds(1);
    CHECK(is_seen(kOrders) == none);
    CHECK(is_seen(stock) == all);
    CHECK(value(instruments, Metric::kRpcsStarted, {"shop", "orders"}) == 1);
    stats.reset();
    now += std::chrono::minutes(1);
    CHECK(value(instruments, Metric::kRpcsStarted, {"shop", "orders"}) == std::nullopt);
  }
  SECTION("not of one that came back") {
    held = instruments.hold_cluster(kOrders);
    now += std::chrono::hours(1);
    CHECK(is_seen(kOrders) == all);
  }
}

TEST_CASE("instruments: calls by endpoint", "[metrics][instruments]") {
  Instruments instruments;
  // No endpoint is counted yet, as where counts by endpoint are off.
  CHECK(series_count(instruments, Metric::kEndpointRpcs) == 0);
  const auto calls = instruments.endpoint(kOrders, Address("10.0.0.1:80"));
  CHECK(calls == instruments.endpoint(kOrders, Address("10.0.0.1:80")));
  CHECK(calls != instruments.endpoint(ClusterName("stock"), Address("10.0.0.1:80")));
  calls->add(0, 2);
  calls->add(14, 1);
  const auto count = [&](const std::string& cluster, const std::string& code) {
    return value(instruments, Metric::kEndpointRpcs, {cluster, "10.0.0.1:80", code});
  };
  CHECK(count("orders", "OK") == 2);
  CHECK(count("orders", "UNAVAILABLE") == 1);
  CHECK(count("orders", "INTERNAL") == std::nullopt);
  CHECK(count("stock", "OK") == 0);
  instruments.other_endpoints(kOrders);
  CHECK(series_count(instruments, Metric::kEndpointRpcs) == 3);
  instruments.other_endpoints(kOrders)->add(0, 5);
  CHECK(value(instruments, Metric::kEndpointRpcs, {"orders", "other", "OK"}) == 5);
}

TEST_CASE("instruments: 200 endpoints have series of their own", "[metrics][instruments]") {
  Instruments instruments;
  const auto address = [](std::size_t i) { return Address("10.0.0.1:" + std::to_string(i)); };
  std::vector<EndpointCallsPtr> held;
  for (std::size_t i = 0; i < Instruments::kMaxEndpoints; ++i) {
    held.push_back(instruments.endpoint(kOrders, address(i)));
    REQUIRE(held.back() != nullptr);
  }
  CHECK(instruments.endpoint(kOrders, address(200)) == nullptr);
  CHECK(instruments.endpoint(ClusterName("stock"), address(0)) == nullptr);
  CHECK(instruments.endpoint(kOrders, address(7)) == held[7]);
  CHECK(series_count(instruments, Metric::kEndpointRpcs) == Instruments::kMaxEndpoints);
  const LabelValues full{"signalbox_endpoint_rpcs_total"};
  CHECK(value(instruments, Metric::kSeriesOverflow, full) == 2);

  // An endpoint that is gone keeps its series until another endpoint needs the room.
  held[3]->add(0, 1);
  held[3].reset();
  CHECK(value(instruments, Metric::kEndpointRpcs, {"orders", "10.0.0.1:3", "OK"}) == 1);
  CHECK(instruments.endpoint(kOrders, address(200)) != nullptr);
  CHECK(value(instruments, Metric::kEndpointRpcs, {"orders", "10.0.0.1:3", "OK"}) == std::nullopt);
  CHECK(value(instruments, Metric::kEndpointRpcs, {"orders", "10.0.0.1:200", "OK"}) == 0);
  CHECK(value(instruments, Metric::kSeriesOverflow, full) == 2);
}

TEST_CASE("instruments: the other endpoints of thousands of clusters share one series",
          "[metrics][instruments]") {
  Instruments instruments;
  for (std::size_t i = 0; i < kMaxSeries + 2; ++i)
    instruments.other_endpoints(ClusterName("c" + std::to_string(i)))->add(0, 1);
  CHECK(series_count(instruments, Metric::kEndpointRpcs) == kMaxSeries + 1);
  CHECK(value(instruments, Metric::kEndpointRpcs, {"other", "other", "OK"}) == 2);
}

TEST_CASE("instruments: thousands of short-lived clusters leave nothing",
          "[metrics][instruments]") {
  Instant now{std::chrono::hours(1)};
  Instruments instruments([&now] { return now; });
  for (int i = 0; i < 3'000; ++i, now += std::chrono::milliseconds(100)) {
    const ClusterName cluster("c" + std::to_string(i));
    const auto held = instruments.hold_cluster(cluster);
    instruments.call_stats("shop", cluster)->count_started();
    instruments.observe(ConnectionLost{cluster});
  }
  CHECK(series_count(instruments, Metric::kRpcsStarted) <= 800);
  now += std::chrono::minutes(1);
  CHECK(series_count(instruments, Metric::kRpcsStarted) == 0);
  CHECK(series_count(instruments, Metric::kSubchannelDisconnections) == 0);
  CHECK(series_count(instruments, Metric::kSeriesOverflow) == 0);
}

TEST_CASE("instruments: calls never look ended before they began", "[metrics][instruments]") {
  Instruments instruments;
  const auto stats = instruments.call_stats("shop", kOrders);
  std::thread calls([&] {
    for (int i = 0; i < 20'000; ++i) {
      stats->count_started();
      stats->count_completed(0);
    }
  });
  double least = 0;
  for (int i = 0; i < 500; ++i)
    least = std::min(least, *value(instruments, Metric::kRpcsActive, {"orders"}));
  calls.join();
  CHECK(least == 0);
  CHECK(value(instruments, Metric::kRpcsActive, {"orders"}) == 0);
}

}  // namespace
}  // namespace signalbox::metrics
