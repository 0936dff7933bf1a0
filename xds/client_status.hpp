// SPDX-License-Identifier: Apache-2.0
//
// client_status — a ResourceDump as a message of the client status discovery service (CSDS).
//
//   client_core ─▶ ResourceDump ─▶ [client_status] ─▶ channel/services/csds_service
//
// The response has one ClientConfig, because a runtime is one xDS client. Its resources are those
// of /config_dump, redacted in the same way (redacted_resource.hpp).
//
// Pure functions, for any thread.
//
// Source: gRFC A40, A88; envoy/service/status/v3/csds.proto.

#pragma once

#include "absl/status/statusor.h"

#include "messages/resource_dump.hpp"
#include "signalbox/envoy/service/status/v3/csds.pb.h"

namespace signalbox::xds {

/// INVALID_ARGUMENT: the request has node_matchers; a client knows only its own node.
absl::Status check(const envoy::service::status::v3::ClientStatusRequest& request);

/// Precondition: check(request) is OK.
envoy::service::status::v3::ClientStatusResponse client_status(
    const ResourceDump& dump, const envoy::service::status::v3::ClientStatusRequest& request);

}  // namespace signalbox::xds
