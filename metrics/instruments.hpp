// SPDX-License-Identifier: Apache-2.0
//
// Instruments — what one runtime counts: the door through which everything reaches its metrics.
//
//   cores ─▶ Observation ─▶ shells ─▶ observe() ─┐
//   shells ─▶ set_…, count_…, add_… ─────────────┼▶ [Instruments] ─▶ collect() ─▶ exporter
//   router, data plane ─▶ CallStats ─────────────┤
//   pickers ─▶ EventCount, gates ────────────────┘
//
// Thread-safe. A runtime has one of its own, so several runtimes in a process do not mix. The
// path of calls never comes here: it holds its CallStats, whose stripes are summed at collection.

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

#include "messages/connectivity.hpp"
#include "messages/counting/call_stats.hpp"
#include "messages/counting/drop_counts.hpp"
#include "messages/observation.hpp"
#include "messages/resource.hpp"
#include "metrics/series.hpp"

namespace signalbox::metrics {

/// Messages that actors of one kind have handled; add(0, 1) for each.
using MessageCount = StripedCounters<1>;

class Instruments final : public DropCounters {
 public:
  using Clock = std::function<Instant()>;

  explicit Instruments(Clock now = std::chrono::steady_clock::now);

  void observe(const Observation& observation);

  /// The counters of this target's calls that `cluster` takes; `aggregate`: what routes name, where
  /// that is not `cluster`. The same ones for as long as the Instruments live. Beyond kMaxSeries of
  /// them, newcomers share those of "other".
  std::shared_ptr<const CallStats> call_stats(absl::string_view target,
                                              const ClusterName& cluster,
                                              const ClusterName& aggregate = {});

  /// As long as the Instruments live. Beyond kMaxSeries of them, newcomers share those of "other".
  EventCountPtr drops(const ClusterName& cluster, absl::string_view category) override;
  EventCountPtr breaker_drops(const ClusterName& cluster) override;

  /// The count of this kind of actor: the same one for as long as the Instruments live. Kinds are
  /// few and fixed.
  std::shared_ptr<const MessageCount> actor_messages(absl::string_view actor);

  /// The count of this custom policy: the same one for as long as the Instruments live. Policies
  /// are those that the program registers.
  EventCountPtr pick_failures(absl::string_view policy);

  /// The count of this custom filter, in the same way.
  EventCountPtr filter_failures(absl::string_view filter);

  /// Of all fault filters: the same one for as long as the Instruments live.
  const FaultCountPtr& faults() const { return faults_; }

  /// Who told this PriorityActive decides for the cluster no more.
  void forget_priority(const ClusterName& cluster, int told);

  void set_xds_connected(absl::string_view server, bool connected);
  /// The server is not asked any more: it is neither connected nor not.
  void forget_xds_connected(absl::string_view server);
  void count_updates(absl::string_view server,
                     ResourceType type,
                     std::uint64_t valid,
                     std::uint64_t invalid);
  void set_xds_resources(ResourceType type, absl::string_view cache_state, std::uint64_t count);
  void count_config_rejected(absl::string_view reason, std::uint64_t times = 1);
  void count_actor_death(absl::string_view actor, absl::string_view reason);
  void set_config_generation(absl::string_view target, Generation generation);

  /// Live objects: +1 when one begins (or enters the state), -1 when it ends (or leaves it).
  void add_policies(absl::string_view policy, int amount);
  void add_subchannels(ConnectivityState state, int amount);
  void add_connections(const ClusterName& cluster, int amount);

  /// Whoever serves a cluster holds this; several may, each for itself. When the last lets go, the
  /// cluster's gauges end; all else of the cluster ends kRetention later, unless it is held again.
  /// The Instruments outlive what they hand out.
  std::shared_ptr<const void> hold_cluster(const ClusterName& cluster);

  /// What somebody says of a tier's load, for as long as he holds this; to say something else, he
  /// gets another one. Of several words the one that was said last is shown; with the last one the
  /// gauge ends. Precondition: `load` has a percentage.
  std::shared_ptr<const void> hold_load(const TierLoad& load);

  /// All that there is to export, now. Forgets clusters that have been gone for kRetention.
  std::vector<Family> collect() const;

  /// A scrape or two still see how a cluster ended.
  static constexpr Duration kRetention = std::chrono::minutes(1);
  /// Where nothing is collected, so often at most.
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

  std::vector<Family> collect_calls() const;
  std::vector<Family> collect_drops() const;
  void set_gate(const CircuitBreakerSet& seen);

  const Clock now_;
  // Mutable: collect() forgets what is gone.
  mutable SeriesTable series_;
  mutable std::mutex registry_mutex_;
  mutable std::map<CallKey, std::shared_ptr<const CallStats>> call_stats_;
  mutable std::map<std::pair<ClusterName, std::string>, EventCountPtr> drops_;
  mutable std::map<ClusterName, EventCountPtr> breaker_drops_;
  mutable std::map<std::string, Instant> gone_;  ///< Clusters that nothing holds, and since when.
  mutable Instant swept_{};                      ///< When forget_gone() looked last.
  /// One for each policy that serves the cluster; those that no picker leads to have expired.
  mutable std::map<ClusterName, std::vector<std::weak_ptr<const CallGate>>> gates_;
  std::map<ClusterName, std::size_t> cluster_holders_;
  /// Percentages by the order in which they were said.
  std::map<LabelValues, std::map<std::uint64_t, std::uint32_t>> tier_loads_;
  std::uint64_t loads_said_ = 0;
  std::map<ClusterName, EndpointCounts> endpoints_;               // Over all maps of the cluster.
  std::map<ClusterName, std::int64_t> sessions_held_;             // The same.
  std::map<ClusterName, std::map<int, std::size_t>> priorities_;  // How many trees use which.
  std::map<std::string, std::shared_ptr<const MessageCount>> actor_messages_;
  std::map<std::string, EventCountPtr> pick_failures_;
  std::map<std::string, EventCountPtr> filter_failures_;
  const FaultCountPtr faults_ = std::make_shared<const FaultCount>();
};

}  // namespace signalbox::metrics
