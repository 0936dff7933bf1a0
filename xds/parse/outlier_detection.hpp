// SPDX-License-Identifier: Apache-2.0
//
// Cluster.outlier_detection: when an endpoint that answers badly is set aside.
//
//   xds/parse/cluster ─▶ [parse_outlier_detection] ─▶ Cluster::outlier_detection
//
//   enforcing_success_rate         0: no such algorithm; not set: 100
//   enforcing_failure_percentage   0 or not set: no such algorithm
//
// The fields of an algorithm that is off are not looked at; the algorithms that gRPC does not have
// (consecutive 5xx and the like) count as off.
//
// Source: gRFC A50 (xDS integration, validation).

#pragma once

#include "messages/cluster_settings.hpp"
#include "signalbox/envoy/config/cluster/v3/outlier_detection.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

OutlierDetection parse_outlier_detection(const envoy::config::cluster::v3::OutlierDetection& proto,
                                         const Field& field);

}  // namespace signalbox::xds
