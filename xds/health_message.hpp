// SPDX-License-Identifier: Apache-2.0
//
// The messages of grpc.health.v1.Health/Check.
//
//   prober ─▶ health_request ─▶ server ─▶ [is_serving] ─▶ fit or not

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::xds {

/// A serialised HealthCheckRequest. An empty `service` asks for the server as a whole.
std::string health_request(const std::string& service);

/// Whether a serialised HealthCheckResponse says SERVING.
bool is_serving(absl::string_view response);

}  // namespace signalbox::xds
