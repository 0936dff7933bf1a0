// SPDX-License-Identifier: Apache-2.0
//
// session_cookies — what the cookies of sessions need of a runtime.
//
//   RuntimeOptions::session_cookies ─▶ [SessionCookies] ─▶ SessionTerms ─▶ Target ─▶ its routers
//                                           └ the key file, followed while the runtime lives
//
// Calls tell of bad cookies where they are: what they say is logged on the waker's thread.

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

  /// An error names the option, and what is wrong with the file.
  static absl::StatusOr<SessionCookies> make(const SessionCookieOptions& options,
                                             const Log& log,
                                             const std::shared_ptr<metrics::Instruments>& count);

  /// Of `target`; they may outlive this and the host.
  lb::SessionTerms terms(const std::string& target, std::shared_ptr<HostLink> link) const;

 private:
  std::unique_ptr<actors::SealKeyFile> keys_;  // Null: cookies are plain.
  bool accepts_plain_ = false;
  lb::CookieForm form_ = lb::CookieForm::kGrpc;
  Log log_;
};

}  // namespace signalbox::channel
