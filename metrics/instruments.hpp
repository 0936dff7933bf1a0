// SPDX-License-Identifier: Apache-2.0
//
// Instruments — the metrics of one runtime. The parts of the runtime count here.
//
//   cores ─▶ Observation ─▶ shells ─▶ observe() ─┐
//   shells ─▶ set_…, count_…, add_… ─────────────┼▶ [Instruments] ─▶ collect() ─▶ exporter
//   router, data plane ─▶ CallStats, CallerStats ┤
//   pickers ─▶ EventCount, gates ────────────────┘
//
// Thread-safe. Each runtime has its own Instruments, so several runtimes in a process do not mix.
// Code on the path of calls never uses Instruments, which takes a lock. It counts in objects that
// Instruments has handed out before (CallStats, CallerStats, EventCount, EndpointCalls,
// FaultCount); collect() sums the counters of these.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

#include "messages/admin_limit.hpp"
#include "messages/certificate_ends.hpp"
#include "messages/connectivity.hpp"
#include "messages/counting/call_stats.hpp"
#include "messages/counting/caller_stats.hpp"
#include "messages/counting/drop_counts.hpp"
#include "messages/counting/endpoint_calls.hpp"
#include "messages/load_stream_events.hpp"
#include "messages/observation.hpp"
#include "messages/resource.hpp"
#include "messages/xds_events.hpp"
#include "metrics/actor_stats.hpp"
#include "metrics/series.hpp"

namespace signalbox::metrics {

/// Whether calls are counted and timed.
enum class CallMetrics : std::uint8_t { kOn, kOff };

class Instruments final : public DropCounters, public EndpointCounters {
 public:
  using Clock = std::function<Instant()>;

  explicit Instruments(Clock now = std::chrono::steady_clock::now,
                       LatencyScale scale = LatencyScale::kShort,
                       CallMetrics calls = CallMetrics::kOn);

  void observe(const Observation& observation);

  /// Returns the counters of this target's calls that `cluster` takes. `aggregate`: the cluster of
  /// the route, if that is an aggregate and `cluster` its leaf; else empty. Repeated calls return
  /// the same object until the cluster is forgotten (see hold_cluster()). Beyond kMaxSeries
  /// objects, new targets and clusters share the object of "other". Null: calls are not counted.
  std::shared_ptr<const CallStats> call_stats(absl::string_view target,
                                              const ClusterName& cluster,
                                              const ClusterName& aggregate = {});

  /// Returns the counters of what the callers of this target see. Repeated calls return the same
  /// object. Beyond kMaxSeries objects, new targets share the object of "other". Null: calls are
  /// not counted.
  std::shared_ptr<const CallerStats> caller_stats(absl::string_view target);

  /// Counters of calls that the cluster dropped: by a drop category, or by its limit of concurrent
  /// calls. Repeated calls return the same object until the cluster is forgotten (hold_cluster()).
  /// Beyond kMaxSeries objects, new clusters and categories share the object of "other".
  EventCountPtr drops(const ClusterName& cluster, absl::string_view category) override;
  EventCountPtr breaker_drops(const ClusterName& cluster) override;

  /// Returns the counters of one endpoint's calls. At most kMaxEndpoints endpoints have counters of
  /// their own. At this limit, counters that nothing else holds any more are erased first. Null:
  /// all counters are held, and the endpoint is counted in other_endpoints().
  EndpointCallsPtr endpoint(const ClusterName& cluster, const Address& address) override;
  EndpointCallsPtr other_endpoints(const ClusterName& cluster) override;

  /// Returns the counters for this kind of actor. Each kind has one object for the life of
  /// Instruments. The kinds are few and fixed, so their number has no limit here.
  std::shared_ptr<const ActorStats> actor_stats(absl::string_view actor);

  /// Exports when certificates expire. Every collection calls `ends`, on the collecting thread,
  /// until `ends` returns nullopt because the certificates are no longer used. `place`:
  /// "control_plane" or "endpoint", with which the value of the label `role` begins.
  void watch_certificates(absl::string_view place,
                          std::function<std::optional<CertificateEnds>()> ends);

  /// Counts that certificate files of `place` (see watch_certificates()) became invalid. With
  /// `times` 0, the series is exported with the value 0.
  void count_certificate_failure(absl::string_view place, std::uint64_t times = 1);

  /// Returns the counter of failed picks for this custom policy. Each policy has one counter for
  /// the life of Instruments. The program registers the policies, so their number has no limit
  /// here.
  EventCountPtr pick_failures(absl::string_view policy);

  /// Returns the counter of failures for this custom filter. Each filter has one counter for the
  /// life of Instruments.
  EventCountPtr filter_failures(absl::string_view filter);

  /// Returns the counter that all fault filters share. It is one object for the life of
  /// Instruments.
  const FaultCountPtr& faults() const { return faults_; }

  /// A policy that has reported `reported` as the cluster's priority has ended, so its report no
  /// longer counts.
  void forget_priority(const ClusterName& cluster, int reported);

  void set_xds_connected(absl::string_view server, bool connected);
  /// The server is not used any more, so its series ends.
  void forget_xds_connected(absl::string_view server);
  void count_updates(absl::string_view server,
                     ResourceType type,
                     std::uint64_t valid,
                     std::uint64_t invalid);
  /// Counts the end of an ADS stream to the server. With `times` 0, the series is exported with the
  /// value 0.
  void count_stream_end(absl::string_view server, StreamEnd how, std::uint64_t times = 1);
  /// As count_stream_end(), for streams of load reports.
  void count_load_stream_end(absl::string_view server, StreamEnd how, std::uint64_t times = 1);
  void count_load_report_sent(absl::string_view server);
  /// Counts a load report that an endpoint sent on a stream of its own.
  void count_streamed_load_report(LoadReportResult result);
  void count_endpoint_load_stream(LoadStreamEnd how);
  void record_response(ResourceType type, std::size_t bytes);
  void set_xds_resources(ResourceType type, absl::string_view cache_state, std::uint64_t count);
  void count_config_rejected(absl::string_view reason, std::uint64_t times = 1);
  /// With `times` 0, the series is exported with the value 0.
  void count_admin_refused(AdminLimit limit, std::uint64_t times = 1);
  /// With `lines` 0, the series is exported with the value 0.
  void count_log_lines_lost(std::uint64_t lines);
  /// With `events` 0, the series is exported with the value 0.
  void count_recording_dropped(std::uint64_t events);
  /// With `attempts` 0, the series is exported with the value 0.
  void count_recording_late(std::uint64_t attempts);
  void count_actor_death(absl::string_view actor, absl::string_view reason);
  void set_config_generation(absl::string_view target, Generation generation);

  /// A configuration of the target is in use by picks from now on. `application`: the time since
  /// the configuration was complete. `propagation`: the time since the last response that changed
  /// the configuration; nullopt: no response changed it.
  void record_applied(absl::string_view target,
                      Duration application,
                      std::optional<Duration> propagation,
                      std::chrono::system_clock::time_point now);

  /// Change gauges of existing objects: `amount` is +1 when an object begins or enters the state,
  /// and -1 when it ends or leaves the state.
  void add_policies(absl::string_view policy, int amount);
  void add_subchannels(ConnectivityState state, int amount);
  void add_connections(const ClusterName& cluster, int amount);

  /// Returns a hold on the cluster, which an actor keeps as long as it uses the cluster. A cluster
  /// may have several holds. When the last hold ends, the gauges of the cluster's priority,
  /// endpoints and sessions end. Unless the cluster is held again, the first sweep (in collect() or
  /// hold_cluster()) that comes kRetention later or after that forgets it: its other series end,
  /// except counters that a call or a policy still holds. The holds must not outlive this
  /// Instruments.
  std::shared_ptr<const void> hold_cluster(const ClusterName& cluster);

  /// Sets the gauge of the load of one priority of one leaf (tiered mode) as long as the returned
  /// object lives. A changed load needs a new call. Several policies may set the same gauge: it
  /// shows the load of the newest object that still lives, and ends with the last object.
  /// Precondition: `load` has a percentage.
  std::shared_ptr<const void> hold_load(const TierLoad& load);

  /// The metrics to export, now; those of the process are not among them (metrics/process). Also
  /// forgets clusters that have had no hold for kRetention, and begins a new maximum for each
  /// actor kind's mailbox.
  std::vector<Family> collect() const;

  /// How long a cluster without a hold keeps its other series (hold_cluster()): one or two scrapes
  /// must see their last values.
  static constexpr Duration kRetention = std::chrono::minutes(1);
  /// The most endpoints that have a series of their own, over all clusters.
  static constexpr std::size_t kMaxEndpoints = 200;
  /// hold_cluster() forgets clusters, too, because a program may never call collect(). It does so
  /// at most once in this time.
  static constexpr Duration kSweepEvery = std::chrono::seconds(10);

 private:
  void forget_gone() const;
  std::set<std::string> clusters_in_use() const;
  void let_go_of(const ClusterName& cluster);
  void count_endpoints(const EndpointsCounted& seen);
  void count_held(const SessionsHeld& seen);
  void move_priority(const ClusterName& cluster, std::optional<int> from, std::optional<int> to);

  struct CallKey {
    std::string target;
    ClusterName cluster;
    ClusterName aggregate;

    friend auto operator<=>(const CallKey&, const CallKey&) = default;
  };

  struct WatchedCertificates {
    std::string place;
    std::function<std::optional<CertificateEnds>()> ends;
  };

  std::vector<Family> collect_certificates() const;
  std::vector<Family> collect_actors() const;
  std::vector<Family> collect_calls() const;
  std::vector<Family> collect_callers() const;
  std::vector<Family> collect_drops() const;
  std::vector<Family> collect_endpoints() const;
  void set_gate(const CircuitBreakerSet& seen);

  const Clock now_;
  const LatencyScale scale_;
  const CallMetrics calls_;
  // Mutable, because collect() is const and forgets clusters without a hold.
  mutable SeriesTable series_;
  mutable std::mutex registry_mutex_;
  mutable std::map<CallKey, std::shared_ptr<const CallStats>> call_stats_;
  std::map<std::string, std::shared_ptr<const CallerStats>> caller_stats_;
  mutable std::map<std::pair<ClusterName, std::string>, EventCountPtr> drops_;
  mutable std::map<ClusterName, EventCountPtr> breaker_drops_;
  mutable std::map<std::pair<ClusterName, std::string>, EndpointCallsPtr> endpoint_calls_;
  mutable std::map<ClusterName, EndpointCallsPtr> other_endpoints_;
  mutable std::map<std::string, Instant> gone_;  ///< Clusters without a hold, and since when.
  mutable Instant swept_{};                      ///< When forget_gone() last ran.
  /// The cluster's limits of concurrent calls, the newest last: the CallGate of each policy that
  /// serves the cluster, and earlier gates of these policies. A policy and its pickers own a gate:
  /// when none of them has it any more, it has expired.
  mutable std::map<ClusterName, std::vector<std::weak_ptr<const CallGate>>> gates_;
  std::map<ClusterName, std::size_t> cluster_holders_;
  /// For each gauge of a load (keys: its labels): the percentages of the living objects of
  /// hold_load(). The newest is last.
  std::map<LabelValues, std::map<std::uint64_t, std::uint32_t>> tier_loads_;
  std::uint64_t loads_claimed_ = 0;
  /// Subchannels by state, summed over the cluster's subchannel maps. The inner key is the label
  /// `priority`.
  std::map<ClusterName, std::map<std::string, EndpointCounts>> endpoints_;
  /// Subchannels that are held only for sessions, summed over the cluster's subchannel maps.
  std::map<ClusterName, std::int64_t> sessions_held_;
  /// Established connections; no cluster has 0.
  std::map<ClusterName, std::int64_t> connections_;
  /// How many policies use each priority of a cluster; -1: the policy has no usable priority.
  std::map<ClusterName, std::map<int, std::size_t>> priorities_;
  std::map<std::string, std::shared_ptr<const ActorStats>> actor_stats_;
  mutable std::vector<std::shared_ptr<const WatchedCertificates>> certificates_;
  std::map<std::string, EventCountPtr> pick_failures_;
  std::map<std::string, EventCountPtr> filter_failures_;
  const FaultCountPtr faults_ = std::make_shared<const FaultCount>();
};

}  // namespace signalbox::metrics
