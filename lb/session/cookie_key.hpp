// SPDX-License-Identifier: Apache-2.0
//
// CookieKey — a 128-bit hash that identifies a session's cookie.
//
//   a call's cookie ─▶ [CookieKey] ─▶ SessionArgs ─▶ Seats: the seat of its host

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

namespace signalbox::lb {

/// A 128-bit hash of a cookie's text. Two cookies practically never have the same key by chance.
/// The hash is not cryptographic: a client could construct two cookies with one key. This gains the
/// client nothing, because any client may send the cookie of any host anyway.
class CookieKey {
 public:
  /// The key of a call without a cookie. An empty cookie has the same key.
  CookieKey() = default;

  explicit CookieKey(absl::string_view cookie) : low_(cookie.size()), high_(cookie.size() * kOdd) {
    if (cookie.size() < kWord) [[unlikely]] {
      std::uint64_t word = 0;
      for (const char letter : cookie)
        word = word << 8U | static_cast<unsigned char>(letter);
      mix(word);
      return;
    }
    // The last word may overlap the word before it.
    const std::size_t last = cookie.size() - kWord;
    for (std::size_t at = 0; at < last; at += kWord)
      mix(word_at(cookie.data() + at));
    mix(word_at(cookie.data() + last));
  }

  /// A number below `bound`, computed from the key. Keys spread evenly over these numbers.
  std::size_t below(std::size_t bound) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::size_t>((static_cast<Wide>(low_ * kOdd) * bound) >> 64U);
  }

  friend bool operator==(const CookieKey&, const CookieKey&) = default;

 private:
  static constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15ULL;
  static constexpr std::size_t kWord = sizeof(std::uint64_t);

  static std::uint64_t word_at(const char* text) {
    std::uint64_t word = 0;
    std::memcpy(&word, text, kWord);
    return word;
  }

  // Each step can be undone, so texts of one size that differ in one word have different keys.
  void mix(std::uint64_t word) {
    low_ = (low_ ^ word) * kOdd;
    low_ ^= low_ >> 32U;
    high_ = (high_ ^ word) * 0xd6e8feb86659fd93ULL;
    high_ ^= high_ >> 29U;
  }

  std::uint64_t low_ = 0;
  std::uint64_t high_ = 0;
};

}  // namespace signalbox::lb
