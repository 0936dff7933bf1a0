// SPDX-License-Identifier: Apache-2.0
//
// Sessions — what a call's cookie wishes, and what keeps the host that it wishes for.
//
//   stateful_session: cookie ─▶ Session ─▶ router ─▶ SessionArgs ─▶ override_host's picker
//                                          router ◀─ Affinity    ◀─┘
//   override_host ─▶ SessionMarks ─▶ subchannel map: who was used lately keeps its connection
//
// Source: gRFC A55 (stateful session affinity), A60 (cluster in the cookie), A61 (several
// addresses), A75 (idle_timeout).

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include "messages/cookie_key.hpp"
#include "messages/ids.hpp"

namespace signalbox {

struct Session;  ///< lb/session/session.hpp
struct Seat;     ///< lb/session/seats.hpp

/// What became of a call's wish for its host. Strict ones that name hosts fail, not fall back.
enum class AffinityResult : std::uint8_t {
  kNone,          ///< The call is of no session: no filter, or its path is not the cookie's.
  kNew,           ///< It has no cookie yet: a session begins.
  kHit,           ///< The host of its cookie takes it.
  kHitDraining,   ///< The same, and the host is DRAINING.
  kQueued,        ///< The host connects, or is asked to: the call waits.
  kCreated,       ///< Nobody held the host: it is asked for, and the call waits.
  kUnknownHost,   ///< Fell back: no endpoint of the cluster has the cookie's address.
  kUnhealthy,     ///< Fell back: the host's health forbids it, or it cannot be reached.
  kBadCookie,     ///< Fell back: it is malformed, beyond a limit, or not sealed by us.
  kOtherCluster,  ///< Fell back: the route does not name the cookie's cluster.
};
inline constexpr std::size_t kAffinityResults = 10;

/// What a session's call asks of the pick (A55-18). Borrowed for the duration of the pick.
struct SessionArgs {
  /// "ip:port", or several with commas between them (A61), as the cookie has them; may be empty.
  absl::string_view hosts;
  bool strict = false;  ///< Fails rather than falls back (A55-43). With hosts, or while unread.
  Instant now{};        ///< For SessionMark.
  /// Of the cookie, if it is a plain one: most are known at sight. Default: of none.
  CookieKey key{};
  /// Where that may lead, as Picker::seats() says; null: nobody has asked.
  const Seat* seat = nullptr;
  /// Reads the cookie, which nobody has done yet: its read() says the hosts. Null: they are here.
  Session* unread = nullptr;
};

/// What a pick says of it. `hosts` is valid as long as the picker is.
struct Affinity {
  AffinityResult result = AffinityResult::kNone;
  /// Of the endpoint that was picked: all its addresses, the one in use first (A55-23); null: the
  /// picker does not know.
  const std::string* hosts = nullptr;
  /// They, and the cluster that the route names, are just what the cookie of SessionArgs::key says:
  /// the result is kHit or kHitDraining.
  bool as_cookie = false;
};

/// When a session last sent a call to an endpoint: the one thing that picks write (A75-27).
class SessionMark {
 public:
  /// Infinitely past (A75-26).
  SessionMark() = default;

  /// A mark is written at most once in so long: within it, readers of it are left alone.
  static constexpr Duration kGrain = std::chrono::milliseconds(1);

  void touch(Instant now) const {
    const std::int64_t at = now.time_since_epoch().count();
    const std::int64_t before = at_.load(std::memory_order_relaxed);
    if (before != kNever && at - before < kGrain.count()) return;
    at_.store(at, std::memory_order_relaxed);
  }

  /// Whether a call came later than `then`.
  bool used_after(Instant then) const {
    const std::int64_t at = at_.load(std::memory_order_relaxed);
    return at != kNever && at > then.time_since_epoch().count();
  }

  /// Precondition: used_after() something.
  Instant last_used() const { return Instant(Duration(at_.load(std::memory_order_relaxed))); }

  /// Takes over what another mark of the same endpoint knows, if that is later.
  void inherit(const SessionMark& other) const {
    const std::int64_t at = other.at_.load(std::memory_order_relaxed);
    if (at > at_.load(std::memory_order_relaxed)) at_.store(at, std::memory_order_relaxed);
  }

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();
  mutable std::atomic<std::int64_t> at_{kNever};
};

using SessionMarkPtr = std::shared_ptr<const SessionMark>;

/// An endpoint that sessions may stay on.
struct SessionHost {
  SessionMarkPtr mark;
  bool draining = false;  ///< EDS says so: only sessions hold it.

  friend bool operator==(const SessionHost&, const SessionHost&) = default;
};

/// Of all endpoints that sessions may stay on, by address: each of an endpoint's has its own.
using SessionMarks = absl::flat_hash_map<Address, SessionHost>;
using SessionMarksPtr = std::shared_ptr<const SessionMarks>;

}  // namespace signalbox
