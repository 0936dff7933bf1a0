// SPDX-License-Identifier: Apache-2.0
//
// FilterChain — the HTTP filters for the calls of one route to one of its clusters (gRFC A39).
//
//   Listener::filters, filter_overrides ─▶ [FilterChains], while a selector is built ─▶ FilterChain
//
// A filter's configuration comes from the most specific level that has one: weighted cluster,
// route, virtual host, then the listener's own. Levels are not merged. Disabled filters, and
// filters that would do nothing, are left out. A chain without filters is null, and costs calls
// nothing. The router filter ends the chain: it stands for the pick itself. Equal chains of one
// selector are one object.
//
// An override may have the configuration type of another filter. Only this code can notice that:
// the override comes with the route, the filter's type with the listener. Calls with such an
// override fail with UNAVAILABLE, rather than go on without the filter.

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
  /// In the order of the listener's chain; never empty. One or two, the usual number, are stored in
  /// place.
  absl::InlinedVector<CallFilterPtr, 2> filters;
  /// Set when the chain's only filter is a StatefulSession. If the route has one cluster, and
  /// foresee() has looked for the cookie, the router begins the session without apply(), which is
  /// faster.
  const StatefulSession* only_session = nullptr;
};

using FilterChainPtr = std::shared_ptr<const FilterChain>;

/// Makes the filter chains for one configuration, which must outlive this object.
class FilterChains {
 public:
  FilterChains(std::span<const HttpFilter> filters, FaultOptions options);

  /// The chain with these overrides, the most specific level first. Null: no filter would do
  /// anything.
  FilterChainPtr with(const std::array<const FilterOverrides*, 3>& overrides);

  /// The name of the session cookies in all chains made so far. Empty: there are none, or their
  /// names differ.
  std::string cookie() const { return cookies_.size() == 1 ? *cookies_.begin() : ""; }

 private:
  /// The configuration of each filter; null: the filter is disabled.
  using Configs = std::vector<const HttpFilterConfig*>;

  FilterChainPtr compile(const Configs& configs);

  const std::span<const HttpFilter> filters_;  // The filters before the router.
  const FaultOptions options_;
  std::set<std::string> cookies_;
  std::unordered_multimap<std::size_t, std::pair<Configs, FilterChainPtr>> made_;
};

}  // namespace signalbox::lb
