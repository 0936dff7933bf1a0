// SPDX-License-Identifier: Apache-2.0
//
// Limits on the configuration that a control plane may send. A value beyond a limit is an error of
// its resource; a message or a file that is too long is an error as a whole. The error has the name
// of the limit. Endpoints that get no calls (A27) are left out instead, without an error.
//
//   bytes ─▶ xds/parse (these limits) ─▶ validated resource, or Rejection{kLimit, "max_routes"}
//
// The limits are far above the needs of a real deployment, and low enough to keep a single resource
// from taking the process down. RuntimeOptions::limits changes them, and so does
// `signalbox check --limit NAME=NUMBER`. max_resources, max_clusters of a response, and
// max_decoded_memory are applied before resources are decoded. Limits on entries of one resource
// are applied before the entries are validated.

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

/// The limits. An error text calls a limit by the name of its member here, such as "max_routes".
struct Limits {
  /// Size of one DiscoveryResponse, in bytes.
  std::size_t max_message_bytes = kMaxMessageBytes;
  /// Clusters in one CDS response, in one aggregate cluster, or in one route.
  std::size_t max_clusters = kMaxClusters;
  /// Endpoints of one cluster.
  std::size_t max_endpoints = kMaxEndpointsPerCluster;
  /// Routes in all virtual hosts of a route configuration together.
  std::size_t max_routes = kMaxRoutes;
  /// Length of a name (resource, cluster, filter, header, domain and the like), in bytes.
  std::size_t max_name_length = kMaxNameLength;
  /// Length of one RE2 pattern, in bytes.
  std::size_t max_regex_length = kMaxRegexLength;
  /// Memory of one compiled RE2 pattern, in bytes. Values above kMostRegexMemory count as
  /// kMostRegexMemory.
  std::size_t max_regex_memory = kMaxRegexMemory;
  /// Nested wrappers around one Any (Resource, FilterConfig).
  std::size_t max_any_nesting = kMaxAnyNesting;
  /// Nested load_balancing_policy messages (A52).
  std::size_t max_lb_policy_nesting = kMaxLbPolicyNesting;
  /// Health checks of one cluster. Each check is run against each endpoint of the cluster that is
  /// probed.
  std::size_t max_health_checks = kMaxHealthChecks;
  /// Resources in one response, or in one resource file.
  std::size_t max_resources = kMaxResources;
  /// Memory of all decoded resources of one response together, in bytes. A message inside an Any
  /// counts here by its bytes alone; once decoded, each such message has the same limit on its own.
  /// The memory of a resource is estimated before the resource is decoded. A plain endpoint takes
  /// some 400 bytes.
  std::size_t max_decoded_memory = kMaxDecodedMemory;
  /// Different RE2 patterns in one response.
  std::size_t max_regexes = kMaxRegexes;
  /// Total length of all different RE2 patterns of one response, in bytes.
  std::size_t max_regexes_length = kMaxRegexesLength;
  /// Total memory of all different compiled RE2 patterns of one response, in bytes.
  std::size_t max_regexes_memory = kMaxRegexesMemory;
  /// Size of one resource file, in bytes.
  std::size_t max_file_bytes = kMaxFileBytes;
  /// Values (objects, lists, scalars) in one resource file, after its aliases are expanded.
  std::size_t max_file_values = kMaxFileValues;

  friend bool operator==(const Limits&, const Limits&) = default;
};

struct NamedLimit {
  absl::string_view name;
  std::size_t Limits::* member;
};

/// Every limit with its name in errors.
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

/// Errors listed for one resource; further errors are only counted, so that the NACK with the list
/// fits into one request.
inline constexpr std::size_t kMaxListedErrors = 32;
/// Errors of one resource after which the parser stops looking for more.
inline constexpr std::size_t kManyErrors = 1000;
/// Resource errors listed in the NACK of one response, or for one resource file; further errors are
/// only counted. The errors kept for resources without a name have the same limit.
inline constexpr std::size_t kMaxKeptErrors = 16;
/// Total length of the errors kept for the resources of one response, in bytes. Texts beyond it are
/// replaced by a short one.
inline constexpr std::size_t kMaxKeptErrorText = std::size_t{256} << 10U;
/// Length of the errors listed in one NACK, in bytes.
inline constexpr std::size_t kMaxNackDetailLength = std::size_t{256} << 10U;
/// Length of a value that is quoted in an error, in bytes.
inline constexpr std::size_t kMaxQuotedLength = 128;
/// Length of a server's error text for a resource that it does not send (A88), in bytes. The rest
/// is cut off.
inline constexpr std::size_t kMaxResourceErrorLength = 1024;

}  // namespace signalbox::xds
