// SPDX-License-Identifier: Apache-2.0
//
// SessionArgs — the hosts that a session's call should go to, as pickers read them.
//
//   Session::wish() ─▶ [SessionArgs] ─▶ PickArgs::session ─▶ session_of() ─▶ override_host, tiered
//
// Source: gRFC A55 (stateful session affinity), A61 (several addresses).

#pragma once

#include "absl/strings/string_view.h"

#include "lb/session/cookie_key.hpp"
#include "messages/ids.hpp"
#include "messages/pick.hpp"
#include "messages/session.hpp"

namespace signalbox::lb {

struct Session;  ///< lb/session/session.hpp
struct Seat;     ///< lb/session/seats.hpp

/// A session's wish for one pick (A55-18). Valid only during the pick.
struct SessionArgs : SessionHint {
  /// The hosts to try: "ip:port", or several separated by commas (A61). May be empty.
  absl::string_view hosts;
  /// True: the call fails if none of the hosts can be used, instead of going to another host
  /// (A55-43). False if the call has no usable cookie; true or false as configured while the cookie
  /// is unread.
  bool strict = false;
  Instant now{};  ///< The time of the pick, for SessionMark.
  /// The hash of an unsealed cookie's text, by which Seats finds most hosts. Default: Seats are not
  /// searched, because there is no usable cookie, the target seals its cookies, or the pick tries
  /// other hosts than the cookie's.
  CookieKey key{};
  /// Where Seats::find() begins its search for `key`. Null: not computed yet.
  const Seat* seat = nullptr;
  /// Set while the cookie is not decoded: read() decodes it, and returns the hosts. Null: `hosts`
  /// has them.
  Session* unread = nullptr;
};

/// The wish of the call's session. Null: the call has no session.
inline const SessionArgs* session_of(const PickArgs& args) {
  return static_cast<const SessionArgs*>(args.session);
}

}  // namespace signalbox::lb
