// SPDX-License-Identifier: Apache-2.0
//
// CDS health_checks: the active health checks of a cluster's endpoints.
//
//   Cluster.health_checks ─▶ [parse_health_checks] ─▶ HealthChecks ─┬▶ subchannel map
//                                                                   └▶ health_checker
//
// All checks are validated. A valid check that signalbox cannot perform as configured is then left
// out. gRPC reads no health checks, so such a check must not make a cluster unusable that gRPC
// accepts (decision 62).
//
// Source: Envoy's health_check.proto, with its validation rules.

#pragma once

#include "google/protobuf/repeated_ptr_field.h"

#include "messages/cluster_settings.hpp"
#include "signalbox/envoy/config/core/v3/health_check.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

using HealthCheckProtos =
    ::google::protobuf::RepeatedPtrField<envoy::config::core::v3::HealthCheck>;

/// Returns the usable checks; null if there are none, if there are too many (an error is added), or
/// if ParseOptions::health_checks is off. `top` is the cluster. `has_tls`: connections to its
/// endpoints use TLS.
HealthChecksPtr parse_health_checks(const HealthCheckProtos& protos,
                                    bool has_tls,
                                    const Field& top);

}  // namespace signalbox::xds
