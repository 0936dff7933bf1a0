// SPDX-License-Identifier: Apache-2.0
//
// How much of anything a control plane may send us. What goes beyond is an error of that
// resource, with the field, what was found, and the name of the limit.
//
//   bytes ─▶ xds/parse (these limits) ─▶ validated resource, or Rejection{kLimit, "max_routes"}
//
// They are far above what a real deployment needs, and low enough that no single resource takes
// the process down. Where others are wanted, RuntimeOptions::limits has them, and `signalbox check
// --limit NAME=NUMBER`.

#pragma once

#include <array>
#include <cstddef>

#include "absl/strings/string_view.h"

namespace signalbox::xds {

inline constexpr std::size_t kMaxMessageBytes = std::size_t{64} << 20U;
inline constexpr std::size_t kMaxClusters = 10'000;
inline constexpr std::size_t kMaxEndpointsPerCluster = 100'000;
inline constexpr std::size_t kMaxRoutes = 10'000;
inline constexpr std::size_t kMaxNameLength = 1024;
inline constexpr std::size_t kMaxRegexLength = 4096;
inline constexpr std::size_t kMaxRegexMemory = std::size_t{1} << 20U;
inline constexpr std::size_t kMostRegexMemory = std::size_t{64} << 20U;
inline constexpr std::size_t kMaxAnyNesting = 32;
inline constexpr std::size_t kMaxLbPolicyNesting = 16;
inline constexpr std::size_t kMaxHealthChecks = 8;

/// The name of a member is the name of the limit in errors.
struct Limits {
  /// Of one DiscoveryResponse.
  std::size_t max_message_bytes = kMaxMessageBytes;
  /// Of one CDS response; of one aggregate; of one route.
  std::size_t max_clusters = kMaxClusters;
  /// Of one cluster.
  std::size_t max_endpoints = kMaxEndpointsPerCluster;
  /// In all virtual hosts of a route configuration together.
  std::size_t max_routes = kMaxRoutes;
  /// Of resources, clusters, filters, headers, domains and the like, in bytes.
  std::size_t max_name_length = kMaxNameLength;
  /// Of one RE2 pattern, in bytes.
  std::size_t max_regex_length = kMaxRegexLength;
  /// Of one compiled RE2 pattern, in bytes; more than kMostRegexMemory is as much.
  std::size_t max_regex_memory = kMaxRegexMemory;
  /// How often an Any may be wrapped in another (Resource, FilterConfig).
  std::size_t max_any_nesting = kMaxAnyNesting;
  /// A load_balancing_policy inside another (A52).
  std::size_t max_lb_policy_nesting = kMaxLbPolicyNesting;
  /// Of one cluster; each is done at each of its endpoints.
  std::size_t max_health_checks = kMaxHealthChecks;

  friend bool operator==(const Limits&, const Limits&) = default;
};

struct NamedLimit {
  absl::string_view name;
  std::size_t Limits::*member;
};

/// Every limit, by the name that errors give it.
inline constexpr std::array kNamedLimits = {
    NamedLimit{"max_message_bytes", &Limits::max_message_bytes},
    NamedLimit{"max_clusters", &Limits::max_clusters},
    NamedLimit{"max_endpoints", &Limits::max_endpoints},
    NamedLimit{"max_routes", &Limits::max_routes},
    NamedLimit{"max_name_length", &Limits::max_name_length},
    NamedLimit{"max_regex_length", &Limits::max_regex_length},
    NamedLimit{"max_regex_memory", &Limits::max_regex_memory},
    NamedLimit{"max_any_nesting", &Limits::max_any_nesting},
    NamedLimit{"max_lb_policy_nesting", &Limits::max_lb_policy_nesting},
    NamedLimit{"max_health_checks", &Limits::max_health_checks},
};

/// Of one resource; the rest is counted. A NACK must fit into a request.
inline constexpr std::size_t kMaxListedErrors = 32;
/// Of the errors of one response together, in bytes.
inline constexpr std::size_t kMaxNackDetailLength = std::size_t{256} << 10U;
/// Of a value that is quoted in an error, in bytes.
inline constexpr std::size_t kMaxQuotedLength = 128;
/// Of what a server says of a resource that it does not send (A88), in bytes; the rest is cut off.
inline constexpr std::size_t kMaxResourceErrorLength = 1024;

}  // namespace signalbox::xds
