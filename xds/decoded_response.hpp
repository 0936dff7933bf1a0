// SPDX-License-Identifier: Apache-2.0
//
// DecodedResponse — one DiscoveryResponse after parsing: its resources, and how to answer it.
//
//   xds/parse/response_parser ─▶ [DecodedResponse] ─▶ xds/client/ads_session ─▶ ACK or NACK

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
  /// The first errors of the response, and the number of further errors, for error_detail. Empty:
  /// the response is to be ACKed.
  std::string nack_detail;
};

/// Decodes one response part by part. Each call decodes one part and returns nullopt. The call that
/// decodes the last part returns the result, or an error; no further call is allowed after it. Once
/// the parsing was abandoned, all calls return nullopt.
using Decoding = std::function<std::optional<absl::StatusOr<DecodedResponse>>()>;

}  // namespace signalbox::xds
