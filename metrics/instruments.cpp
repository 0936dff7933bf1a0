// SPDX-License-Identifier: Apache-2.0
#include "metrics/instruments.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "absl/strings/str_cat.h"

#include "messages/build_facts.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::metrics {
namespace {

// --- labels ---------------------------------------------------------------

constexpr std::array<absl::string_view, kPickOutcomes> kResults{
    "complete", "queue", "fail", "drop"};
constexpr std::array<absl::string_view, kCallZones> kZoneLabels{"unknown", "own", "other"};
constexpr std::array<absl::string_view, kRetryResults> kRetryLabels{
    "retried", "exhausted", "throttled", "pushed_back", "committed", "too_large", "too_late"};
// In the order of AffinityResult. The first is kNone, a call without a session. It is not exported,
// so its label is empty.
constexpr std::array<absl::string_view, kAffinityResults> kAffinityLabels{"",
                                                                          "new",
                                                                          "hit",
                                                                          "hit_draining",
                                                                          "queued",
                                                                          "created",
                                                                          "fallback_unknown_host",
                                                                          "fallback_unhealthy",
                                                                          "fallback_bad_cookie",
                                                                          "fallback_cluster"};
constexpr std::array<absl::string_view, kCookieSets> kCookieLabels{"new", "moved"};
constexpr std::array<absl::string_view, kLoadReportResults> kLoadReportLabels{
    "taken", "partly", "refused"};
constexpr std::array<absl::string_view, kLoadStreamEnds> kLoadStreamEndLabels{
    "ended", "no_report", "unimplemented"};
constexpr std::array<absl::string_view, kEndpointStates> kStates{
    "ready", "connecting", "idle", "transient_failure", "draining", "ejected", "unhealthy"};
constexpr std::array<absl::string_view, 2> kDirections{"down", "up"};
constexpr std::array<absl::string_view, 4> kReasons{
    "failed", "timed_out", "recovered", "reconfigured"};
constexpr std::array<absl::string_view, kDetectionMethods> kMethods{"success_rate",
                                                                    "failure_percentage"};
constexpr std::array<absl::string_view, kDetectionOutcomes> kOutcomes{
    "ejected", "enforcement_percentage", "max_ejection_overflow"};
constexpr std::array<absl::string_view, 4> kConnectivity{
    "idle", "connecting", "ready", "transient_failure"};
constexpr std::array<absl::string_view, kStatusCodes> kCodes{"OK",
                                                             "CANCELLED",
                                                             "UNKNOWN",
                                                             "INVALID_ARGUMENT",
                                                             "DEADLINE_EXCEEDED",
                                                             "NOT_FOUND",
                                                             "ALREADY_EXISTS",
                                                             "PERMISSION_DENIED",
                                                             "RESOURCE_EXHAUSTED",
                                                             "FAILED_PRECONDITION",
                                                             "ABORTED",
                                                             "OUT_OF_RANGE",
                                                             "UNIMPLEMENTED",
                                                             "INTERNAL",
                                                             "UNAVAILABLE",
                                                             "DATA_LOSS",
                                                             "UNAUTHENTICATED"};

// In the order of AdminLimit.
constexpr std::array<absl::string_view, kAdminLimits> kAdminLimitLabels{"http_headers",
                                                                        "http_silent",
                                                                        "http_waiting",
                                                                        "http_requests",
                                                                        "http_unread_bytes",
                                                                        "http_idle",
                                                                        "grpc_requests",
                                                                        "csds_streams",
                                                                        "health_watches",
                                                                        "health_services"};

constexpr std::array<absl::string_view, 3> kStreamEnds{"ok", "no_response", "error"};

template <typename Enum, std::size_t N>
std::string label_of(const std::array<absl::string_view, N>& labels, Enum value) {
  return std::string(labels[static_cast<std::size_t>(value)]);
}

// --- zeros ----------------------------------------------------------------

// Begins a series, with 0, for each pair of direction and reason that policies may report
// (lb/tree/priority_watch).
void begin_failovers(SeriesTable& series, const ClusterName& cluster) {
  for (const auto& [direction, reason] :
       {std::pair(FailoverDirection::kDown, FailoverReason::kFailed),
        std::pair(FailoverDirection::kDown, FailoverReason::kTimedOut),
        std::pair(FailoverDirection::kDown, FailoverReason::kReconfigured),
        std::pair(FailoverDirection::kUp, FailoverReason::kRecovered),
        std::pair(FailoverDirection::kUp, FailoverReason::kReconfigured)}) {
    series.begin(Metric::kFailovers,
                 {cluster.str(), label_of(kDirections, direction), label_of(kReasons, reason)});
  }
}

void begin_connection_attempts(SeriesTable& series, const ClusterName& cluster) {
  for (const char* result : {"success", "failure"})
    series.begin(Metric::kConnectionAttempts, {cluster.str(), result});
}

// --- outliers -------------------------------------------------------------

void count_outliers(SeriesTable& series, const OutliersDetected& seen) {
  const bool enforced = seen.outcome == DetectionOutcome::kEjected;
  series.add(Metric::kOutlierEjections,
             {seen.cluster.str(),
              label_of(kMethods, seen.method),
              enforced ? "true" : "false",
              enforced ? std::string() : label_of(kOutcomes, seen.outcome)},
             static_cast<double>(seen.endpoints));
}

// --- weights --------------------------------------------------------------

// Wherever weighted_round_robin is, there are all five series, zeros included.
void count_weights(SeriesTable& series, const WeightsTaken& seen) {
  const LabelValues labels{seen.target, seen.cluster.str(), seen.locality};
  series.add(Metric::kWrrFallbacks, labels, seen.falls_back ? 1 : 0);
  series.add(Metric::kWrrNotYetUsable, labels, static_cast<double>(seen.not_yet_usable));
  series.add(Metric::kWrrStale, labels, static_cast<double>(seen.stale));
  series.add(Metric::kWrrInSlowStart, labels, static_cast<double>(seen.in_slow_start));
  series.record(Metric::kWrrWeights, labels, seen.weights);
}

// --- durations ------------------------------------------------------------

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

Histogram histogram_of(const DurationCounts& counted) {
  return {{counted.buckets.begin(), counted.buckets.end()}, seconds(counted.sum)};
}

template <typename Visit>
void each_delay_type(const Visit& visit) {
  for (std::size_t reason = 0; reason < kDelayReasons; ++reason) {
    visit(DelayType{static_cast<DelayReason>(reason)});
    for (std::uint8_t priority = 0; priority <= DelayType::kLastPriority; ++priority)
      visit(DelayType{static_cast<DelayReason>(reason), priority});
  }
}

// --- calls ----------------------------------------------------------------

struct CallCounts {
  std::array<std::int64_t, kPickOutcomes> picks{};
  std::array<std::int64_t, kCallZones> zones{};
  std::array<std::int64_t, kRetryResults> retries{};
  std::array<std::int64_t, kAffinityResults> affinity{};
  std::array<std::int64_t, kCookieSets> cookies{};
  std::array<std::int64_t, kLoadReportResults> load_reports{};
  std::array<std::int64_t, kStatusCodes> completed{};
  std::int64_t started = 0;
  std::int64_t active = 0;
  DurationCounts durations;

  // Ended calls are read before started calls, because calls go on meanwhile: in the other order,
  // a call that starts and ends in between would be ended but not started.
  explicit CallCounts(const CallStats& stats) {
    for (std::size_t code = 0; code < kStatusCodes; ++code)
      completed[code] = stats.completed(code);
    started = stats.started();
    active = started;
    for (const std::int64_t count : completed)
      active -= count;
    for (std::size_t outcome = 0; outcome < kPickOutcomes; ++outcome)
      picks[outcome] = stats.picks(static_cast<PickOutcome>(outcome));
    for (std::size_t zone = 0; zone < kCallZones; ++zone)
      zones[zone] = stats.zone_calls(static_cast<CallZone>(zone));
    for (std::size_t result = 0; result < kRetryResults; ++result)
      retries[result] = stats.retries(static_cast<RetryResult>(result));
    // Result 0 is a call without a session, which is not exported.
    for (std::size_t result = 1; result < kAffinityResults; ++result)
      affinity[result] = stats.affinity(static_cast<AffinityResult>(result));
    for (std::size_t reason = 0; reason < kCookieSets; ++reason)
      cookies[reason] = stats.cookies(static_cast<CookieSet>(reason));
    for (std::size_t result = 0; result < kLoadReportResults; ++result)
      load_reports[result] = stats.load_reports(static_cast<LoadReportResult>(result));
    durations = stats.durations().counts();
  }

  CallCounts() = default;

  /// Adds the counts of the metrics that have no label `target`, to sum them over all targets.
  /// `started` and `completed` have that label, and are not added.
  void add(const CallCounts& other) {
    active += other.active;
    add(picks, other.picks);
    add(zones, other.zones);
    add(retries, other.retries);
    add(affinity, other.affinity);
    add(cookies, other.cookies);
    add(load_reports, other.load_reports);
    durations.sum += other.durations.sum;
    durations.buckets.resize(other.durations.buckets.size());
    for (std::size_t i = 0; i < durations.buckets.size(); ++i)
      durations.buckets[i] += other.durations.buckets[i];
  }

  /// Whether the zones of client and endpoint have been known for a call.
  bool has_zones() const {
    constexpr auto kUnknown = static_cast<std::size_t>(CallZone::kUnknown);
    for (std::size_t zone = 0; zone < kCallZones; ++zone) {
      if (zone != kUnknown && zones[zone] != 0) return true;
    }
    return false;
  }

  bool has_sessions() const {
    return std::ranges::any_of(affinity, [](std::int64_t count) { return count != 0; }) ||
           std::ranges::any_of(cookies, [](std::int64_t count) { return count != 0; });
  }

 private:
  template <std::size_t N>
  static void add(std::array<std::int64_t, N>& to, const std::array<std::int64_t, N>& what) {
    for (std::size_t i = 0; i < N; ++i)
      to[i] += what[i];
  }
};

Series one(LabelValues labels, std::int64_t value) {
  return {std::move(labels), static_cast<double>(value), {}};
}

// The metrics of calls with the labels `target` and `cluster`.
struct TargetFamilies {
  Family started{&row_of(Metric::kRpcsStarted), {}};
  Family completed{&row_of(Metric::kRpcsCompleted), {}};

  void add(const std::string& target,
           const std::string& cluster,
           const std::string& aggregate,
           const CallCounts& counts) {
    started.series.push_back(one({target, cluster, aggregate}, counts.started));
    for (std::size_t code = 0; code < kStatusCodes; ++code) {
      // Most codes never occur, and get no series. OK (0) always has a series.
      if (code != 0 && counts.completed[code] == 0) continue;
      completed.series.push_back(
          one({target, cluster, std::string(kCodes[code]), aggregate}, counts.completed[code]));
    }
  }
};

Series one(LabelValues labels, const DurationCounts& counted) {
  return {std::move(labels), 0, histogram_of(counted)};
}

// Metrics of calls that have the label `cluster` and not `target`: sums over all targets.
struct ClusterFamilies {
  Family active{&row_of(Metric::kRpcsActive), {}};
  Family durations{&row_of(Metric::kRpcDuration), {}};
  Family picks{&row_of(Metric::kPicks), {}};
  Family zones{&row_of(Metric::kZoneCalls), {}};
  Family retries{&row_of(Metric::kRetries), {}};
  Family affinity{&row_of(Metric::kAffinityPicks), {}};
  Family cookies{&row_of(Metric::kAffinityCookies), {}};
  Family load_reports{&row_of(Metric::kLoadReports), {}};

  void add(const std::string& cluster, const std::string& aggregate, const CallCounts& sum) {
    active.series.push_back(one({cluster, aggregate}, sum.active));
    // Without measured calls there is no series: the Pick API does not time calls.
    if (std::ranges::any_of(sum.durations.buckets, [](std::int64_t count) { return count != 0; }))
      durations.series.push_back(one({cluster, aggregate}, sum.durations));
    for (std::size_t outcome = 0; outcome < kPickOutcomes; ++outcome) {
      picks.series.push_back(
          one({cluster, std::string(kResults[outcome]), aggregate}, sum.picks[outcome]));
    }
    for (std::size_t zone = 0; zone < kCallZones; ++zone) {
      // Where zones are known there are zeros, too, so that rates see the first call of a zone.
      const bool is_known = zone != static_cast<std::size_t>(CallZone::kUnknown);
      if (sum.zones[zone] == 0 && !(is_known && sum.has_zones())) continue;
      zones.series.push_back(
          one({cluster, std::string(kZoneLabels[zone]), aggregate}, sum.zones[zone]));
    }
    for (std::size_t result = 0; result < kRetryResults; ++result) {
      // Most clusters have no retry policy, and need no series of zeros.
      if (sum.retries[result] == 0) continue;
      retries.series.push_back(
          one({cluster, std::string(kRetryLabels[result]), aggregate}, sum.retries[result]));
    }
    for (std::size_t result = 0; result < kLoadReportResults; ++result) {
      // Most clusters take no load reports, and need no series of zeros.
      if (sum.load_reports[result] == 0) continue;
      load_reports.series.push_back(one(
          {cluster, std::string(kLoadReportLabels[result]), aggregate}, sum.load_reports[result]));
    }
    if (sum.has_sessions()) add_sessions(cluster, aggregate, sum);
  }

 private:
  // Exports the counts of session picks and cookies, zeros included. Precondition: one of them is
  // not zero; most clusters have no sessions.
  void add_sessions(const std::string& cluster,
                    const std::string& aggregate,
                    const CallCounts& sum) {
    for (std::size_t result = 1; result < kAffinityResults; ++result) {
      affinity.series.push_back(
          one({cluster, std::string(kAffinityLabels[result]), aggregate}, sum.affinity[result]));
    }
    for (std::size_t reason = 0; reason < kCookieSets; ++reason) {
      cookies.series.push_back(
          one({cluster, std::string(kCookieLabels[reason]), aggregate}, sum.cookies[reason]));
    }
  }
};

// The family of a metric with one label: one series for each name in `counts`.
template <typename Counts>
Family family_of(Metric metric, const Counts& counts) {
  Family family{&row_of(metric), {}};
  for (const auto& [name, count] : counts)
    family.series.push_back(one({name}, count->sum(0)));
  return family;
}

DurationBounds duration_bounds(LatencyScale scale) {
  if (scale == LatencyScale::kGrpc) return kGrpcLatencyBounds;
  return kLatencyBounds;
}

LabelValues tier_labels(const ClusterName& cluster, const ClusterName& leaf, std::size_t priority) {
  return {cluster.str(), leaf.str(), std::to_string(priority)};
}

// Precondition: Instruments::registry_mutex_ is locked.
const EventCountPtr& count_of(std::map<std::string, EventCountPtr>& counts,
                              absl::string_view name) {
  EventCountPtr& count = counts[std::string(name)];
  if (count == nullptr) count = std::make_shared<const EventCount>();
  return count;
}

}  // namespace

Instruments::Instruments(Clock now, LatencyScale scale, CallMetrics calls)
    : now_(std::move(now)), scale_(scale), calls_(calls), series_(scale) {
  series_.set(Metric::kBuildInfo,
              {std::string(build_version()), std::string(build_revision()), __VERSION__},
              1);
}

// --- from the actors -------------------------------------------------------

void Instruments::observe(const Observation& observation) {
  std::visit(
      Overloaded{
          [&](const PriorityActive& seen) {
            if (!seen.before) begin_failovers(series_, seen.cluster);
            move_priority(seen.cluster, seen.before, seen.priority);
          },
          [&](const FailedOver& seen) {
            series_.add(Metric::kFailovers,
                        {seen.cluster.str(),
                         label_of(kDirections, seen.direction),
                         label_of(kReasons, seen.reason)},
                        1);
          },
          [&](const FailoverEnded& seen) {
            series_.record(Metric::kFailoverDuration,
                           {seen.cluster.str()},
                           std::chrono::duration<double>(seen.duration).count());
          },
          [&](const EndpointsCounted& seen) { count_endpoints(seen); },
          [&](const EndpointsChanged& seen) {
            const std::string cluster = seen.cluster.str();
            series_.add(
                Metric::kEndpointChanges, {cluster, "added"}, static_cast<double>(seen.added));
            series_.add(
                Metric::kEndpointChanges, {cluster, "removed"}, static_cast<double>(seen.removed));
          },
          [&](const ConnectionAttempted& seen) {
            series_.add(Metric::kConnectionAttempts,
                        {seen.cluster.str(), seen.connected ? "success" : "failure"},
                        1);
          },
          [&](const ConnectionLost& seen) {
            series_.add(Metric::kSubchannelDisconnections, {seen.cluster.str(), seen.reason}, 1);
          },
          [&](const OutliersDetected& seen) { count_outliers(series_, seen); },
          [&](const CircuitBreakerSet& seen) { set_gate(seen); },
          [&](const SessionsHeld& seen) { count_held(seen); },
          [&](const SessionsSwept& seen) {
            series_.add(Metric::kAffinitySweeps, {seen.cluster.str()}, 1);
            series_.add(Metric::kAffinityReleased,
                        {seen.cluster.str()},
                        static_cast<double>(seen.released));
          },
          [](const TierLoad&) {},  // The shell calls hold_load() for this observation.
          [&](const WeightsTaken& seen) { count_weights(series_, seen); },
          [](const PrioritiesSeen&) {},
          [](const PriorityMoved&) {},
          [&](const HealthProbed& seen) {
            series_.add(Metric::kHealthProbes,
                        {seen.cluster.str(), seen.passed ? "success" : "failure"},
                        1);
            series_.add(Metric::kHealthProbesDelayed, {seen.cluster.str()}, seen.delayed ? 1 : 0);
          },
      },
      observation);
}

void Instruments::forget_priority(const ClusterName& cluster, int reported) {
  move_priority(cluster, reported, std::nullopt);
}

// Several policies may choose the cluster's priority (PriorityActive), each its own. The gauge
// shows the worst of these priorities, so that operators notice it: -1 if a policy has no usable
// priority, else the highest number in use.
void Instruments::move_priority(const ClusterName& cluster,
                                std::optional<int> from,
                                std::optional<int> to) {
  const std::lock_guard lock(registry_mutex_);
  std::map<int, std::size_t>& counts = priorities_[cluster];
  if (from && --counts[*from] == 0) counts.erase(*from);
  if (to) ++counts[*to];
  if (counts.empty()) {  // The last policy has ended.
    priorities_.erase(cluster);
    return series_.forget(Metric::kPriorityActive, cluster.str());
  }
  const int best = counts.begin()->first;
  series_.set(Metric::kPriorityActive, {cluster.str()}, best < 0 ? best : counts.rbegin()->first);
}

// Several subchannel maps may count endpoints of the cluster. Each update sets the gauge to the sum
// over the maps. The sum is kept even while the metric has kMaxSeries other series: when the
// cluster's series begins later, it begins with the right number.
void Instruments::count_endpoints(const EndpointsCounted& seen) {
  const std::lock_guard lock(registry_mutex_);
  const std::string priority = seen.priority ? absl::StrCat(*seen.priority) : std::string();
  if (!endpoints_.contains(seen.cluster)) begin_connection_attempts(series_, seen.cluster);
  EndpointCounts& sum = endpoints_[seen.cluster][priority];
  for (std::size_t state = 0; state < kEndpointStates; ++state) {
    sum[state] += seen.by_state[state] - seen.before[state];
    series_.set(Metric::kEndpoints,
                {seen.cluster.str(), priority, std::string(kStates[state])},
                static_cast<double>(sum[state]));
  }
}

void Instruments::count_held(const SessionsHeld& seen) {
  const std::lock_guard lock(registry_mutex_);
  std::int64_t& sum = sessions_held_[seen.cluster];
  sum += seen.held - seen.before;
  series_.set(Metric::kAffinityHeld, {seen.cluster.str()}, static_cast<double>(sum));
}

void Instruments::set_xds_connected(absl::string_view server, bool connected) {
  series_.set(Metric::kXdsConnected, {std::string(server)}, connected ? 1 : 0);
}

void Instruments::forget_xds_connected(absl::string_view server) {
  series_.forget(Metric::kXdsConnected, server);
}

void Instruments::count_updates(absl::string_view server,
                                ResourceType type,
                                std::uint64_t valid,
                                std::uint64_t invalid) {
  const LabelValues labels{std::string(server), std::string(to_string(type))};
  series_.add(Metric::kXdsUpdatesValid, labels, static_cast<double>(valid));
  series_.add(Metric::kXdsUpdatesInvalid, labels, static_cast<double>(invalid));
}

void Instruments::count_stream_end(absl::string_view server, StreamEnd how, std::uint64_t times) {
  series_.add(Metric::kXdsStreams,
              {std::string(server), label_of(kStreamEnds, how)},
              static_cast<double>(times));
}

void Instruments::count_load_stream_end(absl::string_view server,
                                        StreamEnd how,
                                        std::uint64_t times) {
  series_.add(Metric::kLrsStreams,
              {std::string(server), label_of(kStreamEnds, how)},
              static_cast<double>(times));
}

void Instruments::count_load_report_sent(absl::string_view server) {
  series_.add(Metric::kLrsReports, {std::string(server)}, 1);
}

void Instruments::count_streamed_load_report(LoadReportResult result) {
  series_.add(Metric::kStreamedLoadReports, {label_of(kLoadReportLabels, result)}, 1);
}

void Instruments::count_endpoint_load_stream(LoadStreamEnd how) {
  series_.add(Metric::kEndpointLoadStreams, {label_of(kLoadStreamEndLabels, how)}, 1);
}

void Instruments::record_response(ResourceType type, std::size_t bytes) {
  series_.record(
      Metric::kXdsResponseBytes, {std::string(to_string(type))}, static_cast<double>(bytes));
}

void Instruments::set_xds_resources(ResourceType type,
                                    absl::string_view cache_state,
                                    std::uint64_t count) {
  series_.set(Metric::kXdsResources,
              {std::string(to_string(type)), std::string(cache_state)},
              static_cast<double>(count));
}

void Instruments::count_config_rejected(absl::string_view reason, std::uint64_t times) {
  series_.add(Metric::kConfigRejected, {std::string(reason)}, static_cast<double>(times));
}

void Instruments::count_admin_refused(AdminLimit limit, std::uint64_t times) {
  series_.add(
      Metric::kAdminRefused, {label_of(kAdminLimitLabels, limit)}, static_cast<double>(times));
}

void Instruments::count_log_lines_lost(std::uint64_t lines) {
  series_.add(Metric::kLogLinesLost, {}, static_cast<double>(lines));
}

void Instruments::count_recording_dropped(std::uint64_t events) {
  series_.add(Metric::kRecordingDropped, {}, static_cast<double>(events));
}

void Instruments::count_recording_late(std::uint64_t attempts) {
  series_.add(Metric::kRecordingLate, {}, static_cast<double>(attempts));
}

void Instruments::count_actor_death(absl::string_view actor, absl::string_view reason) {
  series_.add(Metric::kActorDeaths, {std::string(actor), std::string(reason)}, 1);
}

void Instruments::set_config_generation(absl::string_view target, Generation generation) {
  series_.set(Metric::kConfigGeneration, {std::string(target)}, static_cast<double>(generation));
}

void Instruments::record_applied(absl::string_view target,
                                 Duration application,
                                 std::optional<Duration> propagation,
                                 std::chrono::system_clock::time_point now) {
  const LabelValues labels{std::string(target)};
  series_.set(Metric::kConfigLastApplied,
              labels,
              std::chrono::duration<double>(now.time_since_epoch()).count());
  series_.record(Metric::kConfigApplyDuration, labels, seconds(application));
  if (propagation) series_.record(Metric::kConfigPropagation, labels, seconds(*propagation));
}

void Instruments::add_policies(absl::string_view policy, int amount) {
  series_.add(Metric::kPolicies, {std::string(policy)}, amount);
}

void Instruments::add_subchannels(ConnectivityState state, int amount) {
  series_.add(Metric::kSubchannels, {label_of(kConnectivity, state)}, amount);
}

void Instruments::add_connections(const ClusterName& cluster, int amount) {
  // As in count_endpoints(), a series that begins later begins with the right number.
  const std::lock_guard lock(registry_mutex_);
  const auto sum = connections_.try_emplace(cluster).first;
  sum->second += amount;
  series_.set(Metric::kConnectionsOpen, {cluster.str()}, static_cast<double>(sum->second));
  if (sum->second == 0) connections_.erase(sum);
}

std::shared_ptr<const void> Instruments::hold_cluster(const ClusterName& cluster) {
  {
    const std::lock_guard lock(registry_mutex_);
    if (now_() - swept_ >= kSweepEvery) forget_gone();
    ++cluster_holders_[cluster];
    gone_.erase(cluster.str());
  }
  return {this, [this, cluster](const void*) { let_go_of(cluster); }};
}

std::shared_ptr<const void> Instruments::hold_load(const TierLoad& load) {
  const LabelValues tier = tier_labels(load.cluster, load.leaf, load.priority);
  const std::lock_guard lock(registry_mutex_);
  const std::uint64_t claim = ++loads_claimed_;
  tier_loads_[tier][claim] = *load.percent;
  series_.set(Metric::kTierLoad, tier, *load.percent);
  return {this, [this, tier, claim](const void*) {
            const std::lock_guard lock_again(registry_mutex_);
            const auto claims = tier_loads_.find(tier);
            claims->second.erase(claim);
            if (!claims->second.empty())
              return series_.set(Metric::kTierLoad, tier, claims->second.rbegin()->second);
            tier_loads_.erase(claims);
            series_.forget_one(Metric::kTierLoad, tier);
          }};
}

void Instruments::let_go_of(const ClusterName& cluster) {
  const std::lock_guard lock(registry_mutex_);
  const auto found = cluster_holders_.find(cluster);
  if (--found->second > 0) return;
  cluster_holders_.erase(found);
  gone_.emplace(cluster.str(), now_());
  priorities_.erase(cluster);
  endpoints_.erase(cluster);
  sessions_held_.erase(cluster);
  series_.forget(Metric::kPriorityActive, cluster.str());
  series_.forget(Metric::kEndpoints, cluster.str());
  series_.forget(Metric::kAffinityHeld, cluster.str());
}

// --- from the path of calls -----------------------------------------------

std::shared_ptr<const CallStats> Instruments::call_stats(absl::string_view target,
                                                         const ClusterName& cluster,
                                                         const ClusterName& aggregate) {
  if (calls_ == CallMetrics::kOff) return nullptr;
  const std::lock_guard lock(registry_mutex_);
  CallKey key{std::string(target), cluster, aggregate};
  const auto found = call_stats_.find(key);
  if (found != call_stats_.end()) return found->second;
  if (call_stats_.size() >= kMaxSeries) {
    series_.count_overflow(Metric::kRpcsStarted);
    key = {std::string(kOther), ClusterName(std::string(kOther)), {}};
  }
  auto& stats = call_stats_[std::move(key)];
  if (stats == nullptr) stats = std::make_shared<const CallStats>(duration_bounds(scale_));
  return stats;
}

std::shared_ptr<const CallerStats> Instruments::caller_stats(absl::string_view target) {
  if (calls_ == CallMetrics::kOff) return nullptr;
  const std::lock_guard lock(registry_mutex_);
  std::string key(target);
  if (caller_stats_.size() >= kMaxSeries && !caller_stats_.contains(key)) {
    series_.count_overflow(Metric::kCalls);
    key = std::string(kOther);
  }
  auto& stats = caller_stats_[std::move(key)];
  if (stats == nullptr) stats = std::make_shared<const CallerStats>(duration_bounds(scale_));
  return stats;
}

// A code, or a reason for a wait, that never occurred has no series. OK always has a series.
std::vector<Family> Instruments::collect_callers() const {
  Family calls{&row_of(Metric::kCalls), {}};
  Family durations{&row_of(Metric::kCallDuration), {}, bounds_of(Buckets::kLatency, scale_)};
  Family waits{&row_of(Metric::kPickWait), {}, bounds_of(Buckets::kLatency, scale_)};

  const std::lock_guard lock(registry_mutex_);
  for (const auto& [target, stats] : caller_stats_) {
    for (std::size_t code = 0; code < kStatusCodes; ++code) {
      const std::int64_t count = stats->calls(code);
      if (code == 0 || count != 0)
        calls.series.push_back(one({target, std::string(kCodes[code])}, count));
    }
    durations.series.push_back(one({target}, stats->durations().counts()));
    each_delay_type([&](const DelayType& type) {
      if (const StripedHistogram* const waited = stats->waits_of(type))
        waits.series.push_back(one({target, to_string(type)}, waited->counts()));
    });
  }
  return {calls, durations, waits};
}

EventCountPtr Instruments::drops(const ClusterName& cluster, absl::string_view category) {
  const std::lock_guard lock(registry_mutex_);
  std::pair key(cluster, std::string(category));
  if (drops_.size() >= kMaxSeries && !drops_.contains(key)) {
    series_.count_overflow(Metric::kDrops);
    key = {ClusterName(std::string(kOther)), std::string(kOther)};
  }
  EventCountPtr& count = drops_[std::move(key)];
  if (count == nullptr) count = std::make_shared<const EventCount>();
  return count;
}

EventCountPtr Instruments::breaker_drops(const ClusterName& cluster) {
  const std::lock_guard lock(registry_mutex_);
  const bool fits = breaker_drops_.size() < kMaxSeries || breaker_drops_.contains(cluster);
  if (!fits) series_.count_overflow(Metric::kCircuitBreakerDrops);
  EventCountPtr& count = breaker_drops_[fits ? cluster : ClusterName(std::string(kOther))];
  if (count == nullptr) count = std::make_shared<const EventCount>();
  return count;
}

EndpointCallsPtr Instruments::endpoint(const ClusterName& cluster, const Address& address) {
  const std::lock_guard lock(registry_mutex_);
  const std::pair key(cluster, address.str());
  if (const auto found = endpoint_calls_.find(key); found != endpoint_calls_.end())
    return found->second;
  if (endpoint_calls_.size() >= kMaxEndpoints)
    std::erase_if(endpoint_calls_, [](const auto& entry) { return entry.second.use_count() == 1; });
  if (endpoint_calls_.size() >= kMaxEndpoints) {
    series_.count_overflow(Metric::kEndpointRpcs);
    return nullptr;
  }
  return endpoint_calls_[key] = std::make_shared<const EndpointCalls>();
}

EndpointCallsPtr Instruments::other_endpoints(const ClusterName& cluster) {
  const std::lock_guard lock(registry_mutex_);
  const bool fits = other_endpoints_.size() < kMaxSeries || other_endpoints_.contains(cluster);
  if (!fits) series_.count_overflow(Metric::kEndpointRpcs);
  EndpointCallsPtr& calls = other_endpoints_[fits ? cluster : ClusterName(std::string(kOther))];
  if (calls == nullptr) calls = std::make_shared<const EndpointCalls>();
  return calls;
}

// An endpoint with counters of its own always has a series for OK, even without calls. The sum of
// all further endpoints, "other", has series only for codes that occurred.
std::vector<Family> Instruments::collect_endpoints() const {
  Family family{&row_of(Metric::kEndpointRpcs), {}};
  const auto add = [&](const ClusterName& cluster,
                       const std::string& endpoint,
                       const EndpointCalls& calls,
                       bool shows_zero) {
    for (std::size_t code = 0; code < kStatusCodes; ++code) {
      const std::int64_t count = calls.sum(code);
      if (count != 0 || (shows_zero && code == 0))
        family.series.push_back(one({cluster.str(), endpoint, std::string(kCodes[code])}, count));
    }
  };
  const std::lock_guard lock(registry_mutex_);
  for (const auto& [key, calls] : endpoint_calls_)
    add(key.first, key.second, *calls, true);
  for (const auto& [cluster, calls] : other_endpoints_)
    add(cluster, std::string(kOther), *calls, false);
  return {family};
}

// Clusters beyond kMaxSeries get no gauge for their limit: limits of several clusters cannot be
// shown as one value of "other".
void Instruments::set_gate(const CircuitBreakerSet& seen) {
  const std::lock_guard lock(registry_mutex_);
  if (gates_.size() >= kMaxSeries && !gates_.contains(seen.cluster)) {
    std::erase_if(gates_, [](const auto& entry) {
      return std::ranges::all_of(entry.second, [](const auto& gate) { return gate.expired(); });
    });
  }
  if (gates_.size() >= kMaxSeries && !gates_.contains(seen.cluster)) {
    series_.count_overflow(Metric::kCircuitBreakerLimit);
    return;
  }
  auto& gates = gates_[seen.cluster];
  std::erase_if(gates, [](const auto& gate) { return gate.expired(); });
  gates.emplace_back(seen.gate);
}

std::vector<Family> Instruments::collect_drops() const {
  Family drops{&row_of(Metric::kDrops), {}};
  Family breaker_drops{&row_of(Metric::kCircuitBreakerDrops), {}};
  Family limits{&row_of(Metric::kCircuitBreakerLimit), {}};
  Family open{&row_of(Metric::kCircuitBreakerOpen), {}};

  const std::lock_guard lock(registry_mutex_);
  for (const auto& [key, count] : drops_)
    drops.series.push_back(one({key.first.str(), key.second}, count->sum(0)));
  for (const auto& [cluster, count] : breaker_drops_)
    breaker_drops.series.push_back(one({cluster.str()}, count->sum(0)));
  for (const auto& [cluster, gates] : gates_) {
    CallGatePtr newest;
    bool is_full = false;
    for (const auto& gate : gates) {
      const CallGatePtr living = gate.lock();
      if (living == nullptr) continue;
      is_full |= living->is_full();
      newest = living;
    }
    if (newest == nullptr) continue;
    limits.series.push_back(one({cluster.str()}, newest->limit()));
    open.series.push_back(one({cluster.str()}, is_full ? 1 : 0));
  }
  return {drops, open, limits, breaker_drops};
}

std::shared_ptr<const ActorStats> Instruments::actor_stats(absl::string_view actor) {
  const std::lock_guard lock(registry_mutex_);
  auto& stats = actor_stats_[std::string(actor)];
  if (stats == nullptr) stats = std::make_shared<const ActorStats>(duration_bounds(scale_));
  return stats;
}

std::vector<Family> Instruments::collect_actors() const {
  Family messages{&row_of(Metric::kActorMessages), {}};
  Family mailboxes{&row_of(Metric::kActorMailbox), {}};
  Family durations{&row_of(Metric::kActorHandleDuration), {}, bounds_of(Buckets::kLatency, scale_)};

  const std::lock_guard lock(registry_mutex_);
  for (const auto& [actor, stats] : actor_stats_) {
    messages.series.push_back(one({actor}, stats->messages()));
    mailboxes.series.push_back(one({actor}, stats->take_longest()));
    durations.series.push_back(one({actor}, stats->durations().counts()));
  }
  return {messages, mailboxes, durations};
}

void Instruments::watch_certificates(absl::string_view place,
                                     std::function<std::optional<CertificateEnds>()> ends) {
  const std::lock_guard lock(registry_mutex_);
  certificates_.push_back(std::make_shared<const WatchedCertificates>(
      WatchedCertificates{std::string(place), std::move(ends)}));
}

void Instruments::count_certificate_failure(absl::string_view place, std::uint64_t times) {
  series_.add(Metric::kCertificateFailures, {std::string(place)}, static_cast<double>(times));
}

// Several certificates may have one role (the label). The gauge shows the earliest expiry of them.
std::vector<Family> Instruments::collect_certificates() const {
  std::map<std::string, CertificateEnds::Time> first;
  const auto note = [&](const std::string& role, const std::optional<CertificateEnds::Time>& end) {
    if (!end) return;
    const auto [known, is_new] = first.emplace(role, *end);
    if (!is_new) known->second = std::min(known->second, *end);
  };
  std::vector<std::shared_ptr<const WatchedCertificates>> watched;
  {
    const std::lock_guard lock(registry_mutex_);
    watched = certificates_;
  }
  // ends() may read files and call the program's log function, which may ask for metrics. So no
  // lock is held while ends() runs.
  const auto lasting = std::ranges::stable_partition(watched, [&](const auto& one) {
    const std::optional<CertificateEnds> ends = one->ends();
    if (!ends) return true;
    note(one->place + "_identity", ends->identity);
    note(one->place + "_root", ends->roots);
    return false;
  });
  if (lasting.begin() != watched.begin()) {
    const std::lock_guard lock(registry_mutex_);
    for (auto gone = watched.begin(); gone != lasting.begin(); ++gone)
      std::erase(certificates_, *gone);
  }
  Family family{&row_of(Metric::kCertificateExpiry), {}};
  for (const auto& [role, end] : first) {
    family.series.push_back(
        {{role}, std::chrono::duration<double>(end.time_since_epoch()).count(), {}});
  }
  return {family};
}

EventCountPtr Instruments::pick_failures(absl::string_view policy) {
  const std::lock_guard lock(registry_mutex_);
  return count_of(pick_failures_, policy);
}

EventCountPtr Instruments::filter_failures(absl::string_view filter) {
  const std::lock_guard lock(registry_mutex_);
  return count_of(filter_failures_, filter);
}

std::vector<Family> Instruments::collect_calls() const {
  TargetFamilies targets;
  ClusterFamilies clusters;
  clusters.durations.bounds = bounds_of(Buckets::kLatency, scale_);
  Family faults{&row_of(Metric::kFaultsInjected), {}};
  std::map<std::pair<ClusterName, ClusterName>, CallCounts> by_cluster;

  const std::lock_guard lock(registry_mutex_);
  for (const auto& [key, stats] : call_stats_) {
    const auto& [target, cluster, aggregate] = key;
    const CallCounts counts(*stats);
    targets.add(target, cluster.str(), aggregate.str(), counts);
    by_cluster[{cluster, aggregate}].add(counts);
  }
  for (const auto& [names, sum] : by_cluster)
    clusters.add(names.first.str(), names.second.str(), sum);
  faults.series.push_back(one({"delay"}, faults_->sum(kDelayFault)));
  faults.series.push_back(one({"abort"}, faults_->sum(kAbortFault)));
  return {targets.started,
          targets.completed,
          clusters.active,
          clusters.durations,
          clusters.picks,
          clusters.zones,
          clusters.retries,
          clusters.affinity,
          clusters.cookies,
          clusters.load_reports,
          family_of(Metric::kPickFailures, pick_failures_),
          family_of(Metric::kFilterFailures, filter_failures_),
          faults};
}

// --- clusters that are gone -------------------------------------------------

// Every cluster that has series or counters. Precondition: registry_mutex_ is locked.
std::set<std::string> Instruments::clusters_in_use() const {
  std::set<std::string> clusters = series_.values_of_label(kCluster.name);
  for (const auto& [key, stats] : call_stats_)
    clusters.insert({key.cluster.str(), key.aggregate.str()});
  for (const auto& [key, count] : drops_)
    clusters.insert(key.first.str());
  for (const auto& [cluster, count] : breaker_drops_)
    clusters.insert(cluster.str());
  for (const auto& [key, calls] : endpoint_calls_)
    clusters.insert(key.first.str());
  for (const auto& [cluster, calls] : other_endpoints_)
    clusters.insert(cluster.str());
  for (const auto& [cluster, gates] : gates_)
    clusters.insert(cluster.str());
  clusters.erase(std::string(kOther));
  clusters.erase("");  // The aggregate's name where there is no aggregate.
  return clusters;
}

// Erases the series and counters of clusters that have had no hold for kRetention. A late count for
// an erased cluster creates a series again; the cluster is then erased once more, kRetention later.
// Counters that a call or a policy still holds are not erased. Precondition: registry_mutex_ is
// locked.
void Instruments::forget_gone() const {
  const Instant now = now_();
  swept_ = now;
  std::map<std::string, Instant> gone;
  std::set<std::string> overdue;
  for (const std::string& cluster : clusters_in_use()) {
    if (cluster_holders_.contains(ClusterName(cluster))) continue;
    const auto known = gone_.find(cluster);
    const Instant since = known == gone_.end() ? now : known->second;
    gone.emplace(cluster, since);
    if (now - since >= kRetention) overdue.insert(cluster);
  }
  gone_ = std::move(gone);
  if (overdue.empty()) return;
  const auto is_overdue = [&](const ClusterName& cluster) {
    return overdue.contains(cluster.str());
  };
  std::erase_if(call_stats_, [&](const auto& entry) {
    const bool is_gone = is_overdue(entry.first.cluster) || is_overdue(entry.first.aggregate);
    return is_gone && entry.second.use_count() == 1;
  });
  std::erase_if(drops_, [&](const auto& entry) {
    return is_overdue(entry.first.first) && entry.second.use_count() == 1;
  });
  std::erase_if(breaker_drops_, [&](const auto& entry) {
    return is_overdue(entry.first) && entry.second.use_count() == 1;
  });
  std::erase_if(endpoint_calls_, [&](const auto& entry) {
    return is_overdue(entry.first.first) && entry.second.use_count() == 1;
  });
  std::erase_if(other_endpoints_, [&](const auto& entry) {
    return is_overdue(entry.first) && entry.second.use_count() == 1;
  });
  std::erase_if(gates_, [&](const auto& entry) {
    return is_overdue(entry.first) &&
           std::ranges::all_of(entry.second, [](const auto& gate) { return gate.expired(); });
  });
  series_.forget_all(kCluster.name, overdue);
}

std::vector<Family> Instruments::collect() const {
  {
    const std::lock_guard lock(registry_mutex_);
    forget_gone();
  }
  std::vector<Family> families = series_.collect();
  for (auto& some : {collect_calls(),
                     collect_callers(),
                     collect_drops(),
                     collect_endpoints(),
                     collect_actors(),
                     collect_certificates()}) {
    for (const Family& family : some) {
      if (!family.series.empty()) families.push_back(family);
    }
  }
  std::ranges::sort(families, {}, [](const Family& family) { return family.row->metric; });
  return families;
}

}  // namespace signalbox::metrics
