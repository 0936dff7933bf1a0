// SPDX-License-Identifier: Apache-2.0
//
// sessions — what clients know of their sessions, and where a session may and must be.
//
//   Set-Cookie ─▶ [cookie_of] ─▶ Calls: the client's next call ─▶ read_cookie ─▶ its host
//   topology, cookie ─▶ [must_stay_on] ─▶ sessions_stay_where_they_may: at rest, of each call
//
// Cookies are read here by hand, not by what is tested.

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

/// "sim=…" of a Set-Cookie: what the client sends from now on.
std::string cookie_of(const std::string& set_cookie);

/// What a cookie says.
struct SessionCookieText {
  std::vector<Address> hosts;  ///< The one in use first.
  std::string cluster;

  friend bool operator==(const SessionCookieText&, const SessionCookieText&) = default;
};

/// nullopt: it is none of ours.
std::optional<SessionCookieText> read_cookie(const std::string& cookie);
std::string write_cookie(const SessionCookieText& text);

/// A cookie that a client makes up: of other hosts and clusters, or of nothing.
std::string forge_cookie(FakeChance& dice);

/// The request's header.
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

/// The hosts of the cookie that its call, which was routed to `cluster`, has to go to while all
/// that can be reached is up. None: the session has lost its host, or that is not to be said.
std::set<Address> must_stay_on(const SessionCookieText& cookie,
                               const std::string& path,
                               const std::string& cluster,
                               const TargetModel& target,
                               const Topology& topology);

/// The leaves that are found by name and have an address of the cookie: its call may go there
/// whatever the loads are, and on which address is not to be said. Of tiered aggregates alone.
std::set<std::string> may_stay_in(const SessionCookieText& cookie,
                                  const std::string& path,
                                  const std::string& cluster,
                                  const TargetModel& target,
                                  const Topology& topology);

/// At rest, of all calls whose endings are kept: on their host while it is usable (A55-25 … 35,
/// A75-41 … 48), with their cluster while the route names it (A60); and who got which cookie
/// (A55-21 … 24).
void sessions_stay_where_they_may(const Calls& calls,
                                  const TargetModel& target,
                                  const Topology& topology,
                                  FakeComplaints& complaints);

/// Since when nobody needs an address any more, as far as the world knows.
class Needs {
 public:
  /// What is said to be needed from now on; what was until now.
  void note(const Topology& topology, Instant now);

  /// Who died may have to begin to wait again.
  void note_death(Instant now) { last_death_ = now; }

  /// At rest: what no policy needs is connected for a session's sake alone, and no longer than its
  /// cluster's idle_timeout and a sweep after the last call that wished for it (A75-29 … 31).
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
