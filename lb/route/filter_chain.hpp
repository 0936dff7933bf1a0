// SPDX-License-Identifier: Apache-2.0
//
// FilterChain — the filters of a route and one of its clusters, compiled (gRFC A39).
//
//   Listener::filters, filter_overrides ─▶ [FilterChains], while a selector is built ─▶ FilterChain
//
// Of each filter the most specific configuration counts: weighted cluster, route, virtual host,
// then the chain's own; nothing is merged. What is disabled falls out, and so does what has nothing
// to do: a chain of which nothing is left is null, and costs its calls nothing. The router filter
// ends the chain; it is the pick itself. Equal chains are one.
//
// An override for one filter that holds the configuration of another is an error that only this
// can see: the calls that it concerns fail UNAVAILABLE rather than go on without their filter.

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
  /// Never none; as a rule one or two, which stand in it.
  absl::InlinedVector<CallFilterPtr, 2> filters;
  /// Where sessions are all that there is: their filter, which need not be asked as a filter is.
  const StatefulSession* only_session = nullptr;
};

using FilterChainPtr = std::shared_ptr<const FilterChain>;

/// Makes the chains of one configuration, which must outlive it.
class FilterChains {
 public:
  FilterChains(std::span<const HttpFilter> filters, FaultOptions options);

  /// With these overrides, the most specific first. Null: there is nothing to do.
  FilterChainPtr with(const std::array<const FilterOverrides*, 3>& overrides);

  /// The name of the sessions' cookie in all chains so far; empty: there is none, or more than one.
  std::string cookie() const { return cookies_.size() == 1 ? *cookies_.begin() : ""; }

 private:
  /// One for each filter; null: it is off.
  using Configs = std::vector<const HttpFilterConfig*>;

  FilterChainPtr compile(const Configs& configs);

  const std::span<const HttpFilter> filters_;  // Without the router.
  const FaultOptions options_;
  std::set<std::string> cookies_;
  std::unordered_multimap<std::size_t, std::pair<Configs, FilterChainPtr>> made_;
};

}  // namespace signalbox::lb
