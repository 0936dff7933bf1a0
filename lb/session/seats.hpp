// SPDX-License-Identifier: Apache-2.0
//
// Seats — a table from the cookies of sessions to their hosts.
//
//   HostSlots ─▶ [Seats] ─┬▶ Picker::session_hint() ─▶ SessionLead ─▶ foresee() asks for the seat
//                         │                            before the call's route is known: at()
//                         └▶ override_host's picker looks whether the seat is the cookie's: find()
//
// Among thousands of hosts, the data of a call's host is rarely in the CPU's cache. So the data
// that the call needs is in one cache line, the host's seat, and the cookie's text leads to the
// seat. The seat is prefetched as soon as the call comes, and arrives while the route is looked
// for.
//
// hosts() has all other facts about hosts. Few calls need them.
//
// The code is in this header, is short, and calls nothing, because a function elsewhere in memory
// would cost a cache miss. Seats are filled, then immutable. They live as long as their picker.

#pragma once

#include <cstddef>
#include <functional>
#include <memory_resource>
#include <string>
#include <vector>

#include "lb/session/cookie_key.hpp"
#include "lb/session/session_hosts.hpp"
#include "messages/counting/striped.hpp"
#include "messages/pick.hpp"
#include "messages/session.hpp"

namespace signalbox::lb {

/// The data of a host that a call to it needs.
struct alignas(kCacheLine) Seat {
  Complete complete;  ///< Without a connection the seat is free.
  const SessionMark* mark = nullptr;
  const std::string* hosts = nullptr;             ///< See Affinity::hosts.
  AffinityResult result = AffinityResult::kNone;  ///< The result of a call to this host.
  CookieKey key;

  bool is_free() const { return complete.connection == nullptr; }

  /// Prefetches what a call to this host will write.
  void prefetch_marks() const {
    if (is_free()) return;
    complete.uses.prefetch();
    __builtin_prefetch(mark, 1);
  }
};

static_assert(sizeof(Seat) == kCacheLine);

class Seats final : public SessionHint {
 public:
  /// Free seats for `hosts` hosts. `all` also knows the hosts without a seat, and lives as long as
  /// the Seats; null: nothing knows them.
  explicit Seats(std::size_t hosts,
                 std::pmr::memory_resource* memory = std::pmr::get_default_resource(),
                 const SessionHosts* all = nullptr)
      : seats_(hosts == 0 ? 0 : 2 * hosts + 1, memory), all_(all) {}

  Seats(const Seats&) = delete;
  Seats& operator=(const Seats&) = delete;

  /// Gives a seat to the host of this cookie. A `seat` without a connection leaves the place free.
  /// Precondition: no more seats are given than the constructor's `hosts`, and each has another
  /// cookie.
  void give(const CookieKey& cookie, const Seat& seat) {
    std::size_t place = cookie.below(seats_.size());
    while (!seats_[place].is_free())
      place = after(place);
    seats_[place] = seat;
    seats_[place].key = cookie;
  }

  /// All hosts of the cluster, with a seat or without; null: unknown.
  const SessionHosts* hosts() const { return all_; }

  /// The place from which find() searches: the seat of the cookie's host, or a seat shortly before
  /// it. Prefetches that seat. Null: there are no seats.
  const Seat* at(const CookieKey& cookie) const {
    if (seats_.empty()) return nullptr;
    const Seat& seat = seats_[cookie.below(seats_.size())];
    __builtin_prefetch(&seat);
    return &seat;
  }

  /// The seat of the cookie's host; null: it has none. `first`: the result of at() for this cookie,
  /// of these or of other Seats, or null. With the result for another cookie the seat may not be
  /// found.
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

  // A hash table, at most half full. When a place is taken, the seat gets the next free place.
  std::pmr::vector<Seat> seats_;
  const SessionHosts* all_;
};

/// Casts the result of Picker::session_hint(). Null: the picker has no seats.
inline const Seats* seats_of(const SessionHint* hint) {
  return static_cast<const Seats*>(hint);
}

}  // namespace signalbox::lb
