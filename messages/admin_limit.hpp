// SPDX-License-Identifier: Apache-2.0
//
// AdminLimit — the counted limits of a runtime's own servers: the admin pages, /metrics, and the
// gRPC admin services.
//
//   http_door, http_server, channel/services ─▶ LimitHit(limit) ─▶ metrics/instruments

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace signalbox {

enum class AdminLimit : std::uint8_t {
  kHttpHeaders,      ///< The bytes of a request's headers.
  kHttpSilent,       ///< The time in which a connection must send its headers.
  kHttpWaiting,      ///< Connections that have not sent their headers yet.
  kHttpRequests,     ///< Requests under way.
  kHttpUnreadBytes,  ///< The bytes of responses that clients have not read.
  kHttpIdle,         ///< The time in which a client must read some of its response.
  kGrpcRequests,     ///< Requests that wait for the services' thread.
  kCsdsStreams,      ///< Open streams of CSDS.
  kHealthWatches,    ///< Open Watches of the health service.
  kHealthServices,   ///< Services in one List of the health service.
};

inline constexpr std::size_t kAdminLimits = 10;

inline constexpr std::array kHttpLimits{AdminLimit::kHttpHeaders,
                                        AdminLimit::kHttpSilent,
                                        AdminLimit::kHttpWaiting,
                                        AdminLimit::kHttpRequests,
                                        AdminLimit::kHttpUnreadBytes,
                                        AdminLimit::kHttpIdle};

inline constexpr std::array kGrpcLimits{AdminLimit::kGrpcRequests,
                                        AdminLimit::kCsdsStreams,
                                        AdminLimit::kHealthWatches,
                                        AdminLimit::kHealthServices};

/// Called when a limit refuses a request or stream, or ends a connection. Any thread may call it.
using LimitHit = std::function<void(AdminLimit limit)>;

}  // namespace signalbox
