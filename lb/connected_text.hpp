// SPDX-License-Identifier: Apache-2.0
//
// connected_text — the line that tells operators that a target is served for the first time.
//
//   channel actor: the first READY snapshot ─▶ [connected_text] ─▶ log
//
//   connected: 4 endpoints in 2 localities, version 7

#pragma once

#include <string>

#include "messages/xds_config.hpp"

namespace signalbox::lb {

/// Counts the endpoints in Priority::localities (HEALTHY, UNKNOWN and DRAINING ones) and their
/// localities, over all clusters of the configuration. If the types of resources have different
/// versions, the text has the version of each type that has one.
std::string connected_text(const XdsConfig& config, const ResourceVersions& versions);

}  // namespace signalbox::lb
