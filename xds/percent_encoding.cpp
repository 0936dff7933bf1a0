// SPDX-License-Identifier: Apache-2.0
#include "xds/percent_encoding.hpp"

#include <charconv>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace signalbox::xds {
namespace {

constexpr absl::string_view kUnescaped = "-._~!$&'()*+,;=:@";

std::string escape(absl::string_view text, absl::string_view also_plain) {
  std::string out;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains(kUnescaped, c) ||
        absl::StrContains(also_plain, c)) {
      out.push_back(c);
    } else {
      absl::StrAppend(&out, "%", absl::AsciiStrToUpper(absl::BytesToHexString({&c, 1})));
    }
  }
  return out;
}

}  // namespace

std::string percent_encode_path(absl::string_view text) {
  return escape(text, "/");
}

std::string percent_encode_authority(absl::string_view text) {
  return escape(text, "[]");
}

std::optional<std::string> percent_decode(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (text.front() != '%') {
      out.push_back(text.front());
      text.remove_prefix(1);
      continue;
    }
    const std::optional<std::string> byte =
        text.size() < 3 ? std::nullopt : hex_decode(text.substr(1, 2));
    if (!byte.has_value()) return std::nullopt;
    out += *byte;
    text.remove_prefix(3);
  }
  return out;
}

std::optional<std::string> hex_decode(absl::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string out;
  for (; !text.empty(); text.remove_prefix(2)) {
    unsigned char byte = 0;
    const char* const end = text.data() + 2;
    const auto [parsed, error] = std::from_chars(text.data(), end, byte, 16);
    if (error != std::errc() || parsed != end) return std::nullopt;
    out.push_back(static_cast<char>(byte));
  }
  return out;
}

}  // namespace signalbox::xds
