// SPDX-License-Identifier: Apache-2.0
//
// foresight — the steps of a pick for a call with a session. The first step, foresee(), runs before
// the call's route is known.
//
//   selector: the cookie's name ─┐
//   Picker::session_hint() ──────┴▶ SessionLead in the snapshot ─▶ [foresee] ─▶ Foresight ─┐
//   the call's headers ──────────────────────────────────────────────┘                     │
//   the route's StatefulSession ─▶ [begin_session] ◀───────────────────────────────────────┘
//                                       └▶ Session ─▶ [wish_of] ─▶ PickArgs::session ─▶ pickers
//                                          Session ◀─ [settle] ◀─ Affinity ◀───────────────┘
//
// A seat (the cache line with the result of a pick for one host) is found by the hash of the
// cookie's text. Reading a seat costs a cache miss. So when exactly one of at most 32 clusters has
// a table of seats, and all session cookies have one name, the seat is prefetched before the route
// is looked for. It is then usually in the cache when the pick needs it.
//
// The steps are functions of their own, so that their code takes no space in the instruction cache
// of calls without a session.

#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

#include "lb/session/cookie_key.hpp"
#include "lb/session/find_cookie.hpp"
#include "lb/session/seats.hpp"
#include "lb/session/session.hpp"
#include "lb/session/stateful_session.hpp"
#include "messages/counting/call_stats.hpp"
#include "messages/ids.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

/// The table of seats and the cookie's name, by which foresee() finds the seat of a call's host.
/// The snapshot has the SessionLead as a member, not by pointer, which saves a pick a cache miss.
/// seats_ is the first member, so that calls without sessions read no other member.
class SessionLead {
 public:
  SessionLead() = default;

  /// `cookie`: the name that the cookies of all sessions have; empty: the names differ or there are
  /// no sessions, and no cookie is looked for before the route. `picker`: has the seats, and
  /// outlives this object; null: there are no seats.
  SessionLead(std::string cookie, const Picker* picker)
      : seats_(cookie.empty() || picker == nullptr ? nullptr : seats_of(picker->session_hint())),
        cookie_(std::move(cookie)) {}

  bool is_known() const { return seats_ != nullptr; }

  const Seats* seats() const { return seats_; }

  const std::string& cookie() const { return cookie_; }

 private:
  const Seats* seats_ = nullptr;
  std::string cookie_;
};

/// The session data of a call that is found before the call's route.
struct Foresight {
  /// The result of the search for the cookie SessionLead::cookie(); nullopt: there was no search.
  std::optional<FoundCookie> cookie;
  CookieKey key{};  ///< The cookie's hash; default: no cookie, or one that is too long.
  /// Where the search for the cookie's seat begins; null: no cookie to look for, or no seats.
  const Seat* seat = nullptr;

  /// Prefetches the counter and the mark that the call will write if it goes to the seat's host.
  void prefetch_marks() const {
    if (seat != nullptr) seat->prefetch_marks();
  }
};

/// Looks for the call's cookie and its seat. Precondition: lead.is_known().
[[gnu::hot]] Foresight foresee(const SessionLead& lead, const HeaderSource& headers);

/// Begins the call's session as the filter stateful_session does, with the cookie that foresee()
/// found. Null: the call has no session, because its path is outside the cookie's path.
/// Precondition: `foresight` is a result of foresee().
[[gnu::hot]] SessionPtr begin_session(const Sessions& sessions,
                                      const StatefulSession& filter,
                                      absl::string_view path,
                                      const Foresight& foresight);

/// The hosts that the session wants, for one pick. `seat`: Foresight::seat.
[[gnu::hot]] SessionArgs wish_of(const Sessions& sessions, Session& session, const Seat* seat);

/// Call it after the pick. Decides on the Set-Cookie (Session::settle()). Then copies what the
/// Session borrowed from the configuration and the headers, which may be destroyed once the pick
/// returns.
[[gnu::hot]] void settle(Session& session,
                         const Affinity& affinity,
                         PickOutcome outcome,
                         const ClusterName& cluster,
                         const CallStats* stats);

}  // namespace signalbox::lb
