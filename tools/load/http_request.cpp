// SPDX-License-Identifier: Apache-2.0
#include "tools/load/http_request.hpp"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace signalbox::tools {
namespace {

absl::Status bad_url(absl::string_view url, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("'", url, "': ", why));
}

}  // namespace

absl::StatusOr<HttpRequest> parse_http_url(absl::string_view url) {
  absl::string_view rest = url;
  if (absl::StartsWithIgnoreCase(url, "https://"))
    return bad_url(url, "https is not supported, only http; endpoints get plain HTTP/1.1");
  if (!absl::ConsumePrefix(&rest, "http://")) return bad_url(url, "expected http://NAME/path");
  const auto is_visible = [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); };
  if (!std::ranges::all_of(rest, is_visible))
    return bad_url(url, "spaces and characters beyond ASCII have to be percent-encoded");
  if (absl::StrContains(rest, '#')) return bad_url(url, "a fragment (#) is never sent; remove it");
  const auto end = std::min(rest.find_first_of("/?"), rest.size());
  HttpRequest request;
  request.host = std::string(rest.substr(0, end));
  if (request.host.empty()) return bad_url(url, "the name is missing; expected http://NAME/path");
  if (absl::StrContains(request.host, '@'))
    return bad_url(url, "user names are not supported; use --header authorization:VALUE");
  if (end < rest.size()) request.path = std::string(rest.substr(end));
  if (request.path.front() == '?') request.path.insert(0, "/");
  return request;
}

}  // namespace signalbox::tools
