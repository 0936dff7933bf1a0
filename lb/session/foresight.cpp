// SPDX-License-Identifier: Apache-2.0
#include "lb/session/foresight.hpp"

namespace signalbox::lb {

Foresight foresee(const SessionLead& lead, const HeaderSource& headers) {
  __builtin_prefetch(lead.seats());
  spare_sessions.prefetch();
  const FoundCookie found = find_cookie(headers, lead.cookie());
  if (!found.value || found.value->size() > kLongestCookieValue) return {found};
  const CookieKey key(*found.value);
  return {found, key, lead.seats()->at(key)};
}

SessionPtr begin_session(const Sessions& sessions,
                         const StatefulSession& filter,
                         absl::string_view path,
                         const Foresight& foresight) {
  const CompiledCookie& cookie = filter.cookie();
  if (!path_matches(path, cookie.path())) return nullptr;
  SessionPtr session = make_session(sessions.terms());
  session->begin(cookie, *foresight.cookie, foresight.key);
  return session;
}

SessionArgs wish_of(const Sessions& sessions, Session& session, const Seat* seat) {
  session.terms = &sessions.terms();
  return session.wish(sessions.now(), seat);
}

void settle(Session& session,
            const Affinity& affinity,
            PickOutcome outcome,
            const ClusterName& cluster,
            const CallStats* stats) {
  session.settle(affinity, outcome, cluster, stats);
  session.keep();
}

}  // namespace signalbox::lb
