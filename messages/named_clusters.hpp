// SPDX-License-Identifier: Apache-2.0
//
// named_clusters — the clusters that calls may go to.
//
//   VirtualHost, Listener ─▶ [named_clusters] ─┬▶ xds/depend: watches their resources
//                                              └▶ lb/route: chooses among them
//
// Both sides use this one function, because a route may only choose a cluster that is watched.
//
// An entry of weight 0 is never drawn. When the listener has a stateful_session filter, the entry
// still gets the calls with a cookie that names its cluster (A60). Without such a filter no call
// can reach the entry, so the entry is ignored.

#pragma once

#include <algorithm>
#include <set>
#include <variant>

#include "messages/listener.hpp"
#include "messages/route_config.hpp"

namespace signalbox {

/// Whether the listener's chain has a stateful_session filter, which may keep the calls of a
/// session on their cluster. A filter that is switched off counts, because a route can switch it
/// on. A null `listener` has no filters.
inline bool has_sessions(const Listener* listener) {
  return listener != nullptr && std::ranges::any_of(listener->filters, [](const HttpFilter& one) {
           return std::holds_alternative<StatefulSessionFilter>(one.config);
         });
}

/// Whether a call may be sent to the entry's cluster. `keeps_sessions`: has_sessions() of the
/// listener.
inline bool is_reachable(const WeightedCluster& entry, bool keeps_sessions) {
  return entry.weight > 0 || keeps_sessions;
}

/// The clusters that the routes of `host` can send calls to (is_reachable()). A null `listener` has
/// no filters.
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
