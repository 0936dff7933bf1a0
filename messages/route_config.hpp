// SPDX-License-Identifier: Apache-2.0
//
// RouteConfig — a validated RDS resource: which call goes to which cluster.
//
//   xds/parse/route_config ─▶ [RouteConfig] ─▶ dependency manager ─▶ lb/route/config_selector
//
// Patterns are kept as text; lb/route compiles them once per configuration.
// Source: gRFC A28 and A63 (matching), A31 (timeouts, cluster choice), A42 (hash policies), A44
// (retries), A39 (filter overrides), A81 (authority).

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"

#include "messages/http_filter.hpp"
#include "messages/ids.hpp"
#include "messages/text_matcher.hpp"

namespace signalbox {

/// Half-open, as in envoy.type.v3.Int64Range: [start, end).
struct IntegerRange {
  std::int64_t start = 0;
  std::int64_t end = 0;

  friend bool operator==(const IntegerRange&, const IntegerRange&) = default;
};

/// Matches when the header exists; with `present` false, when it does not exist.
struct PresenceMatcher {
  bool present = true;

  friend bool operator==(const PresenceMatcher&, const PresenceMatcher&) = default;
};

struct HeaderMatcher {
  std::string name;  ///< Lower case.
  std::variant<TextMatcher, IntegerRange, PresenceMatcher> matcher;
  bool invert = false;
  /// True: an absent header counts as an empty one (HeaderMatcher.treat_missing_header_as_empty).
  bool missing_is_empty = false;

  friend bool operator==(const HeaderMatcher&, const HeaderMatcher&) = default;
};

struct RouteMatch {
  TextMatcher path;  ///< Exact, prefix or regex.
  std::vector<HeaderMatcher> headers;
  /// The fraction of calls that match, in parts per million
  /// (RouteMatch.runtime_fraction.default_value); nullopt: all calls.
  std::optional<std::uint32_t> fraction_per_million;

  friend bool operator==(const RouteMatch&, const RouteMatch&) = default;
};

struct WeightedCluster {
  ClusterName cluster;
  std::uint32_t weight = 0;
  FilterOverrides filter_overrides = {};

  friend bool operator==(const WeightedCluster&, const WeightedCluster&) = default;
};

/// When a failed call is tried again (A44). `retry_on` is never empty.
struct RetryPolicy {
  /// Some of CANCELLED, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, INTERNAL and UNAVAILABLE, in this
  /// order, each at most once.
  std::vector<absl::StatusCode> retry_on;
  std::uint32_t max_attempts = 2;  ///< 2 to 5; the first attempt counts too.
  /// At least 1 ms; doubles with each retry, up to max_interval.
  Duration base_interval = std::chrono::milliseconds(25);
  Duration max_interval = std::chrono::milliseconds(250);  ///< At least base_interval.
  /// True: a retry avoids the hosts of the call's earlier attempts (Envoy).
  bool previous_hosts = false;

  friend bool operator==(const RetryPolicy&, const RetryPolicy&) = default;
};

/// Hashes the values of a header, joined by ','. A binary header (-bin) gives no hash.
struct HeaderHash {
  /// Every match of `pattern` in the value is replaced before hashing.
  struct Rewrite {
    std::string pattern;  ///< RE2.
    std::string substitution;

    friend bool operator==(const Rewrite&, const Rewrite&) = default;
  };

  std::string header;  ///< Lower case.
  std::optional<Rewrite> rewrite;

  friend bool operator==(const HeaderHash&, const HeaderHash&) = default;
};

/// Hashes the channel's identity: filter_state io.grpc.channel_id.
struct ChannelHash {
  friend bool operator==(const ChannelHash&, const ChannelHash&) = default;
};

/// One step of a call's hash, for ring_hash and maglev (A42).
struct HashPolicy {
  std::variant<HeaderHash, ChannelHash> what;
  bool terminal = false;  ///< Later policies are skipped if the call has a hash after this policy.

  friend bool operator==(const HashPolicy&, const HashPolicy&) = default;
};

/// RouteAction: forwards the call. `clusters` is never empty, and its weights sum to more than 0
/// and at most 2^32-1. RouteAction.cluster becomes one entry of weight 1.
struct ForwardAction {
  std::vector<WeightedCluster> clusters;
  /// RouteAction.max_stream_duration.max_stream_duration.
  std::optional<Duration> max_stream_duration;
  /// RouteAction.max_stream_duration.grpc_timeout_header_max.
  std::optional<Duration> grpc_timeout_header_max;
  /// The retry policy of the route, or else of its virtual host; nullopt: no retries (A44).
  std::optional<RetryPolicy> retry = {};
  /// The supported policies of the route; empty: each call gets a random hash (A42).
  std::vector<HashPolicy> hash_policies = {};
  /// True: the endpoint's hostname becomes the call's :authority (A81).
  bool auto_host_rewrite = false;

  friend bool operator==(const ForwardAction&, const ForwardAction&) = default;
};

/// An action that signalbox does not support. The route still matches, and its calls fail with
/// UNAVAILABLE (A28).
struct UnsupportedAction {
  std::string what;

  friend bool operator==(const UnsupportedAction&, const UnsupportedAction&) = default;
};

struct Route {
  std::string name;
  RouteMatch match;
  std::variant<ForwardAction, UnsupportedAction> action;
  FilterOverrides filter_overrides = {};

  friend bool operator==(const Route&, const Route&) = default;
};

struct VirtualHost {
  std::string name;
  std::vector<std::string> domains;
  std::vector<Route> routes;
  FilterOverrides filter_overrides = {};

  friend bool operator==(const VirtualHost&, const VirtualHost&) = default;
};

struct RouteConfig {
  std::string name;
  std::vector<VirtualHost> virtual_hosts;

  friend bool operator==(const RouteConfig&, const RouteConfig&) = default;
};

}  // namespace signalbox
