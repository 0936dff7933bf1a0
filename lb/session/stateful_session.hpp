// SPDX-License-Identifier: Apache-2.0
//
// stateful_session — keeps a session on its host by a cookie (gRFC A55, A60).
//
//   StatefulSessionFilter ─▶ [make_session_filter] ─▶ StatefulSession in the chains of routes
//
//   path is not the cookie's ─▶ nothing, neither now nor in the response              (A55-14)
//   no cookie, or none that can be used ─▶ the call is picked as any, and gets one (A55-16, 17)
//   its cookie's host ─▶ the picker looks it up        its cluster ─▶ if the route has it (A55-19)
//
// override_host decides about the wish, and the router writes the response: lb/session/session.

#pragma once

#include <memory>
#include <utility>

#include "lb/session/session.hpp"
#include "messages/call_filter.hpp"
#include "messages/http_filter.hpp"

namespace signalbox::lb {

class StatefulSession final : public CallFilter {
 public:
  explicit StatefulSession(CompiledCookie cookie) : cookie_(std::move(cookie)) {}

  const CompiledCookie& cookie() const { return cookie_; }

  void apply(FilterCall& call) const override;

  void explain(FilterCall& call, PickTrace& trace) const override;

 private:
  template <typename Sink>
  void decide(FilterCall& call, const Sink& sink) const;
  template <typename Sink>
  void send(FilterCall& call, Session& session, const Sink& sink) const;
  template <typename Sink>
  void tell(const Sink& sink, absl::string_view decision, absl::string_view reason) const;

  const CompiledCookie cookie_;
};

using StatefulSessionPtr = std::shared_ptr<const StatefulSession>;

/// Makes the filter; null: it has nothing to do (A55-8, A55-12).
StatefulSessionPtr make_session_filter(const StatefulSessionFilter& config);

}  // namespace signalbox::lb
