// SPDX-License-Identifier: Apache-2.0
#include "xds/percent_encoding.hpp"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace signalbox::xds {
namespace {

constexpr absl::string_view kPlain = "-._~!$&'()*+,;=:@";

std::string encode(absl::string_view text, absl::string_view also_plain) {
  std::string out;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains(kPlain, c) ||
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
  return encode(text, "/");
}

std::string percent_encode_authority(absl::string_view text) {
  return encode(text, "[]");
}

std::optional<std::string> percent_decode(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (text.front() != '%') {
      out.push_back(text.front());
      text.remove_prefix(1);
      continue;
    }
    const bool is_encoded = text.size() >= 3 &&
                            absl::ascii_isxdigit(static_cast<unsigned char>(text[1])) &&
                            absl::ascii_isxdigit(static_cast<unsigned char>(text[2]));
    if (!is_encoded) return std::nullopt;
    absl::StrAppend(&out, absl::HexStringToBytes(text.substr(1, 2)));
    text.remove_prefix(3);
  }
  return out;
}

}  // namespace signalbox::xds
