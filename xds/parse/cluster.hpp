// SPDX-License-Identifier: Apache-2.0
//
// CDS: a serialised envoy.config.cluster.v3.Cluster becomes a Cluster.
//
//   bytes ─▶ [parse_cluster] ─▶ Cluster ─▶ cluster graph
//
// All fields except the discovery (the source of the endpoints) are validated for every type of
// cluster, with three exceptions. aggregate_mode (metadata) is read only for an aggregate.
// health_checks and the LB policy are not read for an aggregate, because its leaves have their own
// (A75).
//
// With ParseOptions::keep_aggregate_lb_policy the LB policy of an aggregate is read, and its leaves
// use that policy (A75-8). The other settings of an aggregate, except aggregate_mode and
// panic_threshold, have no effect.
//
// Source: gRFC A27 (CDS), A37 (validation), A32 (circuit breaker), A50 (outlier
// detection), A52 (LB policy), A55 (override_host_status), A75 (idle_timeout).

#pragma once

#include "absl/strings/string_view.h"

#include "messages/xds_events.hpp"
#include "xds/parse/parse_options.hpp"

namespace signalbox::xds {

/// Parses and checks a resource. The result's name is empty if the bytes have no readable name.
ReceivedResource parse_cluster(absl::string_view bytes, const ParseOptions& options = {});

}  // namespace signalbox::xds
