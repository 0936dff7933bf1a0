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

/// Fails where the metadata is no JSON object or too deep for a message; parse_bootstrap refuses
/// such.
absl::StatusOr<envoy::config::core::v3::Node> make_node(const NodeConfig& config);

}  // namespace signalbox::xds
