// SPDX-License-Identifier: Apache-2.0
#include "signalbox/cookie_jar.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "lb/session/session_cookie.hpp"
#include "messages/header_rules.hpp"

namespace signalbox {
namespace {

using TimePoint = CookieJar::Clock::time_point;

// Whether the text is a token (RFC 9110, 5.6.2).
bool is_token(absl::string_view text) {
  const auto may_be_in_it = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::StrContains("!#$%&'*+-.^_`|~", c);
  };
  return !text.empty() && std::ranges::all_of(text, may_be_in_it);
}

// A Max-Age of another form is ignored (RFC 6265, 5.2.2).
bool is_max_age(absl::string_view text) {
  absl::ConsumePrefix(&text, "-");
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

// The time at which a cookie with this Max-Age expires (RFC 6265, 5.2.2). nullopt: it does not,
// because that time is beyond the clock's range.
std::optional<TimePoint> end_of(absl::string_view max_age, TimePoint now) {
  if (absl::StartsWith(max_age, "-")) return now;
  std::int64_t seconds = 0;
  const auto most = std::chrono::floor<std::chrono::seconds>(TimePoint::max() - now).count();
  if (!absl::SimpleAtoi(max_age, &seconds) || seconds > most) return std::nullopt;
  return now + std::chrono::seconds(seconds);
}

absl::Status malformed(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("Set-Cookie: ", what, "; expected NAME=VALUE and then ;ATTRIBUTE=VALUE"));
}

}  // namespace

CookieJar::CookieJar(std::function<Clock::time_point()> now) : now_(std::move(now)) {}

absl::Status CookieJar::save(absl::string_view set_cookie) {
  const TimePoint now = now_();
  auto cookie = parse(set_cookie, now);
  if (!cookie.ok()) return cookie.status();
  const std::lock_guard lock(mutex_);
  return keep(*std::move(cookie), now);
}

std::string CookieJar::cookie_header(absl::string_view path) const {
  path = path.substr(0, path.find('?'));
  const TimePoint now = now_();
  const std::lock_guard lock(mutex_);
  std::vector<const Cookie*> sent;
  for (const Cookie& cookie : cookies_) {
    const bool is_over = cookie.expires && *cookie.expires <= now;
    const bool is_for_it = path.empty() || lb::path_matches(path, cookie.path);
    if (!is_over && is_for_it) sent.push_back(&cookie);
  }
  std::ranges::stable_sort(
      sent, std::greater(), [](const Cookie* cookie) { return cookie->path.size(); });
  return absl::StrJoin(sent, "; ", [](std::string* text, const Cookie* cookie) {
    absl::StrAppend(text, cookie->name, "=", cookie->value);
  });
}

void CookieJar::send(grpc::ClientContext& context, absl::string_view method) const {
  const std::string header = cookie_header(method);
  if (!header.empty()) context.AddMetadata("cookie", header);
}

absl::Status CookieJar::receive(const grpc::ClientContext& context) {
  absl::Status first;
  for (const auto* metadata :
       {&context.GetServerInitialMetadata(), &context.GetServerTrailingMetadata()}) {
    const auto [begin, end] = metadata->equal_range("set-cookie");
    for (auto header = begin; header != end; ++header)
      first.Update(save({header->second.data(), header->second.size()}));
  }
  return first;
}

// Parses a Set-Cookie header (RFC 6265, 5.2). If an attribute comes twice, the last one counts.
absl::StatusOr<CookieJar::Cookie> CookieJar::parse(absl::string_view set_cookie, TimePoint now) {
  if (set_cookie.size() > kLongestCookie) {
    return absl::ResourceExhaustedError(
        absl::StrCat("Set-Cookie: has ", set_cookie.size(), " bytes, more than ", kLongestCookie));
  }
  if (!is_header_value("set-cookie", set_cookie))
    return malformed("has a character that is not printable ASCII");
  const std::vector<absl::string_view> parts = absl::StrSplit(set_cookie, ';');
  const std::pair<absl::string_view, absl::string_view> pair =
      absl::StrSplit(parts.front(), absl::MaxSplits('=', 1));
  if (!absl::StrContains(parts.front(), '=')) return malformed("has no '='");
  const absl::string_view name = absl::StripAsciiWhitespace(pair.first);
  if (!is_token(name)) return malformed(absl::StrCat("'", name, "' is no name"));
  Cookie cookie{.name = std::string(name),
                .value = std::string(absl::StripAsciiWhitespace(pair.second)),
                .path = "/",
                .expires = std::nullopt};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> attribute =
        absl::StrSplit(parts[i], absl::MaxSplits('=', 1));
    const absl::string_view key = absl::StripAsciiWhitespace(attribute.first);
    const absl::string_view value = absl::StripAsciiWhitespace(attribute.second);
    if (absl::EqualsIgnoreCase(key, "path")) {
      cookie.path = absl::StartsWith(value, "/") ? std::string(value) : "/";
    } else if (absl::EqualsIgnoreCase(key, "max-age") && is_max_age(value)) {
      cookie.expires = end_of(value, now);
    }
  }
  return cookie;
}

absl::Status CookieJar::keep(Cookie cookie, TimePoint now) {
  std::erase_if(cookies_, [&](const Cookie& kept) { return kept.expires && *kept.expires <= now; });
  const auto place = std::ranges::find_if(cookies_, [&](const Cookie& kept) {
    return kept.name == cookie.name && kept.path == cookie.path;
  });
  const bool is_known = place != cookies_.end();
  if (cookie.expires && *cookie.expires <= now) {
    if (is_known) cookies_.erase(place);
    return absl::OkStatus();
  }
  std::size_t bytes = cookie.name.size() + cookie.value.size();
  for (const Cookie& kept : cookies_)
    bytes += kept.name.size() + kept.value.size();
  if (is_known) bytes -= place->name.size() + place->value.size();
  const auto full = [&](absl::string_view why) {
    return absl::ResourceExhaustedError(
        absl::StrCat("Set-Cookie: no room for '", cookie.name, "': ", why));
  };
  if (bytes > kMostBytes) return full(absl::StrCat("the jar's limit is ", kMostBytes, " bytes"));
  if (!is_known && cookies_.size() == kMostCookies)
    return full(absl::StrCat("the jar has ", kMostCookies, " cookies"));
  if (is_known)
    *place = std::move(cookie);
  else
    cookies_.push_back(std::move(cookie));
  return absl::OkStatus();
}

}  // namespace signalbox
