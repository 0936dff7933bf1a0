// SPDX-License-Identifier: Apache-2.0
//
// ads_messages — what recordings read in the messages of ADS streams.
//
//   bytes of a request  ─▶ [read_request]  ─▶ SeenRequest
//   bytes of a response ─▶ [read_response] ─▶ SeenResponse ─▶ [encode_response] ─▶ bytes
//
// Resources are not parsed: only their names are read.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "messages/resource.hpp"

namespace signalbox::xds {

/// A DiscoveryRequest without the node, which may have secrets, and without the text of an error.
struct SeenRequest {
  ResourceType type = ResourceType::kListener;
  std::string nonce;     ///< Of the type's last response; empty: none came on this stream.
  bool refused = false;  ///< The request is a NACK of that response.
  std::vector<std::string> names;
};

struct SeenResponse {
  ResourceType type = ResourceType::kListener;
  std::string version;
  std::string nonce;
  /// Serialised Any messages by canonical name. Resources without a readable name share the name
  /// "".
  std::map<std::string, std::string> resources;

  bool operator==(const SeenResponse&) const = default;
};

/// nullopt: the bytes are no message, or its type is none that signalbox asks for.
std::optional<SeenRequest> read_request(absl::string_view bytes);
std::optional<SeenResponse> read_response(absl::string_view bytes);

std::string encode_response(const SeenResponse& response);

}  // namespace signalbox::xds
