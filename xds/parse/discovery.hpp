// SPDX-License-Identifier: Apache-2.0
//
// Parses the discovery of a cluster: the source of its endpoints.
//
//   xds/parse/cluster ─▶ [parse_discovery] ─▶ Cluster::discovery
//
//   type EDS           endpoints from EDS
//   type LOGICAL_DNS   endpoints from one name                     (A37)
//   cluster_type       aggregate: other clusters, by preference    (A37)
//
// Source: gRFC A27 (EDS), A37 (validation), A47 (xdstp names).

#pragma once

#include "messages/cluster.hpp"
#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// Sets `cluster.discovery` to the kind that the cluster's type asks for, or adds an error at a
/// field that is missing or invalid. Errors are, for example: an unknown type, EDS from a source
/// other than ADS or self, LOGICAL_DNS without exactly one endpoint, an aggregate without clusters.
/// `cluster.discovery` has no meaning if there is an error. `top` is the cluster's field.
void parse_discovery(const envoy::config::cluster::v3::Cluster& proto,
                     Cluster& cluster,
                     const Field& top);

}  // namespace signalbox::xds
