// SPDX-License-Identifier: Apache-2.0
//
// LbConfig — the policy tree as data: one struct per policy, LbConfig a variant of them.
//
//   xds/parse, lb/tree/cluster_tree ─▶ [LbConfig] ─▶ lb::make_policy, Policy::step(ConfigUpdated)
//
// A node names its children's configurations; the endpoints travel beside it (ConfigUpdated),
// cut into the slice that each child may use. Names are the gRFCs', without xds_ and
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
#include "messages/endpoints.hpp"
#include "messages/ids.hpp"
#include "messages/pick.hpp"

namespace signalbox {

struct LbConfig;
using LbConfigPtr = std::shared_ptr<const LbConfig>;

/// Top of the tree: one cds child for each cluster (A31-11).
struct ClusterManagerConfig {
  struct Child {
    LbConfigPtr config;
    /// No selector can choose the child any more; only earlier calls still hold it (A31-14). Its
    /// failing picks are drops, so that no wait_for_ready call keeps the child for ever (A31-17).
    bool retiring = false;
  };

  std::map<ClusterName, Child> children;
};

/// The tiers of a leaf that expect calls. These tiers are connected (ENV-25).
using TierSet = std::set<Tier>;
using TierSetPtr = std::shared_ptr<const TierSet>;

/// One cluster. A leaf becomes its subtree; an aggregate becomes a policy over its leaves' cds
/// (A75-1).
struct CdsConfig {
  ClusterName cluster;
  /// Replaces the leaf's own policy; null: the leaf keeps it. Set by an aggregate, and only under
  /// GRPC_XDS_AGGREGATE_CLUSTER_BACKWARD_COMPAT (A75-8).
  LbConfigPtr lb_policy = nullptr;
  /// For a leaf below tiered: PickArgs::tier chooses its priority. Null: the leaf chooses its
  /// priority itself.
  TierSetPtr tiers = nullptr;
  /// The aggregate's name, when this leaf is below one; routes and cookies use that name (A60).
  /// Empty: there is no aggregate.
  ClusterName aggregate = {};
};

/// Envoy's aggregate cluster: calls are spread over the priorities of all leaves by health (ENV).
struct TieredConfig {
  ClusterName cluster;
  std::vector<ClusterName> leaves;  ///< In order; their cds policies are the children.
  LbConfigPtr lb_policy = nullptr;  ///< See CdsConfig::lb_policy.
  /// See Cluster::panic_threshold; nullopt: PolicyOptions::panic_threshold.
  std::optional<std::uint32_t> panic_threshold = std::nullopt;
};

/// Replaces priority below a leaf of an aggregate in tiered mode. The tier of a call
/// (PickArgs::tier) takes that call.
struct LeafTiersConfig {
  ClusterName cluster;
  LbConfigPtr child;                          ///< The policy under each tier.
  std::vector<ChildName> priorities;          ///< The names of the priorities.
  TierSetPtr tiers;                           ///< The tiers that expect calls. Never null.
  bool ignore_reresolution_requests = false;  ///< A37-33.
};

/// Ejects endpoints that answer badly (A50), over all priorities of the cluster (A75-3).
struct OutlierDetectionConfig {
  LbConfigPtr child;
  ClusterName cluster = {};
  std::optional<OutlierDetection> settings = std::nullopt;  ///< nullopt: none is ejected.
};

/// Acts once per cluster, before the priority is chosen (A75-5): drops, which come with the
/// endpoints, and the limit of concurrent calls.
struct ClusterImplConfig {
  ClusterName cluster;
  LbConfigPtr child;
  std::string service_name = {};  ///< The name in EDS; empty for LOGICAL_DNS.
  std::uint32_t max_concurrent_requests = 1024;
  ClusterName aggregate = {};  ///< See CdsConfig::aggregate.
};

/// Keeps sessions on their hosts (A55), over all priorities of the cluster (A75-2).
struct OverrideHostConfig {
  ClusterName cluster;  ///< The name in routes and cookies (A60): above leaves, the aggregate's.
  LbConfigPtr child;
  /// A host's connection is kept this long after its last call (A75-22).
  Duration idle_timeout = std::chrono::hours(1);
  /// The healths of hosts that sessions may stay on (A55-26).
  HealthStatusSet override_host_status{HealthStatus::kUnknown, HealthStatus::kHealthy};
  /// The listener's chain has a stateful_session filter, so calls may belong to sessions. False:
  /// the child's picker takes every call, and no connection is kept (A55-25).
  bool sessions = false;
};

/// A56: the first usable child, in order, takes the calls.
struct PriorityConfig {
  struct Child {
    LbConfigPtr config;
    /// The priority of the endpoints that the child gets; nullopt: the child brings its own
    /// endpoints (cds).
    std::optional<std::size_t> slice;
    bool ignore_reresolution_requests = false;  ///< A37-33.
  };

  ClusterName cluster;  ///< The cluster of the priorities: the label of observations.
  std::map<ChildName, Child> children;
  std::vector<ChildName> priorities;  ///< Highest first; each is a key of `children`.
};

/// Turns localities and their weights into a weighted_target (A52).
struct WrrLocalityConfig {
  LbConfigPtr child;
};

/// Shares calls among its children by weight.
struct WeightedTargetConfig {
  struct Target {
    std::uint32_t weight = 1;
    LbConfigPtr config;
    LocalityName locality;  ///< The locality that holds the target's endpoints.
  };

  std::map<ChildName, Target> targets;
};

struct RoundRobinConfig {};

struct PickFirstConfig {
  bool shuffle_address_list = false;
};

/// A42 and A76. A size above the runtime's cap is cut to the cap, without an error.
struct RingHashConfig {
  std::uint64_t min_ring_size = 1024;
  std::uint64_t max_ring_size = 8'388'608;  ///< At least min_ring_size.
  /// The header that is hashed in place of the route's hash policies (A76). Lower case, never a
  /// binary header. Empty: the route's hash policies apply.
  std::string request_hash_header = {};
};

/// A48: picks the least busy of `choice_count` endpoints, which are drawn at random.
struct LeastRequestConfig {
  std::uint32_t choice_count = 2;  ///< 2 to 10.
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
  std::string name;
  std::string config;
  CustomPolicyConfigPtr parsed = nullptr;  ///< The parser's result for `config`.
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
                               CustomConfig,
                               TieredConfig,
                               LeafTiersConfig> {
  using variant::variant;
};

template <typename Config>
LbConfigPtr make_lb_config(Config config) {
  return std::make_shared<const LbConfig>(std::move(config));
}

/// The policy's name: "round_robin", "priority", …; a custom policy's own.
absl::string_view policy_name(const LbConfig& config);

/// Equal in meaning, children included.
bool same_config(const LbConfigPtr& left, const LbConfigPtr& right);

}  // namespace signalbox
