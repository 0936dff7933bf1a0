// SPDX-License-Identifier: Apache-2.0
//
// CDS: a serialised envoy.config.cluster.v3.Cluster becomes a Cluster.
//
//   bytes ─▶ [parse_cluster] ─▶ Cluster ─▶ cluster graph
//
// The fields beside the discovery are validated for every type of cluster. An aggregate uses only
// two of them, aggregate_mode (metadata) and panic_threshold; its leaves have their own settings.
//
// Two fields are not read for an aggregate: health_checks and the LB policy. Each leaf has its own
// LB policy (A75), unless ParseOptions::keep_aggregate_lb_policy is set.
//
// Source: gRFC A27 (CDS), A37 (validation), A32 (circuit breaker), A50 (outlier
// detection), A52 (LB policy), A55 (override_host_status), A75 (idle_timeout).

#pragma once

#include "absl/strings/string_view.h"

#include "messages/xds_events.hpp"
#include "xds/parse/parse_options.hpp"

namespace signalbox::xds {

/// The name is empty if it could not be read.
ReceivedResource parse_cluster(absl::string_view bytes, const ParseOptions& options = {});

}  // namespace signalbox::xds
