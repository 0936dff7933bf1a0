// SPDX-License-Identifier: Apache-2.0
//
// recorded_bootstrap — the part of a bootstrap that a replay needs, as the JSON of a bootstrap.
//
//   Bootstrap ─▶ [recorded_bootstrap] ─▶ RecordingHeader::bootstrap ─▶ parse_bootstrap

#pragma once

#include <string>

#include "xds/bootstrap.hpp"

namespace signalbox::xds {

/// Left out are: credentials, the paths of certificates, and the metadata of the node, which may
/// have secrets. Servers that differ in their credentials are different servers (A47), so different
/// credentials have different placeholders. A replay opens no connection and no file.
std::string recorded_bootstrap(const Bootstrap& bootstrap);

}  // namespace signalbox::xds
