// SPDX-License-Identifier: Apache-2.0
//
// discovery_record — what tests ask about the history that a DiscoveryServer keeps.

#pragma once

#include <algorithm>
#include <string>

#include "absl/strings/string_view.h"

#include "xds/discovery_server.hpp"

namespace signalbox::xds {

/// The newest open stream's record of a type; nullptr if there is none.
inline const TypeRecord* newest(const DiscoveryRecord& record, absl::string_view type_url) {
  const auto stream = std::find_if(record.streams.rbegin(),
                                   record.streams.rend(),
                                   [](const StreamRecord& candidate) { return candidate.open; });
  if (stream == record.streams.rend()) return nullptr;
  const auto type = stream->types.find(std::string(type_url));
  return type == stream->types.end() ? nullptr : &type->second;
}

}  // namespace signalbox::xds
