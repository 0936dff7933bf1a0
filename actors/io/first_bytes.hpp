// SPDX-License-Identifier: Apache-2.0
//
// first_bytes — what a server's first bytes say about the server.
//
//   socket_dialer: the bytes so far ─▶ [judge_first_bytes] ─▶ hand over, wait, or fail with a text
//
// An HTTP/2 server begins with a SETTINGS frame (RFC 9113, 3.4). Many servers send it as soon as
// they accept a connection; others wait for the client's preface and send nothing before.
//
// Pure: no I/O, no time.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::actors {

struct FirstBytes {
  enum class Kind {
    kIncomplete,  ///< These may become the bytes of an HTTP/2 server.
    kSettings,    ///< A whole SETTINGS frame: the server speaks HTTP/2.
    kOther,       ///< The server does not speak HTTP/2, or does not serve.
  };

  Kind kind = Kind::kIncomplete;
  /// What the server has sent so far, as a part of an error text; empty for kSettings.
  std::string text = {};
  /// For kSettings: the server's MAX_CONCURRENT_STREAMS. nullopt: there is none among the first
  /// bytes, or it is 0. A server that says 0 will say another number soon, which only gRPC sees.
  std::optional<std::uint32_t> stream_limit = {};

  friend bool operator==(const FirstBytes&, const FirstBytes&) = default;
};

/// As many first bytes are enough for the answer. Of a longer SETTINGS frame, only so many bytes
/// are awaited.
inline constexpr std::size_t kMostFirstBytes = 1024;

/// Judges all bytes that the server has sent so far.
FirstBytes judge_first_bytes(absl::string_view bytes);

}  // namespace signalbox::actors
