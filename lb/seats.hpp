// SPDX-License-Identifier: Apache-2.0
//
// Seats — whom a session's cookie leads to, known at sight.
//
//   override_host's picker ─▶ [Seats] ─▶ Picker::seats() ─▶ Snapshot ─▶ the router asks for the
//                                │                    seat before it knows the call's route: at()
//                                └▶ the pick looks whether it is the cookie's: find()
//
// Among thousands of hosts the one of a call's cookie is far away in memory. All that such a call
// needs of it stands in one place, its seat, to which the text of the cookie leads. So it is asked
// for as soon as the call is there, and comes while the route is looked for.
//
// All of it is in this header, short, and calls nothing: code that stands elsewhere is as far away
// as data. Filled, then immutable; seats live as long as the picker that they are of.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "messages/pick.hpp"
#include "messages/striped.hpp"

namespace signalbox {

/// 128 bits that stand for a cookie's text: by chance no two texts have the same. Who makes one to
/// have another's gains what that plain cookie itself gives to anybody.
class CookieKey {
 public:
  /// Of no cookie.
  CookieKey() = default;

  explicit CookieKey(absl::string_view cookie) : low_(cookie.size()), high_(~low_) {
    std::uint64_t word = 0;
    for (; cookie.size() >= sizeof(word); cookie.remove_prefix(sizeof(word))) {
      std::memcpy(&word, cookie.data(), sizeof(word));
      mix(word);
    }
    word = 0;
    for (const char letter : cookie)
      word = word << 8U | static_cast<unsigned char>(letter);
    mix(word);
  }

  /// An evenly spread number below `bound`.
  std::size_t below(std::size_t bound) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::size_t>((static_cast<Wide>(low_ * kOdd) * bound) >> 64U);
  }

  friend bool operator==(const CookieKey&, const CookieKey&) = default;

 private:
  static constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15ULL;

  // Each step can be undone: texts that differ in one word have different keys.
  void mix(std::uint64_t word) {
    low_ = (low_ ^ word) * kOdd;
    low_ ^= low_ >> 32U;
    high_ = (high_ ^ word) * 0xd6e8feb86659fd93ULL;
    high_ ^= high_ >> 29U;
  }

  std::uint64_t low_ = 0;
  std::uint64_t high_ = 0;
};

/// What a call needs of a host that takes it.
struct alignas(kCacheLine) Seat {
  Complete complete;  ///< Without a connection, nobody sits here.
  const SessionMark* mark = nullptr;
  const std::string* hosts = nullptr;             ///< See Affinity.
  AffinityResult result = AffinityResult::kNone;  ///< Of a call that goes there.
  CookieKey key;

  bool is_free() const { return complete.connection == nullptr; }

  /// Asks for what a call that goes there is going to write.
  void prefetch_marks() const {
    if (is_free()) return;
    complete.uses.prefetch();
    __builtin_prefetch(mark, 1);
  }
};

static_assert(sizeof(Seat) == kCacheLine);

class Seats {
 public:
  /// For so many hosts; all are free.
  explicit Seats(std::size_t hosts) : seats_(hosts == 0 ? 0 : 2 * hosts + 1) {}

  /// Gives one to the owner of this cookie. Precondition: no more than there are hosts have one,
  /// each with a cookie of its own. Without a connection it stays free.
  void give(const CookieKey& cookie, const Seat& seat) {
    std::size_t place = cookie.below(seats_.size());
    while (!seats_[place].is_free())
      place = after(place);
    seats_[place] = seat;
    seats_[place].key = cookie;
  }

  /// Where the cookie's owner sits, or begins the row of those who do; it is asked for. Null:
  /// nobody sits anywhere.
  const Seat* at(absl::string_view cookie) const {
    if (seats_.empty()) return nullptr;
    const Seat& seat = seats_[CookieKey(cookie).below(seats_.size())];
    __builtin_prefetch(&seat);
    return &seat;
  }

  /// The seat of this cookie's owner; null: it is not known at sight. `first`: as at() says, or one
  /// of other seats, or null; by that of another cookie it may not be found.
  const Seat* find(absl::string_view cookie, const Seat* first) const {
    if (cookie.empty() || seats_.empty()) return nullptr;
    const CookieKey key(cookie);
    const auto begin =
        has(first) ? static_cast<std::size_t>(first - seats_.data()) : key.below(seats_.size());
    for (std::size_t place = begin; !seats_[place].is_free(); place = after(place)) {
      if (seats_[place].key == key) return &seats_[place];
    }
    return nullptr;
  }

 private:
  std::size_t after(std::size_t place) const { return place + 1 < seats_.size() ? place + 1 : 0; }

  bool has(const Seat* seat) const {
    const std::less<> before;
    return !before(seat, seats_.data()) && before(seat, seats_.data() + seats_.size());
  }

  // A hash table, half full at most: who finds his place taken takes the next one that is free.
  std::vector<Seat> seats_;
};

}  // namespace signalbox
