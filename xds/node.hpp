// SPDX-License-Identifier: Apache-2.0
//
// How we introduce ourselves: the bootstrap's node, with what every client adds (gRFC A27).
//
//   Bootstrap::node ──▶ [make_node] ──▶ `node` of a stream's first request, of LRS and of CSDS

#pragma once

#include "absl/status/statusor.h"

#include "signalbox/envoy/config/core/v3/base.pb.h"
#include "xds/bootstrap.hpp"

namespace signalbox::xds {

/// `overprovisions`: by its runtime's own choice this client spreads calls over priorities by
/// health (tiered mode). Where it does not, the control plane is told that it must not count on
/// that (ENV-26); where a cluster's metadata asks for it, whoever wrote that knows.
///
/// Fails where the metadata is no JSON object or too deep for a message; parse_bootstrap refuses
/// such.
absl::StatusOr<envoy::config::core::v3::Node> make_node(const NodeConfig& config,
                                                        bool overprovisions = false);

}  // namespace signalbox::xds
