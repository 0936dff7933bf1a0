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
// What does not stand there is asked of hosts(), which is no part of the short way.
//
// All else is in this header, short, and calls nothing: code that stands elsewhere is as far away
// as data. Filled, then immutable; seats live as long as the picker that they are of.

#pragma once

#include <cstddef>
#include <functional>
#include <memory_resource>
#include <string>
#include <vector>

#include "lb/session/session_hosts.hpp"
#include "messages/cookie_key.hpp"
#include "messages/counting/striped.hpp"
#include "messages/pick.hpp"

namespace signalbox {

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
  /// For so many hosts; all are free. `all`: what knows those without a seat, too; null:
  /// nothing does. It lives as long as this.
  explicit Seats(std::size_t hosts,
                 std::pmr::memory_resource* memory = std::pmr::get_default_resource(),
                 const SessionHosts* all = nullptr)
      : seats_(hosts == 0 ? 0 : 2 * hosts + 1, memory), all_(all) {}

  Seats(const Seats&) = delete;
  Seats& operator=(const Seats&) = delete;

  /// Gives one to the owner of this cookie. Precondition: no more than there are hosts have one,
  /// each with a cookie of its own. Without a connection it stays free.
  void give(const CookieKey& cookie, const Seat& seat) {
    std::size_t place = cookie.below(seats_.size());
    while (!seats_[place].is_free())
      place = after(place);
    seats_[place] = seat;
    seats_[place].key = cookie;
  }

  /// All hosts of the cluster, with a seat or without; null: they are not known.
  const SessionHosts* hosts() const { return all_; }

  /// Where the cookie's owner sits, or begins the row of those who do; it is asked for. Null:
  /// nobody sits anywhere.
  const Seat* at(const CookieKey& cookie) const {
    if (seats_.empty()) return nullptr;
    const Seat& seat = seats_[cookie.below(seats_.size())];
    __builtin_prefetch(&seat);
    return &seat;
  }

  /// The seat of this cookie's owner; null: it is not known at sight. `first`: as at() says, or one
  /// of other seats, or null; by that of another cookie it may not be found.
  const Seat* find(const CookieKey& cookie, const Seat* first) const {
    if (cookie == CookieKey() || seats_.empty()) return nullptr;
    const auto begin =
        has(first) ? static_cast<std::size_t>(first - seats_.data()) : cookie.below(seats_.size());
    for (std::size_t place = begin; !seats_[place].is_free(); place = after(place)) {
      if (seats_[place].key == cookie) return &seats_[place];
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
  std::pmr::vector<Seat> seats_;
  const SessionHosts* all_;
};

}  // namespace signalbox
