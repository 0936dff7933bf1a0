// SPDX-License-Identifier: Apache-2.0
//
// cut_amid_headers — what a server says whose connection ends in the middle of its answer's
// headers.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/talking_socket.hpp"

namespace signalbox::test {

/// RFC 9113, 4.1.
inline std::string http2_frame(std::uint8_t type, std::uint8_t stream, const std::string& payload) {
  std::string frame(9, '\0');  // All of its flags are clear: END_HEADERS is.
  frame[2] = static_cast<char>(payload.size());
  frame[3] = static_cast<char>(type);
  frame[8] = static_cast<char>(stream);
  return frame + payload;
}

/// What every server says first.
inline std::string http2_settings() {
  constexpr std::uint8_t kSettings = 4;
  return http2_frame(kSettings, 0, "");
}

/// To the first call on a connection, when a message with that text has come. `headers` are those
/// that come through.
inline std::vector<TalkingSocket::Turn> cut_amid_headers(
    const std::string& text, const std::vector<std::pair<std::string, std::string>>& headers) {
  constexpr std::uint8_t kHeaders = 1;
  std::string block = "\x88";  // ":status: 200", then literals without indexing (RFC 7541, 6.2.2).
  for (const auto& [name, value] : headers) {
    block.append(1, '\0').append(1, static_cast<char>(name.size())).append(name);
    block.append(1, static_cast<char>(value.size())).append(value);
  }
  return {{"", http2_settings()}, {text, http2_frame(kHeaders, 1, block)}};
}

}  // namespace signalbox::test
