// SPDX-License-Identifier: Apache-2.0
//
// SessionArgs — the wish of a session's call, as pickers read it.
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

/// The session's wish for one pick (A55-18). Borrowed for the duration of the pick.
struct SessionArgs : SessionHint {
  /// The cookie's hosts: "ip:port", or several with commas between them (A61). May be empty.
  absl::string_view hosts;
  /// The call fails if no host can be used; it does not fall back to another host (A55-43). Set
  /// only when there are hosts, or while the cookie is unread.
  bool strict = false;
  Instant now{};  ///< The time to write to SessionMark.
  /// The key of a plain cookie; most cookies are recognised by it alone. Default: no cookie.
  CookieKey key{};
  /// The seat that the key may lead to. Null: not looked up.
  const Seat* seat = nullptr;
  /// The Session, while its cookie is not decoded: read() then returns the hosts. Null: `hosts` has
  /// them.
  Session* unread = nullptr;
};

/// The wish of a call. Null: the call has no session.
inline const SessionArgs* session_of(const PickArgs& args) {
  return static_cast<const SessionArgs*>(args.session);
}

}  // namespace signalbox::lb
