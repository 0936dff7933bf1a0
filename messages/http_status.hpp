// SPDX-License-Identifier: Apache-2.0
//
// The gRPC status of a response that has an HTTP status and no grpc-status. An HTTP status of 200
// gives UNKNOWN.
//
//   xds/parse/fault, lb/route/fault ─▶ [status_of_http]
//
// Source: gRPC's doc/http-grpc-status-mapping, gRFC A33.

#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace signalbox {

/// The HTTP statuses that a fault may have: [200, 600).
constexpr bool is_http_status(std::uint64_t status) {
  return status >= 200 && status < 600;
}

constexpr absl::StatusCode status_of_http(std::uint64_t status) {
  switch (status) {
    case 400:
      return absl::StatusCode::kInternal;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kUnimplemented;
    case 429:
    case 502:
    case 503:
    case 504:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kUnknown;
  }
}

/// The greatest code that gRPC knows: UNAUTHENTICATED.
inline constexpr std::uint32_t kLastStatusCode = 16;

}  // namespace signalbox
