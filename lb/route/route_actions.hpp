// SPDX-License-Identifier: Apache-2.0
//
// RouteActions — the actions of routes, compiled once for a configuration.
//
//   VirtualHost, Listener ─▶ [RouteActions] ─▶ of(position of the route) ─▶ Action
//
//   route   0   1   2   3   4      Thousands of routes often have only a few different actions.
//           └───┤   └─┬─┴───┘      Equal actions are one object. So a call finds the action in the
//            action 0 action 1     CPU's cache if calls to other routes have read it.
//
// Immutable, and read by any thread. Filters and their overrides are part of an action (A39).
// Unsupported actions are not shared.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"

#include "lb/route/config_selector.hpp"
#include "lb/route/request_hash.hpp"

namespace signalbox::lb {

/// The clusters that a route can choose; never empty. A single one, the usual case, needs no
/// allocation. A cluster of weight 0 is never drawn, because its `end` is that of the cluster
/// before it; only a filter can choose it, such as stateful_session (A60).
using Shares = absl::InlinedVector<RouteCluster, 1>;

struct Forward {
  Shares shares;
  std::optional<Duration> timeout;
  RequestHash hash;
  bool auto_host_rewrite = false;
  RetryRules retry;
};

/// A route's action for its calls. A status: the action is not supported, and calls fail with it
/// (A28).
using Action = std::variant<Forward, absl::Status>;

class RouteActions {
 public:
  /// Precondition: `refs` has an entry for each cluster of the routes. `channel_id`: see
  /// RequestHash. `faults`: see FaultOptions.
  RouteActions(const VirtualHost& host,
               const Listener& listener,
               const ClusterRefs& refs,
               std::uint64_t channel_id,
               const FaultOptions& faults);

  const Action& of(std::size_t route) const { return actions_[place_of_[route]]; }

  std::size_t routes() const { return place_of_.size(); }

  /// See FilterChains::cookie().
  const std::string& cookie() const { return cookie_; }

 private:
  class Builder;

  std::vector<Action> actions_;
  std::vector<std::uint32_t> place_of_;  ///< Index in actions_, by position of the route.
  std::string cookie_;
};

}  // namespace signalbox::lb
