// SPDX-License-Identifier: Apache-2.0
//
// Cluster.outlier_detection: the conditions for the ejection of an endpoint.
//
//   xds/parse/cluster ─▶ [parse_outlier_detection] ─▶ Cluster::outlier_detection
//
//   enforcing_success_rate         0: the algorithm is off; not set: 100
//   enforcing_failure_percentage   0 or not set: the algorithm is off
//
// The other fields of an algorithm that is off are not validated. Algorithms that gRPC does not
// have (consecutive 5xx and the like) are ignored.
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
