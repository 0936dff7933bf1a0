// SPDX-License-Identifier: Apache-2.0
//
// DecodedResponse — one DiscoveryResponse after parsing: what came, and how to answer.
//
//   xds/parse/decode_response ─▶ [DecodedResponse] ─▶ xds/client/ads_session ─▶ ACK or NACK

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "messages/xds_events.hpp"

namespace signalbox::xds {

struct DecodedResponse {
  ResourcesReceived received;
  std::string nonce;
  /// All errors of the response, for error_detail. Empty: it is to be ACKed.
  std::string nack_detail;
};

/// A response that is being decoded: each call decodes a part of it, and the last one returns the
/// result. There is no further call.
using Decoding = std::function<std::optional<absl::StatusOr<DecodedResponse>>()>;

}  // namespace signalbox::xds
