// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/http_headers.hpp"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace signalbox::channel {

std::optional<std::size_t> end_of_headers(absl::string_view bytes) {
  const std::size_t strict = bytes.find("\n\r\n");
  const std::size_t lenient = bytes.find("\n\n");
  if (strict == absl::string_view::npos && lenient == absl::string_view::npos) return std::nullopt;
  return std::min(strict == absl::string_view::npos ? strict : strict + 3,
                  lenient == absl::string_view::npos ? lenient : lenient + 2);
}

std::optional<std::string> flaw_of_headers(absl::string_view headers) {
  if (absl::StrContains(headers, absl::string_view("\0", 1)))
    return "a request must have no NUL in its headers";
  // The HTTP library also ends a header line at a CR without LF. A second Host header after such a
  // CR would not be counted below.
  for (std::size_t at = headers.find('\r'); at != absl::string_view::npos;
       at = headers.find('\r', at + 1)) {
    if (at + 1 == headers.size() || headers[at + 1] != '\n')
      return "a request must have no CR without LF in its headers";
  }
  std::size_t hosts = 0;
  for (const absl::string_view line : absl::StrSplit(headers, '\n')) {
    const absl::string_view name = line.substr(0, line.find(':'));
    if (absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(name), "host")) ++hosts;
  }
  if (hosts <= 1) return std::nullopt;
  return absl::StrCat("Host: expected one, found ", hosts);
}

absl::string_view path_of_request(absl::string_view headers) {
  const absl::string_view line = headers.substr(0, headers.find('\n'));
  const std::size_t begin = line.find(' ');
  if (begin == absl::string_view::npos) return {};
  const absl::string_view rest = line.substr(begin + 1);
  return rest.substr(0, rest.find_first_of(" ?\r"));
}

}  // namespace signalbox::channel
