// SPDX-License-Identifier: Apache-2.0
//
// Seats — a hash table from session cookies to seats. A seat is one cache line with the result of a
// pick for one host.
//
//   HostSlots ─▶ [Seats] ─┬▶ Picker::session_hint() ─▶ SessionLead ─▶ foresee() asks for the seat
//                         │                            before the call's route is known: at()
//                         └▶ override_host's picker looks whether the seat is the cookie's: find()
//
// Among thousands of hosts, the data of a call's host is rarely in the CPU's cache. The seat is
// found by the hash of the cookie's text, without decoding it. So the seat can be prefetched as
// soon as the call comes, and is usually in the cache when the route has been found.
//
// hosts() knows all hosts, also those without a seat. Few calls need it.
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

/// The result of a pick for one host, the host's mark, and the hash of the cookie that names it.
struct alignas(kCacheLine) Seat {
  // The parts of a Complete, which has padding that does not fit.
  const Connection* connection = nullptr;  ///< Null exactly in a free seat.
  UseCounter uses;
  const ChosenEndpoint* endpoint = nullptr;
  const SessionMark* mark = nullptr;
  const std::string* hosts = nullptr;             ///< See Affinity::hosts.
  AffinityResult result = AffinityResult::kNone;  ///< The result of a call to this host.
  CallZone zone = CallZone::kUnknown;
  CookieKey key;

  bool is_free() const { return connection == nullptr; }

  /// The result of a pick that chose this host.
  Complete complete() const {
    Complete complete;
    complete.connection = connection;
    complete.uses = uses;
    complete.endpoint = endpoint;
    complete.zone = zone;
    return complete;
  }

  void set(const Complete& complete) {
    connection = complete.connection;
    uses = complete.uses;
    endpoint = complete.endpoint;
    zone = complete.zone;
  }

  /// Prefetches the counter and the mark (the time of the last use) that a call to this host
  /// writes.
  void prefetch_marks() const {
    if (is_free()) return;
    uses.prefetch();
    __builtin_prefetch(mark, 1);
  }
};

static_assert(sizeof(Seat) == kCacheLine);

class Seats final : public SessionHint {
 public:
  /// Makes a table with free seats for `hosts` hosts. `all`: knows all hosts of the cluster, also
  /// those without a seat, and lives as long as the Seats; null: the other hosts are unknown.
  explicit Seats(std::size_t hosts,
                 std::pmr::memory_resource* memory = std::pmr::get_default_resource(),
                 const SessionHosts* all = nullptr)
      : seats_(hosts == 0 ? 0 : 2 * hosts + 1, memory), all_(all) {}

  Seats(const Seats&) = delete;
  Seats& operator=(const Seats&) = delete;

  /// Puts the seat of the cookie's host into the table. A `seat` without a connection is not
  /// stored. Precondition: give() is called for at most as many hosts as the constructor's `hosts`,
  /// each with another cookie.
  void give(const CookieKey& cookie, const Seat& seat) {
    std::size_t place = cookie.below(seats_.size());
    while (!seats_[place].is_free())
      place = after(place);
    seats_[place] = seat;
    seats_[place].key = cookie;
  }

  /// All hosts of the cluster, with a seat or without; null: unknown.
  const SessionHosts* hosts() const { return all_; }

  /// Where find() begins its search for this cookie: at the host's own seat, or a few seats before
  /// it. Prefetches that place. Null: the table is empty.
  const Seat* at(const CookieKey& cookie) const {
    if (seats_.empty()) return nullptr;
    const Seat& seat = seats_[cookie.below(seats_.size())];
    __builtin_prefetch(&seat);
    return &seat;
  }

  /// The seat of the host that the cookie names; null: the host has none. `first`: what at()
  /// returned for this cookie; a result of another table, or null, is ignored. Precondition:
  /// `first` is not the result for another cookie.
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

  // A hash table with linear probing, less than half full, so a search always meets a free seat.
  std::pmr::vector<Seat> seats_;
  const SessionHosts* all_;
};

/// Casts the result of Picker::session_hint(). Null: the picker has no seats.
inline const Seats* seats_of(const SessionHint* hint) {
  return static_cast<const Seats*>(hint);
}

}  // namespace signalbox::lb
