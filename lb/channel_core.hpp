// SPDX-License-Identifier: Apache-2.0
//
// channel_core — applies configurations to one target (gRFC A31). Publishes routes together with
// the clusters that they name. Removes a cluster only when no call can refer to it any more.
//
//   XdsConfig ─▶ ApplyToRoot{g} ─▶ (policy tree) ─▶ RootPublished{≥ g} ─▶ PublishSnapshot
//   SnapshotGracePassed, the timer "scan" ─▶ unused clusters leave the tree ─▶ ApplyToRoot{g+1}
//
// Invariants
//   C1  clusters(selector) ⊆ clusters(picker) in every published snapshot (A31-7, A31-18).
//   C2  A cluster leaves the tree only when no pick can read a selector that names it, and no call
//       refers to it (A31-14, A31-15).
//   C3  The last published snapshot serves until a newer snapshot is complete, even if the
//       channel's or the root's actor restarts meanwhile.
//   C4  When no snapshot serves, and the policy tree died with each configuration that it was
//       given, calls fail. They do not wait for a configuration that cannot come.
//
// Core of the channel actor; one per target.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "lb/pick/snapshot_cell.hpp"
#include "lb/route/config_selector.hpp"
#include "messages/lb_events.hpp"

namespace signalbox::lb {

// --- events (beside TimerFired, IdleExitRequested and RebuildDue) -----------

/// A configuration, or only new notes (texts for errors). If `config` is the same pointer as
/// before, only the notes are new, and the policy tree gets no update.
struct XdsConfigArrived {
  XdsConfigPtr config;
  ResolutionNotesPtr notes = nullptr;
  ConfigOrigin origin = {};
};

/// The target has no configuration, or none any more; `status` says why.
struct XdsConfigLost {
  absl::Status status;
};

/// The root of the policy tree has published a state and a picker.
struct RootPublished {
  ConnectivityState state = ConnectivityState::kIdle;
  PickerPtr picker;
  Generation generation = 0;
};

/// The root's actor died, and will be restarted. Its last picker serves at least until the new root
/// reports READY or TRANSIENT_FAILURE, or answers the pending configuration.
struct RootDied {};

/// The root's actor has died with each configuration that it could be restarted with.
struct RootGivenUp {};

/// No reader can see the snapshot with this sequence number, or an earlier one, any more.
struct SnapshotGracePassed {
  std::uint64_t sequence = 0;
};

using ChannelEvent = std::variant<XdsConfigArrived,
                                  XdsConfigLost,
                                  RootPublished,
                                  RootDied,
                                  RootGivenUp,
                                  SnapshotGracePassed,
                                  TimerFired,
                                  IdleExitRequested,
                                  RebuildDue>;

// --- effects ----------------------------------------------------------------

struct ApplyToRoot {
  ConfigUpdated update;
};

struct ExitIdleRoot {};

/// Facts about a configuration, for metrics. They go with the configuration's first snapshot, which
/// makes the configuration usable for calls.
struct ConfigApplied {
  ConfigOrigin origin;
  /// The time from XdsConfigArrived to the configuration's first snapshot.
  Duration application{};
  /// The time from the control plane's response that changed the configuration to the
  /// configuration's first snapshot; nullopt: the change came from no response
  /// (ConfigOrigin::response_at).
  std::optional<Duration> propagation;
};

/// The snapshot to publish, and the channel's state with it.
struct PublishSnapshot {
  Snapshot snapshot;
  ConnectivityState state = ConnectivityState::kIdle;
  /// Set in the first snapshot of a configuration.
  std::optional<ConfigApplied> applied = std::nullopt;
};

/// Tells the watcher (the actor that makes each XdsConfig) which clusters must stay in the
/// XdsConfig.
struct ReferToClusters {
  std::set<ClusterName> clusters;
};

using ChannelEffect = std::
    variant<ApplyToRoot, ExitIdleRoot, PublishSnapshot, ReferToClusters, RebuildSoon, StartTimer>;
using ChannelEffects = std::vector<ChannelEffect>;

class ChannelCore {
 public:
  /// Makes the ClusterRef of a cluster. The object lives until its last owner has released it and
  /// its last call has ended.
  using MakeRef = std::function<ClusterRefPtr(const ClusterName&)>;

  /// `last`: the published snapshot. A restarted channel continues its sequence and generation
  /// numbers, and keeps its clusters, because calls may refer to them. `channel_id` (RequestHash)
  /// must be the same after a restart. `faults`: see make_config_selector.
  ChannelCore(MakeRef make_ref,
              const Snapshot& last,
              std::uint64_t channel_id = 0,
              FaultOptions faults = {});

  ChannelEffects step(const ChannelEvent& event, Instant now);

  /// How often the core checks whether calls still refer to clusters that are to be removed.
  static constexpr Duration kScanInterval = std::chrono::milliseconds(100);

 private:
  struct Routes {
    Generation generation = 0;
    ConfigSelectorPtr selector;  // Null: no configuration.
    std::set<ClusterName> clusters;
    absl::Status failure;
    ConfigOrigin origin;
    Instant arrived{};  // When XdsConfigArrived came.
  };

  /// A cluster that is in the policy tree, and what keeps it there.
  struct Kept {
    ClusterRefPtr ref;
    /// The sequence number of the last published snapshot with a selector that names the cluster.
    /// 0: there was no such snapshot. A restarted actor does not know that number, and uses the
    /// number of the last snapshot before its restart. Has no meaning while the current selector
    /// names the cluster.
    std::uint64_t selectable_until = 0;
  };

  void handle(const XdsConfigArrived& event);
  void handle(const XdsConfigLost& event);
  void handle(const RootPublished& event);
  void handle(const RootDied& event);
  void handle(const RootGivenUp& event);
  void handle(const SnapshotGracePassed& event);
  void handle(const TimerFired& event);
  void handle(const IdleExitRequested& event);
  void handle(const RebuildDue& event);

  void record_refs();
  void begin(Routes next);
  void publish_soon();
  void refer();
  void apply();
  void publish();
  void record_applied();
  void retire_clusters(const Routes& old);
  void drop_unreferenced();

  /// Whether calls use a picker that the policy tree sent to this ChannelCore. False: the tree has
  /// sent no picker yet, or calls still use the snapshot from before the channel's actor restarted.
  bool is_serving() const { return root_.picker != nullptr && !predecessor_serves_; }

  bool may_go(const ClusterName& name, const Kept& kept) const;
  XdsConfigPtr with_kept_clusters(const XdsConfigPtr& arrived) const;

  MakeRef make_ref_;
  std::uint64_t channel_id_;
  FaultOptions faults_;
  Instant now_{};  // The time of this step.
  Generation generation_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t grace_passed_ = 0;
  std::uint64_t scan_timer_ = 0;
  bool scan_pending_ = false;
  bool rebuild_pending_ = false;
  bool root_reviving_ = false;
  bool predecessor_serves_ = false;  // Calls still use the snapshot from before the restart (C3).
  XdsConfigPtr arrived_;             // The newest configuration, as received; null: none.
  XdsConfigPtr xds_;
  ResolutionNotesPtr notes_;
  ClusterRefs refs_;  // Kept::ref of each cluster in kept_, for make_config_selector.
  std::shared_ptr<const ClusterRefs> published_refs_;  // A copy of refs_, for snapshots.
  std::map<ClusterName, Kept> kept_;
  Routes current_;
  std::optional<Routes> pending_;
  RootPublished root_;
  ChannelEffects effects_;
};

}  // namespace signalbox::lb
