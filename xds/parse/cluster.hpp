// SPDX-License-Identifier: Apache-2.0
//
// CDS: a serialised envoy.config.cluster.v3.Cluster becomes a Cluster.
//
//   bytes ─▶ [parse_cluster] ─▶ Cluster ─▶ cluster graph
//
// All that a cluster has beside its discovery is validated whatever its type, and is a leaf's.
//
// An aggregate's own LB policy is not looked at: each leaf brings its own (A75), unless
// ParseOptions keep it for the leaves.
//
// Source: gRFC A27 (CDS), A37 (validation), A32 (circuit breaker), A50 (outlier
// detection), A52 (LB policy), A55 (override_host_status), A75 (idle_timeout).

#pragma once

#include "absl/strings/string_view.h"

#include "messages/xds_events.hpp"
#include "xds/parse/parse_options.hpp"

namespace signalbox::xds {

/// The name is empty where it could not be read.
ReceivedResource parse_cluster(absl::string_view bytes, const ParseOptions& options = {});

}  // namespace signalbox::xds
