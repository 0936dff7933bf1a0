// SPDX-License-Identifier: Apache-2.0
//
// Sessions — three kinds of values: data of a session that pickers, snapshots and calls pass on,
// the result of a session's pick, and the marks (times of last use) that keep hosts of sessions
// connected.
//
//   override_host's picker ─▶ SessionHint: where cookies lead ─▶ the snapshot ─┐
//                                                                  lb/session ◀┘
//   override_host's picker ◀─ PickArgs::session: the cookie  ◀─ lb/session
//                          └▶ Affinity ─▶ lb/session
//   override_host ─▶ SessionMarks ─▶ subchannel map: lately used hosts keep their connections
//
// Only lb/session knows the types behind a SessionHint. override_host and tiered read one by
// functions of lb/session. All other code passes it on.
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

#include "messages/ids.hpp"

namespace signalbox {

/// The base of types that only lb/session defines. Each place with a pointer to a SessionHint
/// always points to the same derived type: PickArgs::session, for example, always points to a
/// SessionArgs. lb/session has one function for each place that casts its pointers. SessionHint is
/// empty, so a cast costs nothing. The pointer never owns its object.
struct SessionHint {};

/// Whether a call reached the host that its session's cookie names. "Fell back" means that the call
/// went where it would go without a cookie. If the session is strict and the cookie names hosts,
/// the call fails instead.
enum class AffinityResult : std::uint8_t {
  kNone,         ///< The call has no session: no filter, or the path is not the cookie's.
  kNew,          ///< The call has no cookie that names a host: a session begins.
  kHit,          ///< The cookie's host takes the call.
  kHitDraining,  ///< The cookie's host takes the call, and is DRAINING.
  kQueued,       ///< The host is connecting, or was asked to connect; the call waits.
  kCreated,      ///< No policy held the host. A subchannel to it was requested, and the call waits.
  kUnknownHost,  ///< Fell back: no endpoint of the cluster has the cookie's address.
  kUnhealthy,    ///< Fell back: the host's health forbids the call, or the host cannot be reached.
  /// Fell back: the cookie is malformed, beyond a limit, or not sealed with a known key.
  kBadCookie,
  kOtherCluster,  ///< Fell back: the route does not name the cookie's cluster.
};
inline constexpr std::size_t kAffinityResults = 10;

/// The result of a pick for the session in PickArgs::session. `hosts` is valid as long as the
/// picker is.
struct Affinity {
  AffinityResult result = AffinityResult::kNone;
  /// The addresses of the picked endpoint, comma-separated, the one in use first; at most as many
  /// as a cookie may name (kMostCookieHosts). Null: no endpoint was picked, or the picker does not
  /// know its addresses.
  const std::string* hosts = nullptr;
  /// True: the call's cookie already names `hosts` and the route's cluster, as a plain cookie. The
  /// result is then kHit or kHitDraining.
  bool as_cookie = false;
};

/// The time when a session last sent a call to an endpoint, to within kGrain. Picks write it.
class SessionMark {
 public:
  /// No call yet: the time is infinitely long ago.
  SessionMark() = default;

  /// A pick does not write a mark that is younger than this. Writes are therefore rare, and the
  /// mark's cache line can stay in the caches of all threads that read it.
  static constexpr Duration kGrain = std::chrono::milliseconds(1);

  void touch(Instant now) const {
    const std::int64_t at = now.time_since_epoch().count();
    const std::int64_t before = at_.load(std::memory_order_relaxed);
    if (before != kNever && at - before < kGrain.count()) return;
    at_.store(at, std::memory_order_relaxed);
  }

  /// Whether a session has sent a call to the endpoint later than `then`, to within kGrain.
  bool used_after(Instant then) const {
    const std::int64_t at = at_.load(std::memory_order_relaxed);
    return at != kNever && at > then.time_since_epoch().count();
  }

  /// The time of the last call, to within kGrain. Precondition: used_after() has returned true.
  Instant last_used() const { return Instant(Duration(at_.load(std::memory_order_relaxed))); }

  /// Takes the time of another mark of the same endpoint, if that time is later.
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
  bool draining = false;  ///< EDS says DRAINING: only calls of sessions go to the endpoint.

  friend bool operator==(const SessionHost&, const SessionHost&) = default;
};

/// The endpoints that sessions may stay on, by address. Each address of an endpoint has its own
/// mark.
using SessionMarks = absl::flat_hash_map<Address, SessionHost>;
using SessionMarksPtr = std::shared_ptr<const SessionMarks>;

}  // namespace signalbox
