// SPDX-License-Identifier: Apache-2.0
#include "actors/io/first_bytes.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace signalbox::actors {
namespace {

// The parts of a frame's header (RFC 9113, 4.1): length, type, flags, stream.
constexpr std::size_t kType = 3;
constexpr std::size_t kFlags = 4;
constexpr std::size_t kHeader = 9;
constexpr std::uint8_t kSettingsType = 4;
constexpr std::uint8_t kGoawayType = 7;
constexpr std::uint8_t kAck = 1;
constexpr std::size_t kSettingBytes = 6;
constexpr std::uint32_t kMaxConcurrentStreams = 3;
constexpr std::size_t kLargestFrame = 16'384;  // Until SETTINGS allow more.

std::uint32_t number_at(absl::string_view bytes, std::size_t at, std::size_t size) {
  std::uint32_t number = 0;
  for (const char byte : bytes.substr(at, size))
    number = (number << 8U) | static_cast<std::uint8_t>(byte);
  return number;
}

FirstBytes other(std::string text) {
  return {FirstBytes::Kind::kOther, std::move(text)};
}

FirstBytes incomplete(absl::string_view bytes) {
  if (bytes.empty()) return {FirstBytes::Kind::kIncomplete, "the server has sent nothing"};
  return {FirstBytes::Kind::kIncomplete,
          absl::StrCat("the server has sent ",
                       bytes.size(),
                       bytes.size() == 1 ? " byte" : " bytes",
                       ", not a whole SETTINGS frame")};
}

// The first line, for an error text.
std::string quoted(absl::string_view bytes) {
  constexpr std::size_t kLongest = 40;
  const absl::string_view line = bytes.substr(0, bytes.find_first_of("\r\n"));
  return absl::StrCat("\"", absl::CHexEscape(line.substr(0, kLongest)), "\"");
}

// A first byte above 0 would begin a frame of 64 KiB or more, so it begins no HTTP/2.
FirstBytes no_frame(absl::string_view bytes) {
  constexpr absl::string_view kHttp1 = "HTTP/1.";
  constexpr std::uint8_t kTlsAlert = 0x15;
  constexpr std::uint8_t kTlsHandshake = 0x16;
  if (absl::StartsWith(bytes, kHttp1))
    return other(absl::StrCat("the server speaks HTTP/1, not HTTP/2: ", quoted(bytes)));
  if (absl::StartsWith(kHttp1, bytes)) return incomplete(bytes);
  const auto first = static_cast<std::uint8_t>(bytes.front());
  if (first == kTlsAlert || first == kTlsHandshake) return other("the server speaks TLS");
  return other(absl::StrCat("the server does not speak HTTP/2: ", quoted(bytes)));
}

FirstBytes goaway(absl::string_view bytes) {
  constexpr std::size_t kErrorCode = kHeader + 4;
  if (bytes.size() < kErrorCode + 4) return other("the server sent GOAWAY instead of SETTINGS");
  return other(absl::StrCat("the server sent GOAWAY instead of SETTINGS, with error code ",
                            number_at(bytes, kErrorCode, 4)));
}

// The last MAX_CONCURRENT_STREAMS among the settings (RFC 9113, 6.5). `settings` may end with a
// part of a setting.
std::optional<std::uint32_t> stream_limit_in(absl::string_view settings) {
  constexpr std::size_t kNumber = 2;
  std::optional<std::uint32_t> limit;
  for (std::size_t at = 0; at + kSettingBytes <= settings.size(); at += kSettingBytes) {
    if (number_at(settings, at, kNumber) == kMaxConcurrentStreams)
      limit = number_at(settings, at + kNumber, kSettingBytes - kNumber);
  }
  return limit == 0U ? std::nullopt : limit;
}

}  // namespace

FirstBytes judge_first_bytes(absl::string_view bytes) {
  if (bytes.empty()) return incomplete(bytes);
  if (bytes.front() != '\0') return no_frame(bytes);
  if (bytes.size() <= kType) return incomplete(bytes);
  const std::size_t length = number_at(bytes, 0, kType);
  const std::uint32_t type = number_at(bytes, kType, 1);
  if (type == kGoawayType) return goaway(bytes);
  if (type != kSettingsType) {
    return other(absl::StrCat(
        "the server's first bytes are an HTTP/2 frame of type ", type, ", not SETTINGS"));
  }
  if (length % kSettingBytes != 0 || length > kLargestFrame)
    return other(absl::StrCat("the server's SETTINGS frame has the invalid length ", length));
  if (bytes.size() < kHeader) return incomplete(bytes);
  if ((number_at(bytes, kFlags, 1) & kAck) != 0 || number_at(bytes, kFlags + 1, 4) != 0)
    return other("the server's first SETTINGS frame is an acknowledgement, or has a stream");
  if (bytes.size() < std::min(kHeader + length, kMostFirstBytes)) return incomplete(bytes);
  return {.kind = FirstBytes::Kind::kSettings,
          .stream_limit = stream_limit_in(bytes.substr(kHeader, length))};
}

}  // namespace signalbox::actors
