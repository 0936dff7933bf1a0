// SPDX-License-Identifier: Apache-2.0
//
// named_clusters — the clusters that calls may go to.
//
//   VirtualHost, Listener ─▶ [named_clusters] ─┬▶ xds/depend: whose resources are watched
//                                              └▶ lb/route: what a route can choose
//
// One answer for both sides: a cluster that a route can choose has to be among those that are
// watched.
//
// An entry of weight 0 has no calls by the draw. Where the listener has a stateful_session filter,
// the entry has the calls whose cookie names its cluster, because the route still names that
// cluster (A60). Without such a filter no call can get there, and the entry counts for nothing.

#pragma once

#include <algorithm>
#include <set>
#include <variant>

#include "messages/listener.hpp"
#include "messages/route_config.hpp"

namespace signalbox {

/// Whether a filter of the chain may keep calls on their cluster. A filter that is switched off
/// counts: a route can switch it on. Null: there are no filters.
inline bool has_sessions(const Listener* listener) {
  return listener != nullptr && std::ranges::any_of(listener->filters, [](const HttpFilter& one) {
           return std::holds_alternative<StatefulSessionFilter>(one.config);
         });
}

/// Whether a call may be sent to the entry's cluster.
inline bool is_reachable(const WeightedCluster& entry, bool keeps_sessions) {
  return entry.weight > 0 || keeps_sessions;
}

/// Of all routes of `host`.
inline std::set<ClusterName> named_clusters(const VirtualHost& host, const Listener* listener) {
  const bool keeps_sessions = has_sessions(listener);
  std::set<ClusterName> clusters;
  for (const Route& route : host.routes) {
    const auto* forward = std::get_if<ForwardAction>(&route.action);
    if (forward == nullptr) continue;
    for (const WeightedCluster& entry : forward->clusters) {
      if (is_reachable(entry, keeps_sessions)) clusters.insert(entry.cluster);
    }
  }
  return clusters;
}

}  // namespace signalbox
