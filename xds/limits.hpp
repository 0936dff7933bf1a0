// SPDX-License-Identifier: Apache-2.0
//
// How much of anything a control plane may send us. What goes beyond is an error of that
// resource, with the field and what was found, like any other.
//
//   bytes ─▶ xds/parse (these limits) ─▶ validated resource
//
// They are far above what a real deployment needs, and low enough that no single resource takes
// the process down.

#pragma once

#include <cstddef>

namespace signalbox::xds {

inline constexpr std::size_t kMaxEndpointsPerCluster = 100'000;
/// In all virtual hosts of a route configuration together.
inline constexpr std::size_t kMaxRoutes = 10'000;
/// Of resources, clusters, filters and domains, in bytes.
inline constexpr std::size_t kMaxNameLength = 1024;
inline constexpr std::size_t kMaxRegexLength = 4096;
/// How often an Any may be wrapped in another (Resource, FilterConfig).
inline constexpr std::size_t kMaxAnyNesting = 32;
/// A load_balancing_policy inside another (A52).
inline constexpr std::size_t kMaxLbPolicyNesting = 16;
/// Of one resource; the rest is counted. A NACK must fit into a request.
inline constexpr std::size_t kMaxListedErrors = 32;
/// Of the errors of one response together, in bytes.
inline constexpr std::size_t kMaxNackDetailLength = 256 * 1024;
/// Of a value that is quoted in an error, in bytes.
inline constexpr std::size_t kMaxQuotedLength = 128;

}  // namespace signalbox::xds
