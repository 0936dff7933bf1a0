// SPDX-License-Identifier: Apache-2.0
//
// sessions — reads and writes session cookies as clients see them, and checks that calls of a
// session go to a host on which the session may or must be.
//
//   Set-Cookie ─▶ [cookie_of] ─▶ Calls: the client's next call ─▶ read_cookie ─▶ its host
//   topology, cookie ─▶ [must_stay_on] ─▶ sessions_stay_where_they_may: at rest, of each call
//
// Cookies are read here by the simulator's own code, not by the code under test.

#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "messages/pick.hpp"
#include "tests/sim/setting.hpp"
#include "tests/sim/topology.hpp"

namespace signalbox::sim {

class Calls;

inline constexpr char kCookieName[] = "sim";

/// The part "sim=…" of a Set-Cookie: the cookie that the client sends from now on.
std::string cookie_of(const std::string& set_cookie);

/// The content of a cookie.
struct SessionCookieText {
  std::vector<Address> hosts;  ///< The address in use first.
  std::string cluster;

  friend bool operator==(const SessionCookieText&, const SessionCookieText&) = default;
};

/// Decodes a cookie; nullopt: it is not one of signalbox's.
std::optional<SessionCookieText> read_cookie(const std::string& cookie);
std::string write_cookie(const SessionCookieText& text);

/// A cookie that a client makes up: with other hosts and clusters, or garbage.
std::string forge_cookie(FakeChance& dice);

/// The request's cookie header.
class CookieHeader final : public HeaderSource {
 public:
  explicit CookieHeader(const std::string& cookie) : cookie_(cookie) {}

  void each(absl::string_view name,
            absl::FunctionRef<void(absl::string_view value)> visit) const override {
    if (name == "cookie" && !cookie_.empty()) visit(cookie_);
  }

 private:
  const std::string& cookie_;
};

/// The hosts of the cookie that may still serve the session. A call routed to `cluster` must go to
/// one of them while all hosts are up. Empty: the path has no session, the session has lost its
/// host, or the model cannot tell.
std::set<Address> must_stay_on(const SessionCookieText& cookie,
                               const std::string& path,
                               const std::string& cluster,
                               const TargetModel& target,
                               const Topology& topology);

/// For a tiered aggregate: its DNS leaves that have an address of the cookie. The call may go to
/// any of these leaves, whatever their loads are. The model cannot tell to which address of a leaf
/// the call goes, because all addresses of a DNS name are one endpoint.
std::set<std::string> may_stay_in(const SessionCookieText& cookie,
                                  const std::string& path,
                                  const std::string& cluster,
                                  const TargetModel& target,
                                  const Topology& topology);

/// Checks, at rest, all calls with kept endings (Calls::probe). A session stays on its host while
/// the host is usable (A55-25 … 35, A75-41 … 48). It stays with its cluster while the route names
/// the cluster (A60). Responses carry the right cookies (A55-21 … 24).
void sessions_stay_where_they_may(const Calls& calls,
                                  const TargetModel& target,
                                  const Topology& topology,
                                  FakeComplaints& complaints);

/// Records when an address was last needed by a policy, as far as the model knows.
class Needs {
 public:
  /// Records that the addresses that `topology` serves are needed from now on, and that addresses
  /// which it no longer serves were needed until `now`.
  void note(const Topology& topology, Instant now);

  /// An actor died at `now`. Its successor starts the actor's timers anew, so a connection may be
  /// kept for longer.
  void note_death(Instant now) { last_death_ = now; }

  /// Checks, at rest, that connections which no policy needs have ended. A connection that
  /// sessions keep may stay for its cluster's idle_timeout, the time between two sweeps, and some
  /// margin. The time counts from the last call that had the address in its cookie, or that a
  /// session sent to the address (A75-29 … 31).
  void nobody_is_kept_for_nothing(const std::map<Address, Instant>& wished,
                                  const Topology& topology,
                                  const Setting& setting,
                                  FakeComplaints& complaints) const;

 private:
  std::set<Address> needed_;
  std::map<Address, Instant> needed_until_;
  Instant last_change_{};
  Instant last_death_{};
};

}  // namespace signalbox::sim
