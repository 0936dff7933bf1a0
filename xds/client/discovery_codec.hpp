// SPDX-License-Identifier: Apache-2.0
//
// discovery_codec — the envelopes of an ADS stream: what we write, and what a decoder makes of
// what we read.
//
//   ads_session ─▶ DiscoveryRequest ─▶ bytes        bytes ─▶ ResponseDecoder ─▶ ads_session
//
// The decoder is given from outside (decode_response of xds/parse, or what a test makes up), so
// that the session knows no resource type.

#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "messages/xds_events.hpp"
#include "xds/decoded_response.hpp"

namespace signalbox::xds {

/// One request: a subscription, an ACK (`nonce`) or a NACK (`nonce` and `rejection`).
struct DiscoveryRequest {
  ResourceType type = ResourceType::kListener;
  std::string version;  ///< The last one that was accepted; empty: none yet.
  std::string nonce;    ///< Of the response that is answered; empty: none on this stream yet.
  std::set<std::string> names;
  std::string node;       ///< Serialised; only in the first request of a stream.
  std::string rejection;  ///< Not empty: a NACK, and why (INVALID_ARGUMENT).
};

std::string encode(const DiscoveryRequest& request);

/// Begins to decode a response, part by part, so that a long one holds nothing up. The result is an
/// error where no ACK or NACK is possible: UNIMPLEMENTED for a type that we never ask for,
/// RESOURCE_EXHAUSTED for too many bytes, any other code for what is no envelope.
using ResponseDecoder = std::function<Decoding(std::string bytes)>;

}  // namespace signalbox::xds
