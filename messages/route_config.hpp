// SPDX-License-Identifier: Apache-2.0
//
// RouteConfig — a validated RDS resource: which call goes to which cluster.
//
//   xds/parse/route_config ─▶ [RouteConfig] ─▶ dependency manager ─▶ lb/route/config_selector
//
// Patterns are kept as text; lb/route compiles them once per configuration.
// Source: gRFC A28 and A63 (matching), A31 (timeouts, cluster choice).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "messages/ids.hpp"

namespace signalbox {

/// How a text is compared. Regex always matches the whole text.
struct TextMatcher {
  enum class Kind : std::uint8_t { kExact, kPrefix, kSuffix, kContains, kRegex };

  Kind kind = Kind::kExact;
  std::string text;
  bool ignore_case = false;

  friend bool operator==(const TextMatcher&, const TextMatcher&) = default;
};

/// Half-open, as in envoy.type.v3.Int64Range: [start, end).
struct IntegerRange {
  std::int64_t start = 0;
  std::int64_t end = 0;

  friend bool operator==(const IntegerRange&, const IntegerRange&) = default;
};

/// The header exists (or, with `present` false, does not).
struct PresenceMatcher {
  bool present = true;

  friend bool operator==(const PresenceMatcher&, const PresenceMatcher&) = default;
};

struct HeaderMatcher {
  std::string name;  ///< Lower case.
  std::variant<TextMatcher, IntegerRange, PresenceMatcher> matcher;
  bool invert = false;

  friend bool operator==(const HeaderMatcher&, const HeaderMatcher&) = default;
};

struct RouteMatch {
  TextMatcher path;  ///< Exact, prefix or regex.
  std::vector<HeaderMatcher> headers;
  /// RouteMatch.runtime_fraction.default_value, as parts of a million; nullopt: always.
  std::optional<std::uint32_t> fraction_per_million;

  friend bool operator==(const RouteMatch&, const RouteMatch&) = default;
};

struct WeightedCluster {
  ClusterName cluster;
  std::uint32_t weight = 0;

  friend bool operator==(const WeightedCluster&, const WeightedCluster&) = default;
};

/// RouteAction: forwards the call. `clusters` is never empty, and its weights sum to more than 0
/// and at most 2^32-1; a single cluster has weight 1.
struct ForwardAction {
  std::vector<WeightedCluster> clusters;
  /// RouteAction.max_stream_duration.max_stream_duration (A31-20).
  std::optional<Duration> max_stream_duration;
  /// RouteAction.max_stream_duration.grpc_timeout_header_max (A31-21).
  std::optional<Duration> grpc_timeout_header_max;

  friend bool operator==(const ForwardAction&, const ForwardAction&) = default;
};

/// Any other action of a route: it matches, and then the call fails UNAVAILABLE (A28).
struct UnsupportedAction {
  std::string what;

  friend bool operator==(const UnsupportedAction&, const UnsupportedAction&) = default;
};

struct Route {
  std::string name;
  RouteMatch match;
  std::variant<ForwardAction, UnsupportedAction> action;

  friend bool operator==(const Route&, const Route&) = default;
};

struct VirtualHost {
  std::string name;
  std::vector<std::string> domains;
  std::vector<Route> routes;

  friend bool operator==(const VirtualHost&, const VirtualHost&) = default;
};

struct RouteConfig {
  std::string name;
  std::vector<VirtualHost> virtual_hosts;

  friend bool operator==(const RouteConfig&, const RouteConfig&) = default;
};

}  // namespace signalbox
