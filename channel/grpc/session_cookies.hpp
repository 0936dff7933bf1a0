// SPDX-License-Identifier: Apache-2.0
//
// session_cookies — a runtime's settings for session cookies.
//
//   RuntimeOptions::session_cookies ─▶ [SessionCookies] ─▶ SessionTerms ─▶ Target ─▶ its routers
//                                           └ the key file, followed while the runtime lives
//
// A call that finds a bad cookie reports it without blocking, once a minute at most for a target;
// the runtime's waker thread writes the report to the log.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "actors/io/seal_key_file.hpp"
#include "channel/host_link.hpp"
#include "lb/session/session.hpp"
#include "metrics/instruments.hpp"
#include "signalbox/runtime.hpp"

namespace signalbox::channel {

class SessionCookies {
 public:
  using Log = std::function<void(const std::string& text)>;

  /// An error names the invalid option, and the fault of the key file if that is the reason.
  static absl::StatusOr<SessionCookies> make(const SessionCookieOptions& options,
                                             const Log& log,
                                             const std::shared_ptr<metrics::Instruments>& count);

  /// The settings for sessions of `target`. They may outlive this object and the runtime: `link` is
  /// cut then, and warnings are dropped.
  lb::SessionTerms terms(const std::string& target, std::shared_ptr<HostLink> link) const;

 private:
  std::unique_ptr<actors::SealKeyFile> keys_;  // The key file; null: cookies are plain.
  bool accepts_plain_ = false;
  lb::CookieForm form_ = lb::CookieForm::kGrpc;
  Log log_;
};

}  // namespace signalbox::channel
