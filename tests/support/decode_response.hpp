// SPDX-License-Identifier: Apache-2.0
//
// decode_response — parses a whole response in one call, as the tests of parsing need it.
//
//   bytes ─▶ [decode_response] ─▶ ResponseParser, part by part ─▶ DecodedResponse

#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "xds/decoded_response.hpp"
#include "xds/parse/known_resources.hpp"
#include "xds/parse/parse_options.hpp"
#include "xds/parse/response_parser.hpp"

namespace signalbox::xds {

/// For the errors see ResponseParser::go_on(); CANCELLED: the parsing was abandoned.
inline absl::StatusOr<DecodedResponse> decode_response(absl::string_view bytes,
                                                       const ParseOptions& options = {},
                                                       KnownResources* known = nullptr) {
  ResponseParser parser(bytes, options, known);
  for (;;) {
    if (auto result = parser.go_on()) return *std::move(result);
    if (is_abandoned(options)) return absl::CancelledError("the parsing was abandoned");
  }
}

}  // namespace signalbox::xds
