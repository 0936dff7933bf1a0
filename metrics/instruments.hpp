// SPDX-License-Identifier: Apache-2.0
//
// Instruments — the metrics of one runtime, and the one way to count in them.
//
//   cores ─▶ Observation ─▶ shells ─▶ observe() ─┐
//   shells ─▶ set_…, count_…, add_… ─────────────┼▶ [Instruments] ─▶ collect() ─▶ exporter
//   router, data plane ─▶ CallStats, CallerStats ┤
//   pickers ─▶ EventCount, gates ────────────────┘
//
// Thread-safe. Each runtime has its own Instruments, so several runtimes in a process do not mix.
// The path of calls never comes here: it holds CallStats, and their stripes are summed at
// collection.

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

  /// Returns the counters of this target's calls that `cluster` takes. `aggregate` is the route's
  /// cluster when the route's cluster differs from `cluster`. Repeated calls return the same object
  /// until the cluster is forgotten. Beyond kMaxSeries objects, new clusters share the object of
  /// "other". Null: calls are not counted.
  std::shared_ptr<const CallStats> call_stats(absl::string_view target,
                                              const ClusterName& cluster,
                                              const ClusterName& aggregate = {});

  /// Returns the counters of what the callers of this target see. Repeated calls return the same
  /// object. Beyond kMaxSeries objects, new targets share the object of "other". Null: calls are
  /// not counted.
  std::shared_ptr<const CallerStats> caller_stats(absl::string_view target);

  /// Repeated calls return the same object until the cluster is forgotten. Beyond kMaxSeries
  /// objects, new clusters share the object of "other".
  EventCountPtr drops(const ClusterName& cluster, absl::string_view category) override;
  EventCountPtr breaker_drops(const ClusterName& cluster) override;

  /// The first kMaxEndpoints endpoints have counters of their own. When there is no room, counters
  /// that are not held any more make room.
  EndpointCallsPtr endpoint(const ClusterName& cluster, const Address& address) override;
  EndpointCallsPtr other_endpoints(const ClusterName& cluster) override;

  /// Returns the counters for this kind of actor. Each kind has one object for the life of
  /// Instruments. The kinds are few and fixed, so their number has no limit here.
  std::shared_ptr<const ActorStats> actor_stats(absl::string_view actor);

  /// Every collection calls `ends`, on the collecting thread, until `ends` returns nullopt. `place`
  /// is where the certificates are used, "control_plane" or "endpoint"; the label `role` begins so.
  void watch_certificates(absl::string_view place,
                          std::function<std::optional<CertificateEnds>()> ends);

  /// Counts that certificate files of this place (as above) went bad. `times`: 0 makes the series
  /// known.
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

  /// A policy that reported the priority `reported` no longer chooses the cluster's priority: its
  /// report no longer counts.
  void forget_priority(const ClusterName& cluster, int reported);

  void set_xds_connected(absl::string_view server, bool connected);
  /// The server is not used any more, so its series ends.
  void forget_xds_connected(absl::string_view server);
  void count_updates(absl::string_view server,
                     ResourceType type,
                     std::uint64_t valid,
                     std::uint64_t invalid);
  /// Counts a stream to the server that has ended. `times`: 0 makes the series known.
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
  void count_actor_death(absl::string_view actor, absl::string_view reason);
  void set_config_generation(absl::string_view target, Generation generation);

  /// Picks see a configuration of the target for the first time. `application`: the time since the
  /// configuration was complete. `propagation`: the time since the last response that changed the
  /// configuration; nullopt: no response did.
  void record_applied(absl::string_view target,
                      Duration application,
                      std::optional<Duration> propagation,
                      std::chrono::system_clock::time_point now);

  /// Changes the number of live objects: +1 when an object begins or enters the state, -1 when it
  /// ends or leaves the state.
  void add_policies(absl::string_view policy, int amount);
  void add_subchannels(ConnectivityState state, int amount);
  void add_connections(const ClusterName& cluster, int amount);

  /// Returns a hold on the cluster; a cluster may have several holds. When the last hold ends, the
  /// gauges of the cluster's priority, endpoints and sessions end. All other series of the cluster
  /// end kRetention later, unless the cluster is held again. The holds must not outlive the object.
  std::shared_ptr<const void> hold_cluster(const ClusterName& cluster);

  /// States a tier's load. The statement holds as long as the returned object lives; a new load
  /// needs a new call. The gauge shows the newest statement that still holds, and ends with the
  /// last statement. Precondition: `load` has a percentage.
  std::shared_ptr<const void> hold_load(const TierLoad& load);

  /// Everything to export, now. Forgets clusters that have been gone for kRetention.
  std::vector<Family> collect() const;

  /// This time is long enough for one or two scrapes to see the last values of a cluster.
  static constexpr Duration kRetention = std::chrono::minutes(1);
  /// The most endpoints that have a series of their own, over all clusters.
  static constexpr std::size_t kMaxEndpoints = 200;
  /// hold_cluster() forgets clusters, too, but at most this often: a program may never collect.
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
  // Mutable: collect() forgets clusters that are gone.
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
  /// One gate for each policy that serves the cluster. A gate that no picker leads to has expired.
  mutable std::map<ClusterName, std::vector<std::weak_ptr<const CallGate>>> gates_;
  std::map<ClusterName, std::size_t> cluster_holders_;
  /// The percentages of all statements that hold, in the order of the statements.
  std::map<LabelValues, std::map<std::uint64_t, std::uint32_t>> tier_loads_;
  std::uint64_t loads_claimed_ = 0;
  /// The sum over the cluster's subchannel maps, by the label `priority`.
  std::map<ClusterName, std::map<std::string, EndpointCounts>> endpoints_;
  /// The sum over the cluster's subchannel maps.
  std::map<ClusterName, std::int64_t> sessions_held_;
  /// How many trees use each priority of a cluster; -1: a tree has no priority.
  std::map<ClusterName, std::map<int, std::size_t>> priorities_;
  std::map<std::string, std::shared_ptr<const ActorStats>> actor_stats_;
  mutable std::vector<std::shared_ptr<const WatchedCertificates>> certificates_;
  std::map<std::string, EventCountPtr> pick_failures_;
  std::map<std::string, EventCountPtr> filter_failures_;
  const FaultCountPtr faults_ = std::make_shared<const FaultCount>();
};

}  // namespace signalbox::metrics
