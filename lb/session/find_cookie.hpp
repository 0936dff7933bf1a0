// SPDX-License-Identifier: Apache-2.0
//
// find_cookie — finds a session's cookie in a call's headers.
//
//   "cookie: a=1; s=MTAuMC4wLjE6ODA7YQ==; b=2" ─▶ find_cookie(…, "s") ─▶ MTAuMC4wLjE6ODA7YQ==
//
// A client may send headers of any length, so the search stops at kMostCookieBytes and
// kMostCookies.
//
// Each call of a session runs this code, and a function elsewhere in memory would cost a cache
// miss. So the code for the usual case is in this header, is short, and calls nothing but the
// HeaderSource.
//
// Source: RFC 6265 (5.1.4, 5.4).

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "absl/strings/string_view.h"

#include "messages/pick.hpp"

namespace signalbox::lb {

/// The search looks at no more than this many bytes and cookies of a call, all its cookie headers
/// together.
inline constexpr std::size_t kMostCookieBytes = std::size_t{64} << 10U;
inline constexpr std::size_t kMostCookies = 128;

struct FoundCookie {
  std::optional<absl::string_view> value;  ///< Without quotes; valid as long as the headers are.
  bool is_cut = false;                     ///< The search stopped at a limit before the end.
};

/// The position of the first `wanted`, or the end. Reads eight bytes at a step.
inline std::size_t find_byte(absl::string_view text, char wanted) {
  constexpr std::uint64_t kOnes = 0x0101010101010101ULL;
  const std::uint64_t all = kOnes * static_cast<unsigned char>(wanted);
  std::size_t at = 0;
  for (; at + sizeof(all) <= text.size(); at += sizeof(all)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof(word));
    const std::uint64_t zeros = word ^ all;  // Has a zero byte at each match.
    if (((zeros - kOnes) & ~zeros & (kOnes << 7U)) != 0) break;
  }
  while (at < text.size() && text[at] != wanted)
    ++at;
  return at;
}

/// Whether a cookie with the attribute Path=`cookie_path` applies to `path` (RFC 6265, 5.1.4). An
/// empty `cookie_path` applies to every path.
inline bool path_matches(absl::string_view path, absl::string_view cookie_path) {
  if (cookie_path.empty()) return true;
  if (path.size() < cookie_path.size()) return false;
  for (std::size_t i = 0; i < cookie_path.size(); ++i) {
    if (path[i] != cookie_path[i]) return false;
  }
  return path.size() == cookie_path.size() || cookie_path.back() == '/' ||
         path[cookie_path.size()] == '/';
}

/// Searches a call's cookie headers one after another.
class CookieSearch {
 public:
  /// Precondition: the name is a token (RFC 6265, 4.1.1).
  explicit CookieSearch(absl::string_view name) : name_(name) {}

  void look_at(absl::string_view header) {
    if (!is_over() && !is_first(header)) look_through(header);
  }

  const FoundCookie& found() const { return found_; }

 private:
  bool is_over() const { return found_.value || found_.is_cut; }

  // The usual case: the wanted cookie is the first cookie of the call, and its value has neither
  // quotes nor white space around it. False: look_through() must search the header.
  bool is_first(absl::string_view header) {
    const bool is_untouched = cookies_left_ == kMostCookies;
    if (!is_untouched || header.size() > kMostCookieBytes || header.size() <= name_.size() + 1)
      return false;
    if (header.substr(0, name_.size()) != name_ || header[name_.size()] != '=') return false;
    const absl::string_view rest = header.substr(name_.size() + 1);
    const absl::string_view value = rest.substr(0, find_byte(rest, ';'));
    if (!value.empty() && !(is_plain(value.front()) && is_plain(value.back()))) return false;
    found_.value = value;
    return true;
  }

  // Whether `c` is surely neither white space nor a quote. False for "!" too, and perhaps for bytes
  // beyond ASCII, which costs only time: look_through() finds the same value.
  static bool is_plain(char c) { return c > '"'; }

  // Searches all cookies of the header, up to the limits, when is_first() has not found the cookie.
  void look_through(absl::string_view header);

  absl::string_view name_;
  FoundCookie found_;
  std::size_t bytes_left_ = kMostCookieBytes;
  std::size_t cookies_left_ = kMostCookies;
};

/// Finds the first cookie called `name` in the headers "cookie". Any text between semicolons counts
/// as a cookie. So an attribute counts too, if a client sends a whole Set-Cookie back.
[[gnu::always_inline]] inline FoundCookie find_cookie(const HeaderSource& headers,
                                                      absl::string_view name) {
  CookieSearch search(name);
  headers.each("cookie", [&search](absl::string_view header) { search.look_at(header); });
  return search.found();
}

}  // namespace signalbox::lb
