// SPDX-License-Identifier: Apache-2.0
//
// The messages of grpc.health.v1.Health/Check, the call that asks a gRPC server for its health.
//
//   actors/io/grpc_prober ─▶ [health_request] ─ bytes ─▶ server
//                         ◀─ [is_serving] ◀──── bytes ── server

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::xds {

/// A serialised HealthCheckRequest. An empty `service` asks for the server as a whole.
std::string health_request(const std::string& service);

/// Whether a serialised HealthCheckResponse says SERVING. False also for bytes that are no message.
bool is_serving(absl::string_view response);

}  // namespace signalbox::xds
