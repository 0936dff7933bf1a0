// SPDX-License-Identifier: Apache-2.0
//
// envoy_cookie — Envoy's form of a session's cookie, a protobuf message.
//
//   decoded cookie ─▶ read_envoy_cookie ─▶ address, cluster
//   address, cluster, expires ─▶ write_envoy_cookie ─▶ text
//
//   message Cookie {
//     string address = 1;  // "ip:port"
//     uint64 expires = 2;  // In seconds.
//     string cluster = 3;  // Ours: Envoy passes over it.
//   }
//
// lb has no protobuf, and three fields need none.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::lb {

/// What a protobuf reader finds in a text. The views are in that text.
struct EnvoyCookie {
  absl::string_view address;  ///< Of several the last, as protobuf has it. Empty: none.
  absl::string_view cluster;
  /// The message has no other fields than the three above, and each at most once.
  bool is_plain = true;
};

/// nullopt: the text is no protobuf message.
std::optional<EnvoyCookie> read_envoy_cookie(absl::string_view text);

/// Into `text`, which keeps its memory. `expires`: 0 is left out, and so is an empty cluster.
void write_envoy_cookie(absl::string_view address,
                        absl::string_view cluster,
                        std::uint64_t expires,
                        std::string& text);

}  // namespace signalbox::lb
