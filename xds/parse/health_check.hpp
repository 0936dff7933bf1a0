// SPDX-License-Identifier: Apache-2.0
//
// CDS health_checks: how the endpoints of a cluster are probed.
//
//   Cluster.health_checks ─▶ [parse_health_checks] ─▶ HealthChecks ─┬▶ subchannel map
//                                                                   └▶ health_checker
//
// All are validated. A check that we cannot do as it is asked for is then left out, so that it
// makes no cluster unusable that gRPC, which reads none of them, would take (decision 62).
//
// Source: Envoy's health_check.proto; its validation rules are ours.

#pragma once

#include "google/protobuf/repeated_ptr_field.h"

#include "messages/cluster_settings.hpp"
#include "signalbox/envoy/config/core/v3/health_check.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

using HealthCheckProtos =
    ::google::protobuf::RepeatedPtrField<envoy::config::core::v3::HealthCheck>;

/// Null where nothing is to be probed. `top` is the cluster. With `has_tls`, connections to its
/// endpoints are secured.
HealthChecksPtr parse_health_checks(const HealthCheckProtos& protos,
                                    bool has_tls,
                                    const Field& top);

}  // namespace signalbox::xds
