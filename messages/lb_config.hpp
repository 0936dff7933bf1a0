// SPDX-License-Identifier: Apache-2.0
//
// LbConfig — the policy tree as data: one struct per policy, LbConfig a variant of them.
//
//   xds/parse, lb/tree/cluster_tree ─▶ [LbConfig] ─▶ lb::make_policy, Policy::step(ConfigUpdated)
//
// A policy is one struct and one row of the variant. The struct has the policy's name, and says
// when two configurations are equal in meaning: member by member, children included (Deep). The
// struct of a policy of endpoints also has the rule by which plans spread calls (kSpread); the
// rules of pick_first, least_request and random_subsetting depend on their settings, and are in
// lb/health/spread.
//
// A configuration contains the configurations of its children. The endpoints are not part of it:
// they come in the same ConfigUpdated, and each child gets only the endpoints that it may use, its
// slice. A policy that a gRFC defines has its name in the gRFC, without the parts xds_ and
// _experimental.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

#include "messages/cluster_settings.hpp"
#include "messages/deep.hpp"
#include "messages/endpoints.hpp"
#include "messages/ids.hpp"
#include "messages/load_reporting.hpp"
#include "messages/pick.hpp"

namespace signalbox {

struct LbConfig;
using LbConfigPtr = std::shared_ptr<const LbConfig>;

/// How a policy of endpoints spreads the calls of one priority, on average. Plans use it
/// (lb/health/spread). A policy with neither a kSpread nor a spread_of() in lb/health/spread does
/// not compile.
enum class CallSpread : std::uint8_t {
  kByLocality,   ///< By the weights of localities.
  kAlike,        ///< All endpoints alike.
  kByWeight,     ///< By the weights of localities, and of endpoints in them.
  kByOwnWeight,  ///< By the weights of endpoints; those of localities do not count.
  kFirst,        ///< The first endpoint of the list takes all.
  kByLoad,       ///< By the endpoints' load reports, which a plan does not have.
  kUnknown,      ///< Only the policy knows.
};

/// The top of a target's policy tree: one cds child for each cluster.
struct ClusterManagerConfig {
  static constexpr absl::string_view kName = "cluster_manager";

  struct Child {
    Deep<LbConfig> config;
    /// True: no selector can choose the child any more; only earlier calls still hold it (A31-14).
    /// The child's failing picks end their calls, so that no wait_for_ready call keeps the child
    /// for ever (A31-17).
    bool retiring = false;

    friend bool operator==(const Child&, const Child&) = default;
  };

  std::map<ClusterName, Child> children;

  friend bool operator==(const ClusterManagerConfig&, const ClusterManagerConfig&) = default;
};

/// The tiers of a leaf to connect: those that get calls, and some that may get calls next
/// (TierPlan::connected in lb/tree/tiered_rules.hpp).
using TierSet = std::set<Tier>;
using TierSetPtr = std::shared_ptr<const TierSet>;

/// One cluster. For a leaf, the policy builds the leaf's subtree. For an aggregate, it builds a
/// policy with the cds policies of the leaves as its children.
struct CdsConfig {
  static constexpr absl::string_view kName = "cds";

  ClusterName cluster;
  /// Replaces the leaf's own policy; null: the leaf keeps its own policy. Set by an aggregate, and
  /// only under GRPC_XDS_AGGREGATE_CLUSTER_BACKWARD_COMPAT (A75-8).
  Deep<LbConfig> lb_policy = nullptr;
  /// Set for a leaf below the policy `tiered`: PickArgs::tier then chooses the leaf's priority.
  /// Null: the leaf's own priority policy chooses.
  Deep<TierSet> tiers = nullptr;
  /// The aggregate's name, when this leaf is below one; routes and cookies use that name (A60).
  /// Empty: there is no aggregate.
  ClusterName aggregate = {};

  friend bool operator==(const CdsConfig&, const CdsConfig&) = default;
};

/// Envoy's aggregate cluster: calls are spread over the priorities of all leaves by health.
struct TieredConfig {
  static constexpr absl::string_view kName = "tiered";

  ClusterName cluster;
  std::vector<ClusterName> leaves;  ///< In the aggregate's order; their cds policies are children.
  Deep<LbConfig> lb_policy = nullptr;  ///< See CdsConfig::lb_policy.
  /// The aggregate's own panic threshold in percent (Cluster::panic_threshold). nullopt:
  /// PolicyOptions::panic_threshold applies.
  std::optional<std::uint32_t> panic_threshold = std::nullopt;

  friend bool operator==(const TieredConfig&, const TieredConfig&) = default;
};

/// Takes the place of the priority policy below a leaf of an aggregate in tiered mode. A call goes
/// to the child for the call's tier (PickArgs::tier).
struct LeafTiersConfig {
  static constexpr absl::string_view kName = "leaf_tiers";

  ClusterName cluster;
  Deep<LbConfig> child;                       ///< The policy under each tier.
  std::vector<ChildName> priorities;          ///< The name of each priority, highest first.
  Deep<TierSet> tiers;                        ///< The tiers to connect. Never null.
  bool ignore_reresolution_requests = false;  ///< See PriorityConfig::Child.

  friend bool operator==(const LeafTiersConfig&, const LeafTiersConfig&) = default;
};

/// Ejects endpoints that fail more calls than others (A50), over all priorities of the cluster
/// (A75-3).
struct OutlierDetectionConfig {
  static constexpr absl::string_view kName = "outlier_detection";

  Deep<LbConfig> child;
  ClusterName cluster = {};
  /// nullopt: no endpoint is ever ejected.
  std::optional<OutlierDetection> settings = std::nullopt;

  friend bool operator==(const OutlierDetectionConfig&, const OutlierDetectionConfig&) = default;
};

/// Applies two rules to all calls of a cluster, whatever their priority (A75-5): before a priority
/// is chosen, the drops, which come with the endpoints; after an endpoint is chosen, the limit of
/// concurrent calls.
struct ClusterImplConfig {
  static constexpr absl::string_view kName = "cluster_impl";

  ClusterName cluster;
  Deep<LbConfig> child;
  std::string service_name = {};  ///< The EDS resource's name; empty for LOGICAL_DNS.
  std::uint32_t max_concurrent_requests = kDefaultMaxRequests;
  ClusterName aggregate = {};  ///< See CdsConfig::aggregate.
  /// The server that gets load reports of the cluster, and the metrics in them
  /// (Cluster::load_reporting). nullopt: no reports.
  std::optional<LoadReporting> load_reporting = {};

  friend bool operator==(const ClusterImplConfig&, const ClusterImplConfig&) = default;
};

/// Keeps sessions on their hosts (A55), over all priorities of the cluster (A75-2).
struct OverrideHostConfig {
  static constexpr absl::string_view kName = "override_host";

  /// The name in routes and cookies: for a leaf below an aggregate, the aggregate's name.
  ClusterName cluster;
  Deep<LbConfig> child;
  /// After the last call of a session to a host, the host's connection is kept for this time.
  Duration idle_timeout = std::chrono::hours(1);
  /// A session may stay on a host while the host has one of these healths.
  HealthStatusSet override_host_status{HealthStatus::kUnknown, HealthStatus::kHealthy};
  /// True: the listener's chain has a stateful_session filter, so calls may belong to sessions.
  /// False: the child's picker takes every call, and no connection is kept.
  bool sessions = false;

  friend bool operator==(const OverrideHostConfig&, const OverrideHostConfig&) = default;
};

/// Calls go to the first child, in the order of `priorities`, that can take them (A56).
struct PriorityConfig {
  static constexpr absl::string_view kName = "priority";

  struct Child {
    Deep<LbConfig> config;
    /// The priority of the endpoints that the child gets; nullopt: the child brings its own
    /// endpoints (cds).
    std::optional<std::size_t> slice;
    /// True: ChildAskedReresolution from this child is not passed on to the parent (A37).
    bool ignore_reresolution_requests = false;

    friend bool operator==(const Child&, const Child&) = default;
  };

  ClusterName cluster;  ///< The cluster of the priorities; the label of the metrics.
  std::map<ChildName, Child> children;
  std::vector<ChildName> priorities;  ///< Highest first; each is a key of `children`.
  ClusterName aggregate = {};         ///< See CdsConfig::aggregate.

  friend bool operator==(const PriorityConfig&, const PriorityConfig&) = default;
};

/// What a zone's part of the capacity is counted by.
enum class ZoneBasis : std::uint8_t { kEndpoints, kWeights };

/// Envoy's zone-aware routing: calls stay in the caller's zone as long as the zone has its share of
/// the endpoints (lb/health/zone_split).
struct ZoneAware {
  std::uint32_t routing_enabled = 100;  ///< The percentage of calls that the rule is for.
  std::uint64_t min_cluster_size = 6;   ///< With fewer fit endpoints, the rule does not hold.
  ZoneBasis basis = ZoneBasis::kEndpoints;
  /// Envoy's force_local_zone: with at least this many fit endpoints, at least 1, the caller's zone
  /// keeps all calls. nullopt: it keeps those that it has the capacity for.
  std::optional<std::uint32_t> force_from = std::nullopt;

  friend bool operator==(const ZoneAware&, const ZoneAware&) = default;
};

/// Turns localities and their weights into a weighted_target (A52).
struct WrrLocalityConfig {
  static constexpr absl::string_view kName = "wrr_locality";
  static constexpr CallSpread kSpread = CallSpread::kByLocality;

  Deep<LbConfig> child;
  /// nullopt: localities have calls by their weights alone.
  std::optional<ZoneAware> zone_aware = std::nullopt;
  /// In tiered mode, calls to a priority in panic fail. (In priority mode no priority panics.)
  bool fail_traffic_on_panic = false;

  friend bool operator==(const WrrLocalityConfig&, const WrrLocalityConfig&) = default;
};

/// A68: the child gets a random subset of the endpoints.
struct RandomSubsettingConfig {
  static constexpr absl::string_view kName = "random_subsetting";

  std::uint32_t subset_size = 1;  ///< At least 1.
  Deep<LbConfig> child;

  friend bool operator==(const RandomSubsettingConfig&, const RandomSubsettingConfig&) = default;
};

/// Shares calls among its children by weight.
struct WeightedTargetConfig {
  static constexpr absl::string_view kName = "weighted_target";

  struct Target {
    std::uint32_t weight = 1;
    Deep<LbConfig> config;
    LocalityName locality;  ///< The target gets the endpoints of this locality alone.

    friend bool operator==(const Target&, const Target&) = default;
  };

  std::map<ChildName, Target> targets;
  std::optional<ZoneAware> zone_aware = std::nullopt;  ///< See WrrLocalityConfig::zone_aware.
  LocalityName caller = {};                            ///< This client's; read with zone_aware.

  friend bool operator==(const WeightedTargetConfig&, const WeightedTargetConfig&) = default;
};

/// Slow start (Envoy, gRFC A100): an endpoint that becomes READY has a part of its weight at first,
/// and all of it when the window has passed (lb/health/slow_start).
struct SlowStart {
  Duration window = std::chrono::minutes(1);  ///< More than 0, at most an hour.
  double aggression = 1;                      ///< Above 0, finite. 1: the weight rises linearly.
  double min_weight_percent = 10;             ///< 0 to 100.

  friend bool operator==(const SlowStart&, const SlowStart&) = default;
};

struct RoundRobinConfig {
  static constexpr absl::string_view kName = "round_robin";
  static constexpr CallSpread kSpread = CallSpread::kAlike;

  std::optional<SlowStart> slow_start = std::nullopt;  ///< nullopt: all endpoints weigh alike.

  friend bool operator==(const RoundRobinConfig&, const RoundRobinConfig&) = default;
};

struct PickFirstConfig {
  static constexpr absl::string_view kName = "pick_first";

  bool shuffle_address_list = false;

  friend bool operator==(const PickFirstConfig&, const PickFirstConfig&) = default;
};

/// Calls with one hash go to one endpoint, by a ring (A42, A76). A ring size above the runtime's
/// limit is reduced to the limit, without an error.
struct RingHashConfig {
  static constexpr absl::string_view kName = "ring_hash";
  static constexpr CallSpread kSpread = CallSpread::kByWeight;

  std::uint64_t min_ring_size = 1024;
  std::uint64_t max_ring_size = 8'388'608;  ///< At least min_ring_size.
  /// The header that is hashed in place of the route's hash policies (A76). Lower case, never a
  /// binary header. Empty: the route's hash policies apply.
  std::string request_hash_header = {};

  friend bool operator==(const RingHashConfig&, const RingHashConfig&) = default;
};

/// A48: picks the least busy of `choice_count` endpoints, which are drawn at random.
struct LeastRequestConfig {
  static constexpr absl::string_view kName = "least_request";
  std::uint32_t choice_count = 2;                      ///< 2 to 10.
  std::optional<SlowStart> slow_start = std::nullopt;  ///< nullopt: no endpoint weighs less.
  /// 0 or more, finite. Endpoints with different weights are chosen by
  /// weight / (calls in flight + 1)^bias (Envoy). nullopt: the weights of endpoints do not count
  /// (A48).
  std::optional<double> active_request_bias = std::nullopt;

  friend bool operator==(const LeastRequestConfig&, const LeastRequestConfig&) = default;
};

/// A58: round_robin with weights from the endpoints' own load reports.
struct WeightedRoundRobinConfig {
  static constexpr absl::string_view kName = "weighted_round_robin";
  static constexpr CallSpread kSpread = CallSpread::kByLoad;

  /// How long an endpoint must report before its weight is used.
  Duration blackout_period = std::chrono::seconds(10);
  /// A weight is no longer used when its endpoint's last load report is older than this.
  Duration weight_expiration_period = std::chrono::minutes(3);
  Duration weight_update_period = std::chrono::seconds(1);  ///< At least 100 ms.
  double error_utilization_penalty = 1;                     ///< Not negative.
  /// The metrics that replace application_utilization in a load report without one (A114):
  /// "mem_utilization", "named_metrics.queue", … A name that no endpoint reports has no effect.
  std::vector<std::string> metric_names_for_computing_utilization = {};
  /// How often endpoints report their load, each on a stream of its own (enable_oob_load_report).
  /// nullopt: load reports come with responses, in which only the Pick API can read them.
  std::optional<Duration> oob_reporting_period = std::nullopt;
  /// Scales the weight of an endpoint for the time SlowStart::window after it became READY (A100).
  /// nullopt: no weight is scaled.
  std::optional<SlowStart> slow_start = std::nullopt;

  friend bool operator==(const WeightedRoundRobinConfig&,
                         const WeightedRoundRobinConfig&) = default;
};

/// Envoy's policy `random`: each call goes to an endpoint that is drawn at random.
struct RandomConfig {
  static constexpr absl::string_view kName = "random";
  static constexpr CallSpread kSpread = CallSpread::kAlike;

  friend bool operator==(const RandomConfig&, const RandomConfig&) = default;
};

/// Envoy's policy `maglev`: calls with one hash go to one endpoint, by a table.
struct MaglevConfig {
  static constexpr absl::string_view kName = "maglev";
  static constexpr CallSpread kSpread = CallSpread::kByWeight;

  std::uint32_t table_size = 65'537;  ///< A prime number, at most 5,000,011.

  friend bool operator==(const MaglevConfig&, const MaglevConfig&) = default;
};

/// The parser's result for the JSON of a custom policy. Immutable, and shared by all its receivers.
class CustomPolicyConfig {
 public:
  virtual ~CustomPolicyConfig() = default;
};

using CustomPolicyConfigPtr = std::shared_ptr<const CustomPolicyConfig>;

/// A policy that the program registered; `config` is the JSON text of its TypedStruct. Equal texts
/// are equal configurations.
struct CustomConfig {
  static constexpr CallSpread kSpread = CallSpread::kUnknown;

  std::string name;
  std::string config;
  CustomPolicyConfigPtr parsed = nullptr;  ///< The result of the policy's parser for `config`.

  friend bool operator==(const CustomConfig& left, const CustomConfig& right) {
    return left.name == right.name && left.config == right.config;
  }
};

struct LbConfig : std::variant<RoundRobinConfig,
                               PickFirstConfig,
                               WrrLocalityConfig,
                               WeightedTargetConfig,
                               PriorityConfig,
                               OverrideHostConfig,
                               ClusterImplConfig,
                               OutlierDetectionConfig,
                               CdsConfig,
                               ClusterManagerConfig,
                               RingHashConfig,
                               LeastRequestConfig,
                               RandomConfig,
                               MaglevConfig,
                               WeightedRoundRobinConfig,
                               RandomSubsettingConfig,
                               CustomConfig,
                               TieredConfig,
                               LeafTiersConfig> {
  using variant::variant;

  friend bool operator==(const LbConfig& left, const LbConfig& right);
};

template <typename Config>
LbConfigPtr make_lb_config(Config config) {
  return std::make_shared<const LbConfig>(std::move(config));
}

/// The policy's name: "round_robin", "priority", …; a custom policy's own.
absl::string_view policy_name(const LbConfig& config);

/// Whether both configurations are equal in meaning, children included.
inline bool same_config(const LbConfigPtr& left, const LbConfigPtr& right) {
  return same_value(left, right);
}

}  // namespace signalbox
