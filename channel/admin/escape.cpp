// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/escape.hpp"

namespace signalbox::channel {

std::string escape(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default: {
        const auto byte = static_cast<unsigned char>(c);
        const bool is_control = (byte < 0x20 && c != '\n') || byte == 0x7f;
        out += is_control ? "\xef\xbf\xbd" : std::string(1, c);
      }
    }
  }
  return out;
}

}  // namespace signalbox::channel
