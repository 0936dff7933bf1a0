// SPDX-License-Identifier: Apache-2.0
//
// How much of anything a control plane may send us. What goes beyond is an error of that
// resource, with the field, what was found, and the name of the limit.
//
//   bytes ─▶ xds/parse (these limits) ─▶ validated resource, or Rejection{kLimit, "max_routes"}
//
// They are far above what a real deployment needs, and low enough that no single resource takes
// the process down. ParseOptions carry a Limits of their own, where others are wanted.

#pragma once

#include <cstddef>

namespace signalbox::xds {

inline constexpr std::size_t kMaxMessageBytes = std::size_t{64} << 20U;
inline constexpr std::size_t kMaxClusters = 10'000;
inline constexpr std::size_t kMaxEndpointsPerCluster = 100'000;
inline constexpr std::size_t kMaxRoutes = 10'000;
inline constexpr std::size_t kMaxNameLength = 1024;
inline constexpr std::size_t kMaxRegexLength = 4096;
inline constexpr std::size_t kMaxRegexMemory = std::size_t{1} << 20U;
inline constexpr std::size_t kMaxAnyNesting = 32;
inline constexpr std::size_t kMaxLbPolicyNesting = 16;

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
  /// Of one compiled RE2 pattern, in bytes. Whoever compiles it again allows as much.
  std::size_t max_regex_memory = kMaxRegexMemory;
  /// How often an Any may be wrapped in another (Resource, FilterConfig).
  std::size_t max_any_nesting = kMaxAnyNesting;
  /// A load_balancing_policy inside another (A52).
  std::size_t max_lb_policy_nesting = kMaxLbPolicyNesting;

  friend bool operator==(const Limits&, const Limits&) = default;
};

/// Of one resource; the rest is counted. A NACK must fit into a request.
inline constexpr std::size_t kMaxListedErrors = 32;
/// Of the errors of one response together, in bytes.
inline constexpr std::size_t kMaxNackDetailLength = std::size_t{256} << 10U;
/// Of a value that is quoted in an error, in bytes.
inline constexpr std::size_t kMaxQuotedLength = 128;

}  // namespace signalbox::xds
