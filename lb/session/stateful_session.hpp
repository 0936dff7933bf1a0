// SPDX-License-Identifier: Apache-2.0
//
// stateful_session — keeps a session on its host by a cookie (gRFC A55, A60).
//
//   StatefulSessionFilter ─▶ [make_session_filter] ─▶ StatefulSession in the chains of routes
//
//   the call's path is outside the cookie's path ─▶ no session, and no Set-Cookie      (A55-14)
//   no usable cookie ─▶ any host takes the call; the response sets a cookie        (A55-16, 17)
//   the cookie names a host ─▶ override_host's picker looks the host up
//   the cookie names a cluster ─▶ the call goes there, if the route lists the cluster  (A55-19)
//
// The filter only finds the cookie, and sends the call to the cluster that the cookie names.
// override_host's picker decides whether the host takes the call. lb/session/session writes the
// Set-Cookie.

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

/// Makes the filter. Null: the configuration has no cookie, so the filter would do nothing (A55-8,
/// A55-12).
StatefulSessionPtr make_session_filter(const StatefulSessionFilter& config);

}  // namespace signalbox::lb
