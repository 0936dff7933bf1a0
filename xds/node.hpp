// SPDX-License-Identifier: Apache-2.0
//
// make_node — the client's Node message: the bootstrap's node, with user agent and client features
// (gRFC A27).
//
//   Bootstrap::node ──▶ [make_node] ──▶ `node` of a stream's first request

#pragma once

#include "absl/status/statusor.h"

#include "signalbox/envoy/config/core/v3/base.pb.h"
#include "xds/bootstrap.hpp"

namespace signalbox::xds {

/// `overprovisions`: the runtime's options select tiered mode, which spreads calls over priorities
/// by health. If false, the node says that the control plane must not rely on such spreading
/// (ENV-26). A cluster that selects tiered mode by its metadata does not change the node: the
/// author of that metadata knows the mode.
///
/// Fails if the metadata is no JSON object or is nested too deeply for a message. parse_bootstrap
/// refuses such metadata.
absl::StatusOr<envoy::config::core::v3::Node> make_node(const NodeConfig& config,
                                                        bool overprovisions = false);

}  // namespace signalbox::xds
