// SPDX-License-Identifier: Apache-2.0
//
// envoy_cookie — a session's cookie in Envoy's form, a protobuf message.
//
//   decoded cookie ─▶ read_envoy_cookie ─▶ address, cluster
//   address, cluster, expires ─▶ write_envoy_cookie ─▶ text
//
//   message Cookie {
//     string address = 1;  // "ip:port"
//     uint64 expires = 2;  // In seconds.
//     string cluster = 3;  // Signalbox's own: Envoy passes over it.
//   }
//
// The code does not use the protobuf library: lb does not depend on it, and a message of three
// fields is easily read without it.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::lb {

/// The content of a cookie in Envoy's form. The views point into the text that was read.
struct EnvoyCookie {
  absl::string_view address;  ///< The last one if repeated, as in protobuf. Empty: none.
  absl::string_view cluster;
  /// True: the message has only the three fields above, each at most once.
  bool is_plain = true;
};

/// Reads a cookie in Envoy's form; nullopt: the text is no protobuf message.
std::optional<EnvoyCookie> read_envoy_cookie(absl::string_view text);

/// Writes the message into `text`, which keeps its memory, without `expires` if that is 0, and
/// without the cluster if that is empty.
void write_envoy_cookie(absl::string_view address,
                        absl::string_view cluster,
                        std::uint64_t expires,
                        std::string& text);

}  // namespace signalbox::lb
