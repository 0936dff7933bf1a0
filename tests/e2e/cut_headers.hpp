// SPDX-License-Identifier: Apache-2.0
//
// cut_headers — the bytes of an HTTP/2 server that cuts its headers off, refuses a call, or goes
// away (RFC 9113).
//
//   header_block ─▶ http2_frame ─▶ TalkingSocket's turns ─▶ the call

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/talking_socket.hpp"

namespace signalbox::test {

using Http2Headers = std::vector<std::pair<std::string, std::string>>;

/// A frame as RFC 9113, 4.1 has it. By default all flags are clear, also END_HEADERS and
/// END_STREAM.
inline std::string http2_frame(std::uint8_t type,
                               std::uint8_t stream,
                               const std::string& payload,
                               std::uint8_t flags = 0) {
  std::string frame(9, '\0');
  frame[1] = static_cast<char>(payload.size() >> 8U);
  frame[2] = static_cast<char>(payload.size());
  frame[3] = static_cast<char>(type);
  frame[4] = static_cast<char>(flags);
  frame[8] = static_cast<char>(stream);
  return frame + payload;
}

/// The empty SETTINGS frame that a server sends first.
inline std::string http2_settings() {
  constexpr std::uint8_t kSettings = 4;
  return http2_frame(kSettings, 0, "");
}

/// SETTINGS and WINDOW_UPDATE: each call gets a flow-control window of 1 MiB, and the window of the
/// connection grows by 1 MiB.
inline std::string http2_wide_settings() {
  constexpr std::uint8_t kSettings = 4;
  constexpr std::uint8_t kWindowUpdate = 8;
  const std::string mebibyte("\0\x10\0\0", 4);
  const std::string initial_window_size("\0\4", 2);
  return http2_frame(kSettings, 0, initial_window_size + mebibyte) +
         http2_frame(kWindowUpdate, 0, mebibyte);
}

/// ":status: 200", then literals without indexing (RFC 7541, 6.2.2).
inline std::string header_block(const Http2Headers& headers) {
  std::string block = "\x88";
  for (const auto& [name, value] : headers) {
    block.append(1, '\0').append(1, static_cast<char>(name.size())).append(name);
    block.append(1, static_cast<char>(value.size())).append(value);
  }
  return block;
}

/// A HEADERS frame without END_HEADERS for a connection's first call: more headers must follow.
inline std::string headers_unfinished(const std::string& block) {
  constexpr std::uint8_t kHeaders = 1;
  return http2_frame(kHeaders, 1, block);
}

/// The response to a connection's first call that is only a status (Trailers-Only).
inline std::string trailers_only(int status, const std::string& message) {
  constexpr std::uint8_t kHeaders = 1;
  constexpr std::uint8_t kEndStreamAndHeaders = 5;
  const std::string block = header_block({{"content-type", "application/grpc"},
                                          {"grpc-status", std::to_string(status)},
                                          {"grpc-message", message}});
  return http2_frame(kHeaders, 1, block, kEndStreamAndHeaders);
}

/// Error codes of RST_STREAM (RFC 9113, 7).
enum class Http2Error : std::uint8_t { kNone = 0, kRefusedStream = 7, kCancel = 8 };

/// An RST_STREAM frame for a connection's first call.
inline std::string rst_stream(Http2Error error) {
  constexpr std::uint8_t kRstStream = 3;
  return http2_frame(kRstStream, 1, std::string(3, '\0') + static_cast<char>(error));
}

/// GOAWAY. The server has not processed, and will not process, calls with numbers above
/// `last_stream`. A connection's first call has the number 1.
inline std::string goaway(std::uint8_t last_stream) {
  constexpr std::uint8_t kGoaway = 7;
  const std::string no_error(4, '\0');
  return http2_frame(kGoaway, 0, std::string(3, '\0') + static_cast<char>(last_stream) + no_error);
}

/// A SETTINGS frame of an invalid length: the client ends the connection.
inline std::string bad_frame() {
  constexpr std::uint8_t kSettings = 4;
  return http2_frame(kSettings, 0, "bad");
}

/// The turns of a server that sends SETTINGS at once. When it has received `text`, it sends
/// response headers that are cut off after `headers`.
inline std::vector<TalkingSocket::Turn> cut_amid_headers(const std::string& text,
                                                         const Http2Headers& headers) {
  return {{"", http2_settings()}, {text, headers_unfinished(header_block(headers))}};
}

}  // namespace signalbox::test
