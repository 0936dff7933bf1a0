// SPDX-License-Identifier: Apache-2.0
#include "lb/session/stateful_session.hpp"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/trace.hpp"

namespace signalbox::lb {

void StatefulSession::apply(FilterCall& call) const {
  decide(call, Silent{});
}

void StatefulSession::explain(FilterCall& call, PickTrace& trace) const {
  decide(call, Telling{trace});
}

// Decodes the cookie only when the cluster that it names may matter: on a route with several
// clusters, or for an explanation. Otherwise the pick decodes it, if need be.
template <typename Sink>
void StatefulSession::decide(FilterCall& call, const Sink& sink) const {
  if (!path_matches(call.path(), cookie_.path()))
    return tell(sink, "no session", "the path is none of the cookie's");
  Session* const session = session_of(call.begin_session());
  if (session == nullptr) return tell(sink, "no session", "an earlier filter has begun one");
  session->begin(cookie_, find_cookie(call.headers(), cookie_.name()));
  if (Sink::kTells || call.has_choice()) send(call, *session, sink);
}

template <typename Sink>
void StatefulSession::send(FilterCall& call, Session& session, const Sink& sink) const {
  session.read();
  if (session.flaw) {
    tell(sink, "its cookie is not used", said_of(*session.flaw));
  } else {
    tell(sink,
         session.has_cookie() ? "its cookie names a host" : "no cookie",
         cookie_.is_strict() ? "the session is strict" : "the session is not strict");
  }
  const absl::string_view cluster = session.cluster();
  if (cluster.empty()) return;
  const auto unprefixed = without_cluster_prefix(cluster);  // "cluster:NAME" (A55-46).
  const bool is_its_cluster = call.send_to(cluster) || (unprefixed && call.send_to(*unprefixed));
  tell(sink,
       is_its_cluster ? "to the cluster of its cookie" : "not to the cluster of its cookie",
       is_its_cluster ? "the route names it" : "the route does not name it");
}

template <typename Sink>
void StatefulSession::tell(const Sink& sink,
                           absl::string_view decision,
                           absl::string_view reason) const {
  sink.tell([&] {
    return PickStep{"stateful_session",
                    absl::StrCat("cookie \"", cookie_.name(), "\": ", decision),
                    std::string(reason),
                    kFilterSource};
  });
}

StatefulSessionPtr make_session_filter(const StatefulSessionFilter& config) {
  if (!config.cookie) return nullptr;
  return std::make_shared<const StatefulSession>(CompiledCookie(*config.cookie, config.strict));
}

}  // namespace signalbox::lb
