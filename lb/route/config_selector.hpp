// SPDX-License-Identifier: Apache-2.0
//
// ConfigSelector — decides by a call's path and headers: its cluster and timeout (gRFC A31), its
// hash for ring_hash and maglev (gRFC A42), its retry policy (gRFC A44) and its filters (gRFC A39).
//
//   XdsConfig ─▶ make_config_selector ─▶ [ConfigSelector] in the snapshot ─▶ Router::pick
//
// Immutable. select() runs on any thread, in a read section of the snapshot. Routes are compiled
// once, when the selector is made. Whether clusters are connected does not matter (A31-9).

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
#include "messages/counting/striped.hpp"
#include "messages/pick.hpp"
#include "messages/xds_config.hpp"

namespace signalbox::lb {

/// A cluster that calls of one channel refer to. Calls that chose the cluster hold a counted
/// reference to it (a Use, messages/counting/tracked.hpp) until they end (A31-13). The ClusterRef
/// outlives the selectors that name the cluster. Each pick reads all of it: it is one cache line.
class alignas(kCacheLine) ClusterRef : public Tracked {
 public:
  ClusterRef(ClusterName name, std::shared_ptr<const CallStats> stats)
      : name_(std::move(name)), stats_(std::move(stats)) {}

  const ClusterName& name() const { return name_; }

  /// Null: its calls are not counted.
  const CallStats* stats() const { return stats_.get(); }

 private:
  ClusterName name_;
  std::shared_ptr<const CallStats> stats_;
};

static_assert(sizeof(ClusterRef) == kCacheLine);

using ClusterRefPtr = std::shared_ptr<const ClusterRef>;
using ClusterRefs = std::map<ClusterName, ClusterRefPtr>;

/// A cluster that a route can choose, and the filters of its calls. `end`: the sum of the weights
/// of the route's clusters up to and including this one. `place`: see PickArgs::cluster_place.
struct RouteCluster {
  std::uint64_t end = 0;
  ClusterRefPtr cluster;
  std::size_t place = 0;
  FilterChainPtr filters = nullptr;
};

/// The route's settings for one call.
struct Selection {
  const ClusterRef* cluster = nullptr;
  std::size_t place = 0;  ///< See PickArgs::cluster_place.
  /// The longest time that the call may take by its route; the application's own deadline is not
  /// included. nullopt: no limit.
  std::optional<Duration> timeout;
  std::optional<std::uint64_t> hash;  ///< See PickArgs::hash.
  /// The call's :authority becomes the endpoint's hostname (A81).
  bool auto_host_rewrite = false;
  const RetryRules* retry = nullptr;     ///< Owned by the selector; null: no retries.
  const FilterChain* filters = nullptr;  ///< Null: the call passes no filter.
  /// The clusters of the route that can get calls. Filters may choose another one of them.
  std::span<const RouteCluster> choices = {};
};

class ConfigSelector {
 public:
  virtual ~ConfigSelector() = default;

  /// The route for the call, or the status with which the call fails (UNAVAILABLE, A28).
  virtual std::variant<Selection, absl::Status> select(const PickArgs& args) const = 0;

  /// Does as select(), and tells each step to `trace`. May allocate.
  virtual std::variant<Selection, absl::Status> explain(const PickArgs& args,
                                                        PickTrace& /*trace*/) const {
    return select(args);
  }

  /// The name of the session cookies, if those of all routes have the same name. Empty: there are
  /// no sessions, or their cookies have different names.
  virtual std::string cookie() const { return ""; }
};

using ConfigSelectorPtr = std::shared_ptr<const ConfigSelector>;

/// Every cluster that the routes of `config` can choose.
std::set<ClusterName> clusters_of(const XdsConfig& config);

/// Precondition: `refs` has an entry for each of clusters_of(config). `channel_id`: see
/// RequestHash. `faults`: see FaultOptions.
ConfigSelectorPtr make_config_selector(const XdsConfig& config,
                                       const ClusterRefs& refs,
                                       std::uint64_t channel_id = 0,
                                       const FaultOptions& faults = {});

}  // namespace signalbox::lb
