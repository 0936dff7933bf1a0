// SPDX-License-Identifier: Apache-2.0
#include "lb/route/stateful_session.hpp"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/route/session.hpp"
#include "lb/trace.hpp"

namespace signalbox::lb {
namespace {

class StatefulSession final : public CallFilter {
 public:
  explicit StatefulSession(CompiledCookie config) : config_(std::move(config)) {}

  void apply(FilterCall& call) const override { decide(call, Silent{}); }

  void explain(FilterCall& call, PickTrace& trace) const override { decide(call, Telling{trace}); }

 private:
  // Where the route has one cluster, its cookie is read by whoever wants to know what it says.
  template <typename Sink>
  void decide(FilterCall& call, const Sink& sink) const {
    if (!path_matches(call.path(), config_.path()))
      return tell(sink, "no session", "the path is none of the cookie's");
    Session* const session = call.begin_session();
    if (session == nullptr) return tell(sink, "no session", "an earlier filter has begun one");
    session->begin(config_, call.headers());
    if (Sink::kTells || call.has_choice()) send(call, *session, sink);
  }

  template <typename Sink>
  void send(FilterCall& call, Session& session, const Sink& sink) const {
    session.read();
    if (session.flaw) {
      tell(sink, "its cookie is not used", said_of(*session.flaw));
    } else {
      tell(sink,
           session.has_cookie() ? "its cookie names a host" : "no cookie",
           config_.is_strict() ? "the session is strict" : "the session is not strict");
    }
    const absl::string_view cluster = session.cluster();
    if (cluster.empty()) return;
    const bool is_its_cluster = call.send_to(cluster);
    tell(sink,
         is_its_cluster ? "to the cluster of its cookie" : "not to the cluster of its cookie",
         is_its_cluster ? "the route names it" : "the route does not name it");
  }

  template <typename Sink>
  void tell(const Sink& sink, absl::string_view decision, absl::string_view reason) const {
    sink.tell([&] {
      return PickStep{"stateful_session",
                      absl::StrCat("cookie \"", config_.name(), "\": ", decision),
                      std::string(reason),
                      kFilterSource};
    });
  }

  const CompiledCookie config_;
};

}  // namespace

CallFilterPtr make_session_filter(const StatefulSessionFilter& config) {
  if (!config.cookie) return nullptr;
  return std::make_shared<const StatefulSession>(CompiledCookie(*config.cookie, config.strict));
}

}  // namespace signalbox::lb
