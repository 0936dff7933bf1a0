// SPDX-License-Identifier: Apache-2.0
//
// decode_at_once — a decoder of xDS responses that decodes each response in one part.
//
//   decode(bytes) ─▶ [decode_at_once] ─▶ xds::ResponseDecoder ─▶ AdsSession

#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

#include "xds/client/discovery_codec.hpp"

namespace signalbox::xds {

template <typename Decode>
ResponseDecoder decode_at_once(Decode decode) {
  return [decode = std::move(decode)](std::string bytes) -> Decoding {
    return [decode, bytes = std::move(bytes)]() mutable {
      return std::optional<absl::StatusOr<DecodedResponse>>(decode(bytes));
    };
  };
}

}  // namespace signalbox::xds
