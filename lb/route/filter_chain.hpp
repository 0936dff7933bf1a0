// SPDX-License-Identifier: Apache-2.0
//
// FilterChain — the filters of a route and one of its clusters, compiled (gRFC A39).
//
//   Listener::filters, filter_overrides ─▶ [FilterChains], while a selector is built ─▶ FilterChain
//
// For each filter the most specific configuration counts: weighted cluster, route, virtual host,
// then the chain's own. Nothing is merged. Disabled filters and filters with nothing to do are left
// out. A chain without filters is null, and costs its calls nothing. The router filter ends the
// chain: it is the pick itself. Equal chains are one object.
//
// Only this code can see that an override for one filter holds the configuration of another filter.
// Calls with such an override fail UNAVAILABLE; they do not go on without their filter.

#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"

#include "lb/route/fault.hpp"
#include "lb/session/stateful_session.hpp"
#include "messages/call_filter.hpp"
#include "messages/http_filter.hpp"

namespace signalbox::lb {

struct FilterChain {
  /// The filters in order; never empty. One or two, the usual number, are stored in place.
  absl::InlinedVector<CallFilterPtr, 2> filters;
  /// Set when the chain's only filter is a StatefulSession. The router can then begin the session
  /// without apply(), which is faster.
  const StatefulSession* only_session = nullptr;
};

using FilterChainPtr = std::shared_ptr<const FilterChain>;

/// Makes the chains of one configuration. The configuration must outlive it.
class FilterChains {
 public:
  FilterChains(std::span<const HttpFilter> filters, FaultOptions options);

  /// The chain with these overrides, the most specific first. Null: there is nothing to do.
  FilterChainPtr with(const std::array<const FilterOverrides*, 3>& overrides);

  /// The name of the session cookie in all chains so far. Empty: there is none, or several names.
  std::string cookie() const { return cookies_.size() == 1 ? *cookies_.begin() : ""; }

 private:
  /// One entry for each filter; null: the filter is off.
  using Configs = std::vector<const HttpFilterConfig*>;

  FilterChainPtr compile(const Configs& configs);

  const std::span<const HttpFilter> filters_;  // All filters but the router.
  const FaultOptions options_;
  std::set<std::string> cookies_;
  std::unordered_multimap<std::size_t, std::pair<Configs, FilterChainPtr>> made_;
};

}  // namespace signalbox::lb
