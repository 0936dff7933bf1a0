// SPDX-License-Identifier: Apache-2.0
//
// ConfigSelector — what a call's path and headers decide: its cluster and its timeout (gRFC A31),
// its place on a ring (gRFC A42), whether it is retried (gRFC A44), and the filters that it passes
// (gRFC A39).
//
//   XdsConfig ─▶ make_config_selector ─▶ [ConfigSelector] in the snapshot ─▶ Router::pick
//
// Immutable; select() is called by any thread, inside the snapshot's read section. Routes are
// compiled once, when the selector is built. The connectivity of clusters plays no part (A31-9).

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"

#include "lb/route/filter_chain.hpp"
#include "lb/route/retry.hpp"
#include "messages/counting/call_stats.hpp"
#include "messages/pick.hpp"
#include "messages/xds_config.hpp"

namespace signalbox::lb {

/// One cluster of one channel, as calls refer to it: its uses are the calls that chose it and
/// have not ended (A31-13). It outlives the selectors that name it.
class ClusterRef : public Tracked {
 public:
  ClusterRef(ClusterName name, std::shared_ptr<const CallStats> stats)
      : name_(std::move(name)), stats_(std::move(stats)) {}

  const ClusterName& name() const { return name_; }

  const CallStats& stats() const { return *stats_; }

 private:
  ClusterName name_;
  std::shared_ptr<const CallStats> stats_;
};

using ClusterRefPtr = std::shared_ptr<const ClusterRef>;
using ClusterRefs = std::map<ClusterName, ClusterRefPtr>;

/// One cluster that a route can choose, the sum of the weights up to and with it, and what its
/// calls pass before they are picked.
struct RouteCluster {
  std::uint64_t end = 0;
  ClusterRefPtr cluster;
  std::size_t place = 0;
  FilterChainPtr filters = nullptr;
};

/// The route's answer for one call.
struct Selection {
  const ClusterRef* cluster = nullptr;
  std::size_t place = 0;  ///< See PickArgs::cluster_place.
  /// The most that the call may take, before the application's own deadline; nullopt: no limit.
  std::optional<Duration> timeout;
  std::optional<std::uint64_t> hash;  ///< See PickArgs::hash.
  /// The endpoint's hostname becomes the call's :authority (A81).
  bool auto_host_rewrite = false;
  const RetryRules* retry = nullptr;           ///< The selector's; null: no retries.
  const FilterChain* filters = nullptr;        ///< Null: none has anything to do.
  std::span<const RouteCluster> choices = {};  ///< All of the route: what a filter may change to.
};

class ConfigSelector {
 public:
  virtual ~ConfigSelector() = default;

  /// The route for the call, or the status that it fails with (UNAVAILABLE, A28).
  virtual std::variant<Selection, absl::Status> select(const PickArgs& args) const = 0;

  /// What select() answers, told step by step; may allocate.
  virtual std::variant<Selection, absl::Status> explain(const PickArgs& args,
                                                        PickTrace& /*trace*/) const {
    return select(args);
  }

  /// The name of the cookie that all of its sessions go by; empty: there are none, or they have
  /// cookies of several names.
  virtual std::string cookie() const { return ""; }
};

using ConfigSelectorPtr = std::shared_ptr<const ConfigSelector>;

/// Every cluster that the routes of `config` can choose.
std::set<ClusterName> clusters_of(const XdsConfig& config);

/// Precondition: `refs` has an entry for each of clusters_of(config). `channel_id`: see
/// RequestHash; `faults`: where its fault filters count.
ConfigSelectorPtr make_config_selector(const XdsConfig& config,
                                       const ClusterRefs& refs,
                                       std::uint64_t channel_id = 0,
                                       const FaultOptions& faults = {});

}  // namespace signalbox::lb
