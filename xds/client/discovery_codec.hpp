// SPDX-License-Identifier: Apache-2.0
//
// discovery_codec — encodes the requests of an ADS stream, and declares the decoder of responses.
//
//   ads_session ─▶ DiscoveryRequest ─▶ bytes        bytes ─▶ ResponseDecoder ─▶ ads_session
//
// The decoder is injected (decode_in_parts of xds/parse, or a test's own), so that AdsSession
// does not depend on the parsers of resources.

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

/// One request. Its names replace the previous names of the type. With `rejection` it is a NACK of
/// the response with `nonce`. Without, it is an ACK of that response, a change of names, or both.
struct DiscoveryRequest {
  ResourceType type = ResourceType::kListener;
  std::string version;  ///< The last accepted version of the type; empty: none.
  /// The nonce of the type's last response; empty: no response on this stream yet.
  std::string nonce;
  std::set<std::string> names;
  std::string node;  ///< Serialised; only in the first request of a stream.
  /// The error text of a NACK (INVALID_ARGUMENT); empty: the request is no NACK.
  std::string rejection;
};

std::string encode(const DiscoveryRequest& request);

/// Begins to decode a response, part by part, so that a long response does not block other events.
/// The result is an error if no ACK or NACK is possible: UNIMPLEMENTED for a type that is never
/// requested, RESOURCE_EXHAUSTED for too many bytes, any other code for an invalid
/// DiscoveryResponse.
using ResponseDecoder = std::function<Decoding(std::string bytes)>;

}  // namespace signalbox::xds
