// SPDX-License-Identifier: Apache-2.0
#include "messages/log_line.hpp"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace signalbox {

absl::string_view to_string(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kNotice:
      return "notice";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "?";
}

absl::string_view to_string(LogKind kind) {
  switch (kind) {
    case LogKind::kConfigApplied:
      return "config_applied";
    case LogKind::kConfigRefused:
      return "config_refused";
    case LogKind::kControlPlane:
      return "control_plane";
    case LogKind::kPriority:
      return "priority";
    case LogKind::kEjection:
      return "ejection";
    case LogKind::kCertificate:
      return "certificate";
    case LogKind::kSession:
      return "session";
    case LogKind::kSecurity:
      return "security";
    case LogKind::kActor:
      return "actor";
    case LogKind::kCallObserver:
      return "call_observer";
    case LogKind::kEndpointLoad:
      return "endpoint_load";
    case LogKind::kRecording:
      return "recording";
  }
  return "?";
}

std::string text_of(const LogLine& line) {
  if (line.left_out == 0) return line.text;
  return absl::StrCat(line.text, " (", line.left_out, " like it were left out before)");
}

namespace {

// The length of the UTF-8 character at the beginning of the text; 0: it begins with no character.
std::size_t character_length(absl::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and numbers beyond Unicode's last code point are no characters.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F))
    return 0;
  return length;
}

// C0, DEL and C1 control characters.
bool is_control(absl::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  const bool is_c1 = first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
  return first < 0x20 || first == 0x7F || is_c1;
}

void append_escaped(absl::string_view bytes, std::string& line) {
  for (const char c : bytes) {
    if (c == '\n')
      line += "\\n";
    else if (c == '\r')
      line += "\\r";
    else if (c == '\t')
      line += "\\t";
    else
      absl::StrAppendFormat(&line, "\\x%02x", static_cast<unsigned char>(c));
  }
}

}  // namespace

std::string one_line(absl::string_view text) {
  std::string line;
  line.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const absl::string_view character = text.substr(0, length == 0 ? 1 : length);
    if (length == 0 || is_control(character))
      append_escaped(character, line);
    else
      line.append(character.data(), character.size());
    text.remove_prefix(character.size());
  }
  return line;
}

}  // namespace signalbox
