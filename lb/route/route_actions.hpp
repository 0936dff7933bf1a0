// SPDX-License-Identifier: Apache-2.0
//
// RouteActions — what routes do with the calls that they take, compiled once for a configuration.
//
//   VirtualHost, Listener ─▶ [RouteActions] ─▶ of(position of the route) ─▶ Action
//
//   route   0   1   2   3   4      Thousands of routes do a handful of things: equal actions are
//           └───┤   └─┬─┴───┘      one, and calls to one route find warm what calls to another
//            action 0 action 1     have read.
//
// Immutable, and read by any thread. Filters are part of an action, with their overrides (A39).

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

/// The clusters that a route can choose; never none. One is the rule, and needs no memory of its
/// own. Of a cluster of weight 0, which only a session's cookie can choose, `end` is that of the
/// share before it.
using Shares = absl::InlinedVector<RouteCluster, 1>;

struct Forward {
  Shares shares;
  std::optional<Duration> timeout;
  RequestHash hash;
  bool auto_host_rewrite = false;
  RetryRules retry;
};

/// The status: what calls fail with, as the route's action is not supported (A28).
using Action = std::variant<Forward, absl::Status>;

class RouteActions {
 public:
  /// Precondition: `refs` has an entry for each cluster of the routes. `channel_id`: see
  /// RequestHash; `faults`: where fault filters count.
  RouteActions(const VirtualHost& host,
               const Listener& listener,
               const ClusterRefs& refs,
               std::uint64_t channel_id,
               const FaultOptions& faults);

  const Action& of(std::size_t route) const { return actions_[place_of_[route]]; }

  std::size_t routes() const { return place_of_.size(); }

  /// See FilterChains.
  const std::string& cookie() const { return cookie_; }

 private:
  class Builder;

  std::vector<Action> actions_;
  std::vector<std::uint32_t> place_of_;  ///< By position of the route, in actions_.
  std::string cookie_;
};

}  // namespace signalbox::lb
