// SPDX-License-Identifier: Apache-2.0
//
// Every metric that a runtime exports: its name, kind, labels and help, in one table.
//
//   instruments ─▶ a row here and its label values ─▶ exporter ─▶ Prometheus
//
// Dashboards and alerts depend on the names, so a name never changes. A label is free text
// (Label::free_text) when the number of its values is open, such as names from the configuration. A
// metric with such a label has a limited number of series (metrics/series.hpp).

#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"

#include "messages/counting/striped_histogram.hpp"

namespace signalbox::metrics {

enum class Metric : std::uint8_t {
  kBuildInfo,
  kCalls,
  kCallDuration,
  kRpcsStarted,
  kRpcsCompleted,
  kRpcsActive,
  kRpcDuration,
  kPicks,
  kZoneCalls,
  kPickWait,
  kRetries,
  kAffinityPicks,
  kAffinityCookies,
  kLoadReports,
  kStreamedLoadReports,
  kEndpointLoadStreams,
  kWrrFallbacks,
  kWrrNotYetUsable,
  kWrrStale,
  kWrrWeights,
  kWrrInSlowStart,
  kPriorityActive,
  kFailovers,
  kFailoverDuration,
  kEndpoints,
  kEndpointChanges,
  kEndpointRpcs,
  kConnectionsOpen,
  kConnectionAttempts,
  kSubchannelDisconnections,
  kOutlierEjections,
  kAffinityHeld,
  kAffinitySweeps,
  kAffinityReleased,
  kTierLoad,
  kHealthProbes,
  kHealthProbesDelayed,
  kDrops,
  kCircuitBreakerOpen,
  kCircuitBreakerLimit,
  kCircuitBreakerDrops,
  kFaultsInjected,
  kXdsConnected,
  kXdsStreams,
  kXdsResponseBytes,
  kLrsStreams,
  kLrsReports,
  kXdsUpdatesValid,
  kXdsUpdatesInvalid,
  kXdsResources,
  kConfigGeneration,
  kConfigLastApplied,
  kConfigApplyDuration,
  kConfigPropagation,
  kConfigRejected,
  kCertificateExpiry,
  kCertificateFailures,
  kActorMessages,
  kActorMailbox,
  kActorHandleDuration,
  kActorDeaths,
  kPolicies,
  kPickFailures,
  kFilterFailures,
  kSubchannels,
  kAdminRefused,
  kLogLinesLost,
  kRecordingDropped,
  kRecordingLate,
  kProcessCpu,
  kProcessOpenFds,
  kProcessMaxFds,
  kProcessVirtualMemory,
  kProcessResidentMemory,
  kProcessStart,
  kSeriesOverflow,
};

enum class MetricKind : std::uint8_t { kCounter, kGauge, kHistogram };

/// The upper bounds of a histogram's buckets.
enum class Buckets : std::uint8_t {
  kFailover,  ///< kFailoverBuckets.
  kLatency,   ///< kLatencyBuckets, or kGrpcLatencyBuckets if the program asks for them.
  kSize,      ///< kSizeBuckets.
  kWeight,    ///< kWeightBuckets.
};

struct Label {
  absl::string_view name;
  bool free_text = false;
  bool optional = false;  ///< An empty value is not exported: Prometheus treats it as no label.
};

struct MetricRow {
  Metric metric;
  MetricKind kind;
  absl::string_view name;
  std::array<Label, 4> labels;  ///< Unused labels, at the end, have no name.
  absl::string_view help;
  Buckets buckets = Buckets::kFailover;  ///< Only for histograms.

  constexpr std::size_t label_count() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(labels, [](const Label& label) { return !label.name.empty(); }));
  }
};

inline constexpr Label kTarget{"target", true};
inline constexpr Label kCluster{"cluster", true};
/// The label of the route's cluster when that is an aggregate; the label `cluster` then has the
/// leaf that the pick chose. Empty: `cluster` has the route's cluster, because that is no aggregate
/// or the pick chose no leaf.
inline constexpr Label kAggregate{"aggregate", true, true};
/// The label of the endpoints' locality. Empty: metrics_detail is not kEndpoint, or the endpoints
/// are of several localities.
inline constexpr Label kLocality{"locality", true, true};
inline constexpr Label kServer{"xds_server", true};
inline constexpr Label kActor{"actor", false};

inline constexpr std::array kMetrics{
    MetricRow{Metric::kBuildInfo,
              MetricKind::kGauge,
              "signalbox_build_info",
              {Label{"version"}, Label{"revision"}, Label{"compiler"}},
              "Always 1; its labels say which build this is."},
    MetricRow{
        Metric::kCalls,
        MetricKind::kCounter,
        "signalbox_calls_total",
        {kTarget, Label{"code"}},
        "Calls as they ended for the application, by gRPC status code: each call once, however "
        "many attempts it had, and also when it reached no endpoint."},
    MetricRow{Metric::kCallDuration,
              MetricKind::kHistogram,
              "signalbox_call_duration_seconds",
              {kTarget},
              "Time from the beginning of a call to its end for the application, with all waiting "
              "and all attempts.",
              Buckets::kLatency},
    MetricRow{Metric::kRpcsStarted,
              MetricKind::kCounter,
              "signalbox_rpcs_started_total",
              {kTarget, kCluster, kAggregate},
              "Calls that were started, by the leaf that took them; each attempt of one that is "
              "retried counts."},
    MetricRow{Metric::kRpcsCompleted,
              MetricKind::kCounter,
              "signalbox_rpcs_completed_total",
              {kTarget, kCluster, Label{"code"}, kAggregate},
              "Calls that ended, by gRPC status code."},
    MetricRow{Metric::kRpcsActive,
              MetricKind::kGauge,
              "signalbox_rpcs_active",
              {kCluster, kAggregate},
              "Calls that were started and have not ended."},
    MetricRow{Metric::kRpcDuration,
              MetricKind::kHistogram,
              "signalbox_rpc_duration_seconds",
              {kCluster, kAggregate},
              "Time from the start of an attempt on an endpoint to the attempt's end, without the "
              "wait for the endpoint.",
              Buckets::kLatency},
    MetricRow{Metric::kPicks,
              MetricKind::kCounter,
              "signalbox_picks_total",
              {kCluster, Label{"result"}, kAggregate},
              "Picks, by what became of them; a call that waits picks more than once. Those that "
              "came to no leaf are the aggregate's."},
    MetricRow{Metric::kZoneCalls,
              MetricKind::kCounter,
              "signalbox_zone_calls_total",
              {kCluster, Label{"zone"}, kAggregate},
              "Picks that came to an endpoint, by the endpoint's zone: that of this client's node "
              "(own), another (other), or not known of one of the two (unknown)."},
    MetricRow{Metric::kPickWait,
              MetricKind::kHistogram,
              "signalbox_pick_wait_seconds",
              {kTarget, Label{"delay_type"}},
              "Time that calls waited for an endpoint, by the reason (gRFC A121). A call counts "
              "once for each of its reasons; a call that does not wait is not counted.",
              Buckets::kLatency},
    MetricRow{Metric::kRetries,
              MetricKind::kCounter,
              "signalbox_retries_total",
              {kCluster, Label{"result"}, kAggregate},
              "Attempts that failed with a code of their route's retry policy (gRFC A44): retried, "
              "or why they were not."},
    MetricRow{Metric::kAffinityPicks,
              MetricKind::kCounter,
              "signalbox_affinity_picks_total",
              {kCluster, Label{"result"}, kAggregate},
              "Picks of calls that are of a session (gRFC A55): on its host (hit, hit_draining), "
              "waiting for it (queued, created), without a cookie yet (new), or elsewhere, and why "
              "(fallback_...); that is why those of strict sessions fail, but for bad cookies."},
    MetricRow{Metric::kAffinityCookies,
              MetricKind::kCounter,
              "signalbox_affinity_cookies_set_total",
              {kCluster, Label{"reason"}, kAggregate},
              "Calls that were answered with a cookie: their session is new, or has moved."},
    MetricRow{
        Metric::kLoadReports,
        MetricKind::kCounter,
        "signalbox_load_reports_total",
        {kCluster, Label{"result"}, kAggregate},
        "Load reports of endpoints (gRFC A51) that a program read from responses, and passed to "
        "Router::finished: taken, or taken without values that no report may have (partly)."},
    MetricRow{
        Metric::kStreamedLoadReports,
        MetricKind::kCounter,
        "signalbox_streamed_load_reports_total",
        {Label{"result"}},
        "Load reports of endpoints that came on streams of their own (gRFC A51): taken, taken "
        "without values that no report may have (partly), or refused whole (refused)."},
    MetricRow{Metric::kEndpointLoadStreams,
              MetricKind::kCounter,
              "signalbox_endpoint_load_streams_total",
              {Label{"end"}},
              "Streams of load reports of endpoints that the endpoint or the connection ended: "
              "after a report (ended), without one (no_report), or because the endpoint has no "
              "such service (unimplemented)."},
    MetricRow{
        Metric::kWrrFallbacks,
        MetricKind::kCounter,
        "signalbox_wrr_rr_fallbacks_total",
        {kTarget, kCluster, kLocality},
        "How often weighted_round_robin took the weights of its endpoints, and fewer than two "
        "could be used: calls then go to all endpoints in turn (gRFC A78)."},
    MetricRow{
        Metric::kWrrNotYetUsable,
        MetricKind::kCounter,
        "signalbox_wrr_endpoint_weights_not_yet_usable_total",
        {kTarget, kCluster, kLocality},
        "Endpoints that had no weight yet when weighted_round_robin took the weights: no load "
        "report has come, or blackout_period is not over (gRFC A78)."},
    MetricRow{Metric::kWrrStale,
              MetricKind::kCounter,
              "signalbox_wrr_endpoint_weights_stale_total",
              {kTarget, kCluster, kLocality},
              "Endpoints with a last load report older than weight_expiration_period when "
              "weighted_round_robin took the weights (gRFC A78)."},
    MetricRow{Metric::kWrrWeights,
              MetricKind::kHistogram,
              "signalbox_wrr_endpoint_weights",
              {kTarget, kCluster, kLocality},
              "The weights of endpoints whenever weighted_round_robin took them; 0 for an endpoint "
              "without one that can be used (gRFC A78).",
              Buckets::kWeight},
    MetricRow{
        Metric::kWrrInSlowStart,
        MetricKind::kCounter,
        "signalbox_wrr_endpoints_in_slow_start_total",
        {kTarget, kCluster, kLocality},
        "Endpoints in slow start whenever weighted_round_robin took the weights (gRFC A100, a "
        "draft)."},
    MetricRow{Metric::kPriorityActive,
              MetricKind::kGauge,
              "signalbox_priority_active",
              {kCluster},
              "The priority that carries the calls: 0 is the primary, -1 is none; the worst, where "
              "several trees lead to the cluster, and none is worse than any."},
    MetricRow{Metric::kFailovers,
              MetricKind::kCounter,
              "signalbox_failovers_total",
              {kCluster, Label{"direction"}, Label{"reason"}},
              "Moves of calls from one priority to another."},
    MetricRow{Metric::kFailoverDuration,
              MetricKind::kHistogram,
              "signalbox_failover_duration_seconds",
              {kCluster},
              "Time from losing the last usable priority to having one again."},
    MetricRow{
        Metric::kEndpoints,
        MetricKind::kGauge,
        "signalbox_endpoints",
        {kCluster, Label{"priority", false, true}, Label{"state"}},
        "Addresses that policies hold, by priority and state; once for each target that uses the "
        "cluster. Those that outlier detection has set aside are ejected, those that fail their "
        "health checks are unhealthy, whatever their connection. DRAINING ones are held for "
        "sessions alone."},
    MetricRow{Metric::kEndpointChanges,
              MetricKind::kCounter,
              "signalbox_endpoint_changes_total",
              {kCluster, Label{"change"}},
              "Addresses that policies began to hold (added) or gave up (removed)."},
    MetricRow{Metric::kEndpointRpcs,
              MetricKind::kCounter,
              "signalbox_endpoint_rpcs_total",
              {kCluster, Label{"endpoint", true}, Label{"code"}},
              "Calls that ended on an endpoint, by gRPC status code. Only with metrics_detail "
              "kEndpoint; endpoints beyond 200 are counted as other."},
    MetricRow{Metric::kConnectionsOpen,
              MetricKind::kGauge,
              "signalbox_connections_open",
              {kCluster},
              "Established connections."},
    MetricRow{Metric::kConnectionAttempts,
              MetricKind::kCounter,
              "signalbox_connection_attempts_total",
              {kCluster, Label{"result"}},
              "Connection attempts that ended."},
    MetricRow{Metric::kSubchannelDisconnections,
              MetricKind::kCounter,
              "signalbox_subchannel_disconnections_total",
              {kCluster, Label{"reason"}},
              "Established connections that ended, by gRPC's word for the reason (gRFC A94)."},
    MetricRow{Metric::kOutlierEjections,
              MetricKind::kCounter,
              "signalbox_outlier_ejections_total",
              {kCluster, Label{"method"}, Label{"enforced"}, Label{"unenforced_reason"}},
              "Endpoints that outlier detection found (gRFC A91). Not enforced: by chance "
              "(enforcement_percentage), or as too many are ejected (max_ejection_overflow)."},
    MetricRow{Metric::kAffinityHeld,
              MetricKind::kGauge,
              "signalbox_affinity_subchannels_held",
              {kCluster},
              "Addresses that are held for sessions alone (gRFC A75), over all targets."},
    MetricRow{Metric::kAffinitySweeps,
              MetricKind::kCounter,
              "signalbox_affinity_sweeps_total",
              {kCluster},
              "How often addresses were looked through that no session uses any more."},
    MetricRow{Metric::kAffinityReleased,
              MetricKind::kCounter,
              "signalbox_affinity_released_total",
              {kCluster},
              "Addresses that such a sweep released."},
    MetricRow{Metric::kTierLoad,
              MetricKind::kGauge,
              "signalbox_tier_load_percent",
              {kCluster, Label{"leaf", true}, Label{"priority"}},
              "The share of the calls to an aggregate cluster in tiered mode that goes to this "
              "priority of this leaf."},
    MetricRow{Metric::kHealthProbes,
              MetricKind::kCounter,
              "signalbox_health_probes_total",
              {kCluster, Label{"result"}},
              "Probes of endpoints that ended (CDS health_checks): success, failure."},
    MetricRow{Metric::kHealthProbesDelayed,
              MetricKind::kCounter,
              "signalbox_health_probes_delayed_total",
              {kCluster},
              "Those of them that waited for their turn, as 256 were under way in the runtime."},
    MetricRow{Metric::kDrops,
              MetricKind::kCounter,
              "signalbox_drops_total",
              {kCluster, Label{"category", true}},
              "Calls dropped because the control plane said so (EDS drop_overloads)."},
    MetricRow{Metric::kCircuitBreakerOpen,
              MetricKind::kGauge,
              "signalbox_circuit_breaker_open",
              {kCluster},
              "Whether the cluster has as many calls in flight as it may, counting those of the "
              "whole process."},
    MetricRow{Metric::kCircuitBreakerLimit,
              MetricKind::kGauge,
              "signalbox_circuit_breaker_limit",
              {kCluster},
              "How many calls may be in flight (gRFC A32)."},
    MetricRow{Metric::kCircuitBreakerDrops,
              MetricKind::kCounter,
              "signalbox_circuit_breaker_drops_total",
              {kCluster},
              "Calls dropped because as many were in flight as may be."},
    MetricRow{Metric::kFaultsInjected,
              MetricKind::kCounter,
              "signalbox_faults_injected_total",
              {Label{"kind"}},
              "Calls that were given a fault on purpose (gRFC A33): delays, and aborts, which come "
              "after the delay of the same call."},
    MetricRow{Metric::kXdsConnected,
              MetricKind::kGauge,
              "signalbox_xds_connected",
              {kServer},
              "Whether the stream to the control plane works."},
    MetricRow{
        Metric::kXdsStreams,
        MetricKind::kCounter,
        "signalbox_xds_streams_total",
        {kServer, Label{"end"}},
        "Streams to the control plane that ended: after a response (ok, error) or without one "
        "(no_response)."},
    MetricRow{Metric::kXdsResponseBytes,
              MetricKind::kHistogram,
              "signalbox_xds_response_bytes",
              {Label{"resource_type"}},
              "Size of the control plane's responses.",
              Buckets::kSize},
    MetricRow{
        Metric::kLrsStreams,
        MetricKind::kCounter,
        "signalbox_lrs_streams_total",
        {kServer, Label{"end"}},
        "Streams of load reports to the control plane that ended: after a response (ok, error) "
        "or without one (no_response)."},
    MetricRow{Metric::kLrsReports,
              MetricKind::kCounter,
              "signalbox_lrs_reports_total",
              {kServer},
              "Load reports that were sent to the control plane (gRFC A27)."},
    MetricRow{Metric::kXdsUpdatesValid,
              MetricKind::kCounter,
              "signalbox_xds_resource_updates_valid_total",
              {kServer, Label{"resource_type"}},
              "Resources received and accepted."},
    MetricRow{Metric::kXdsUpdatesInvalid,
              MetricKind::kCounter,
              "signalbox_xds_resource_updates_invalid_total",
              {kServer, Label{"resource_type"}},
              "Resources received and refused (NACK)."},
    MetricRow{Metric::kXdsResources,
              MetricKind::kGauge,
              "signalbox_xds_resources",
              {Label{"resource_type"}, Label{"cache_state"}},
              "Resources that are watched, by state of the cache (gRFC A78, A88)."},
    MetricRow{Metric::kConfigGeneration,
              MetricKind::kGauge,
              "signalbox_config_generation",
              {kTarget},
              "The generation of the configuration that serves."},
    MetricRow{Metric::kConfigLastApplied,
              MetricKind::kGauge,
              "signalbox_config_last_applied_timestamp_seconds",
              {kTarget},
              "When picks first saw the configuration that serves, in seconds since 1970."},
    MetricRow{Metric::kConfigApplyDuration,
              MetricKind::kHistogram,
              "signalbox_config_apply_duration_seconds",
              {kTarget},
              "Time from a complete configuration to the first snapshot that shows it to picks.",
              Buckets::kLatency},
    MetricRow{
        Metric::kConfigPropagation,
        MetricKind::kHistogram,
        "signalbox_config_propagation_seconds",
        {kTarget},
        "Time from the control plane's response, or from reading the changed file, to the first "
        "snapshot that shows the change to picks.",
        Buckets::kLatency},
    MetricRow{Metric::kConfigRejected,
              MetricKind::kCounter,
              "signalbox_config_rejected_total",
              {Label{"reason"}},
              "Resources refused (parse, semantic, limit), xDS responses (parse, limit), whole "
              "resource files (unreadable, parse), and certificates (certificate)."},
    MetricRow{
        Metric::kCertificateExpiry,
        MetricKind::kGauge,
        "signalbox_certificate_expiry_timestamp_seconds",
        {Label{"role"}},
        "When the certificates of this role end, in seconds since 1970. Files are read at each "
        "collection. Of a chain the first end counts, of roots the last."},
    MetricRow{
        Metric::kCertificateFailures,
        MetricKind::kCounter,
        "signalbox_certificate_reload_failures_total",
        {Label{"role"}},
        "How often certificate files went bad (unreadable, no PEM, a key that does not fit); the "
        "last good ones stay in use."},
    MetricRow{Metric::kActorMessages,
              MetricKind::kCounter,
              "signalbox_actor_messages_total",
              {kActor},
              "Messages that actors have handled."},
    MetricRow{
        Metric::kActorMailbox,
        MetricKind::kGauge,
        "signalbox_actor_mailbox_messages",
        {kActor},
        "Messages in the longest mailbox of this kind of actor since the last collection; one "
        "message in 16 looks."},
    MetricRow{Metric::kActorHandleDuration,
              MetricKind::kHistogram,
              "signalbox_actor_handle_duration_seconds",
              {kActor},
              "Time that actors took for a message; one message in 16 is measured.",
              Buckets::kLatency},
    MetricRow{Metric::kActorDeaths,
              MetricKind::kCounter,
              "signalbox_actor_deaths_total",
              {kActor, Label{"reason", true}},
              "Actors that died of an error."},
    MetricRow{Metric::kPolicies,
              MetricKind::kGauge,
              "signalbox_policies",
              {Label{"policy", true}},
              "Load-balancing policies that are alive."},
    MetricRow{Metric::kPickFailures,
              MetricKind::kCounter,
              "signalbox_custom_pick_failures_total",
              {Label{"policy"}},
              "Picks that the picker of a custom policy threw at, or answered as no picker may."},
    MetricRow{Metric::kFilterFailures,
              MetricKind::kCounter,
              "signalbox_custom_filter_failures_total",
              {Label{"filter"}},
              "Calls that a custom HTTP filter threw at."},
    MetricRow{Metric::kSubchannels,
              MetricKind::kGauge,
              "signalbox_subchannels",
              {Label{"state"}},
              "Subchannels that are alive, by connectivity."},
    MetricRow{Metric::kAdminRefused,
              MetricKind::kCounter,
              "signalbox_admin_refused_total",
              {Label{"limit"}},
              "Requests, streams and connections of the admin pages, /metrics and the gRPC admin "
              "services that a limit refused or ended."},
    MetricRow{Metric::kLogLinesLost,
              MetricKind::kCounter,
              "signalbox_log_lines_lost_total",
              {},
              "Lines of the log that could not be written to stderr."},
    MetricRow{
        Metric::kRecordingDropped,
        MetricKind::kCounter,
        "signalbox_recording_dropped_total",
        {},
        "Events that are missing in the recording, because its file was too slow or cannot be "
        "written."},
    MetricRow{Metric::kRecordingLate,
              MetricKind::kCounter,
              "signalbox_recording_late_segments_total",
              {},
              "Failed attempts to begin the next file of the recording; the old one goes on."},
    // The names that Prometheus recommends to its client libraries for the metrics of a process.
    // metrics/process.cpp makes these metrics.
    MetricRow{Metric::kProcessCpu,
              MetricKind::kCounter,
              "process_cpu_seconds_total",
              {},
              "CPU time that the process has used, in seconds."},
    MetricRow{Metric::kProcessOpenFds,
              MetricKind::kGauge,
              "process_open_fds",
              {},
              "Descriptors that the process has open."},
    MetricRow{Metric::kProcessMaxFds,
              MetricKind::kGauge,
              "process_max_fds",
              {},
              "The most descriptors that the process may have open."},
    MetricRow{Metric::kProcessVirtualMemory,
              MetricKind::kGauge,
              "process_virtual_memory_bytes",
              {},
              "Addresses that the process has reserved, in bytes."},
    MetricRow{Metric::kProcessResidentMemory,
              MetricKind::kGauge,
              "process_resident_memory_bytes",
              {},
              "Memory of the process that is in use, in bytes."},
    MetricRow{Metric::kProcessStart,
              MetricKind::kGauge,
              "process_start_time_seconds",
              {},
              "When the process started, in seconds since 1970."},
    MetricRow{Metric::kSeriesOverflow,
              MetricKind::kCounter,
              "signalbox_metric_series_overflow_total",
              {Label{"metric"}},
              "Updates that found their metric full: counted under \"other\" or left out."},
};

constexpr const MetricRow& row_of(Metric metric) {
  return kMetrics[static_cast<std::size_t>(metric)];
}

static_assert(
    [] {
      for (std::size_t i = 0; i < kMetrics.size(); ++i) {
        if (static_cast<std::size_t>(kMetrics[i].metric) != i) return false;
      }
      return true;
    }(),
    "the rows stand in the order of Metric");

/// Upper bounds in seconds. The default failover timeout is 10 s. The bound of 11 separates
/// failovers that ended when the timeout had passed from those that also waited for a connection.
inline constexpr std::array kFailoverBuckets{
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 11.0, 15.0, 30.0, 60.0};

/// kLatencyBounds in seconds.
inline constexpr std::array kLatencyBuckets = [] {
  std::array<double, kLatencyBounds.size()> seconds{};
  for (std::size_t i = 0; i < seconds.size(); ++i)
    seconds[i] = std::chrono::duration<double>(kLatencyBounds[i]).count();
  return seconds;
}();

/// gRPC's bounds of latencies (gRFC A66), in units of 10 µs.
inline constexpr std::array<std::int64_t, 41> kGrpcLatencyUnits{
    0,       1,         5,         10,        30,        60,     80,     100,     200,
    300,     400,       500,       600,       800,       1'000,  1'300,  1'600,   2'000,
    2'500,   3'000,     4'000,     5'000,     6'500,     8'000,  10'000, 13'000,  16'000,
    20'000,  25'000,    30'000,    40'000,    50'000,    65'000, 80'000, 100'000, 200'000,
    500'000, 1'000'000, 2'000'000, 5'000'000, 10'000'000};

inline constexpr std::array kGrpcLatencyBounds = [] {
  std::array<Duration, kGrpcLatencyUnits.size()> bounds{};
  for (std::size_t i = 0; i < bounds.size(); ++i)
    bounds[i] = std::chrono::microseconds(10 * kGrpcLatencyUnits[i]);
  return bounds;
}();

/// kGrpcLatencyUnits in seconds.
inline constexpr std::array kGrpcLatencyBuckets = [] {
  std::array<double, kGrpcLatencyBounds.size()> seconds{};
  for (std::size_t i = 0; i < seconds.size(); ++i)
    seconds[i] = std::chrono::duration<double>(kGrpcLatencyBounds[i]).count();
  return seconds;
}();

/// gRPC's bounds of sizes in bytes (gRFC A66).
inline constexpr std::array kSizeBuckets{0.0,
                                         1024.0,
                                         2048.0,
                                         4096.0,
                                         16384.0,
                                         65536.0,
                                         262144.0,
                                         1048576.0,
                                         4194304.0,
                                         16777216.0,
                                         67108864.0,
                                         268435456.0,
                                         1073741824.0,
                                         4294967296.0};

/// The bounds that gRPC's metrics of weights have, because A78 names none: OpenTelemetry's.
inline constexpr std::array kWeightBuckets{0.0,
                                           5.0,
                                           10.0,
                                           25.0,
                                           50.0,
                                           75.0,
                                           100.0,
                                           250.0,
                                           500.0,
                                           750.0,
                                           1000.0,
                                           2500.0,
                                           5000.0,
                                           7500.0,
                                           10000.0};

/// Which bounds the histograms of latencies have.
enum class LatencyScale : std::uint8_t {
  kShort,  ///< kLatencyBuckets.
  kGrpc,   ///< kGrpcLatencyBuckets, for dashboards that expect gRPC's.
};

constexpr std::span<const double> bounds_of(Buckets buckets, LatencyScale scale) {
  switch (buckets) {
    case Buckets::kFailover:
      return kFailoverBuckets;
    case Buckets::kLatency:
      if (scale == LatencyScale::kGrpc) return kGrpcLatencyBuckets;
      return kLatencyBuckets;
    case Buckets::kSize:
      return kSizeBuckets;
    case Buckets::kWeight:
      return kWeightBuckets;
  }
  return {};
}

}  // namespace signalbox::metrics
