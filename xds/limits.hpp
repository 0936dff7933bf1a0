// SPDX-License-Identifier: Apache-2.0
//
// How much of anything a control plane may send us. What goes beyond is an error of that
// resource, with the field, what was found, and the name of the limit.
//
//   bytes ─▶ xds/parse (these limits) ─▶ validated resource, or Rejection{kLimit, "max_routes"}
//
// The limits are far above what a real deployment needs, and low enough that no single resource
// takes the process down. Where others are wanted, RuntimeOptions::limits has them, and `signalbox
// check
// --limit NAME=NUMBER`. What counts entries or weighs bytes is applied before they are decoded.

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
inline constexpr std::size_t kMaxResources = 100'000;
inline constexpr std::size_t kMaxDecodedMemory = std::size_t{256} << 20U;
inline constexpr std::size_t kMaxRegexes = 10'000;
inline constexpr std::size_t kMaxRegexesLength = std::size_t{1} << 20U;
inline constexpr std::size_t kMaxRegexesMemory = std::size_t{64} << 20U;
inline constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20U;
inline constexpr std::size_t kMaxFileValues = 1'000'000;

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
  /// Of one response, or of one resource file.
  std::size_t max_resources = kMaxResources;
  /// What all resources of one response take as decoded messages, in bytes, as far as it can be
  /// told before they are decoded. A plain endpoint takes some 400 bytes of it.
  std::size_t max_decoded_memory = kMaxDecodedMemory;
  /// How many different RE2 patterns one response has.
  std::size_t max_regexes = kMaxRegexes;
  /// Of all different RE2 patterns of one response together, in bytes.
  std::size_t max_regexes_length = kMaxRegexesLength;
  /// Of all different RE2 patterns of one response together, compiled, in bytes.
  std::size_t max_regexes_memory = kMaxRegexesMemory;
  /// Of one resource file.
  std::size_t max_file_bytes = kMaxFileBytes;
  /// How many values (objects, lists, scalars) one resource file has, its aliases expanded.
  std::size_t max_file_values = kMaxFileValues;

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
    NamedLimit{"max_resources", &Limits::max_resources},
    NamedLimit{"max_decoded_memory", &Limits::max_decoded_memory},
    NamedLimit{"max_regexes", &Limits::max_regexes},
    NamedLimit{"max_regexes_length", &Limits::max_regexes_length},
    NamedLimit{"max_regexes_memory", &Limits::max_regexes_memory},
    NamedLimit{"max_file_bytes", &Limits::max_file_bytes},
    NamedLimit{"max_file_values", &Limits::max_file_values},
};

/// Of one resource; the rest is counted. A NACK must fit into a request.
inline constexpr std::size_t kMaxListedErrors = 32;
/// Of one resource: the parser stops to look for more.
inline constexpr std::size_t kManyErrors = 1000;
/// Of one response, in its NACK; the rest is counted. As many are kept of resources without a name.
inline constexpr std::size_t kMaxKeptErrors = 16;
/// Of the errors of one response's resources together, in bytes: the texts of the others are not
/// kept.
inline constexpr std::size_t kMaxKeptErrorText = std::size_t{256} << 10U;
/// Of the errors of one response together, in bytes.
inline constexpr std::size_t kMaxNackDetailLength = std::size_t{256} << 10U;
/// Of a value that is quoted in an error, in bytes.
inline constexpr std::size_t kMaxQuotedLength = 128;
/// Of what a server says of a resource that it does not send (A88), in bytes; the rest is cut off.
inline constexpr std::size_t kMaxResourceErrorLength = 1024;

}  // namespace signalbox::xds
