// SPDX-License-Identifier: Apache-2.0
#include "channel/grpc/session_cookies.hpp"

#include <chrono>
#include <cstdint>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"

namespace signalbox::channel {
namespace {

constexpr char kRejected[] = "seal_keys";

// The time of steady_clock, some milliseconds old. Each call of a session reads it, so it must be
// cheap: to read the precise clock, the processor first finishes all earlier instructions.
[[gnu::hot]] Instant coarse_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return Instant(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

// The wall clock in seconds, for a cookie's `expires`. Some versions of Envoy compare `expires`
// with the seconds since the machine's start. That number is smaller, so the cookie never counts as
// expired there.
std::uint64_t unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

}  // namespace

absl::StatusOr<SessionCookies> SessionCookies::make(
    const SessionCookieOptions& options,
    const Log& log,
    const std::shared_ptr<metrics::Instruments>& count) {
  SessionCookies made;
  made.accepts_plain_ = options.accept_plain;
  made.log_ = log;
  const bool is_for_envoy = options.form == SessionCookieForm::kEnvoy;
  made.form_ = is_for_envoy ? lb::CookieForm::kEnvoy : lb::CookieForm::kGrpc;
  if (options.key_file && is_for_envoy) {
    return absl::InvalidArgumentError(
        "RuntimeOptions::session_cookies.form: Envoy cannot read cookies that a key_file seals; "
        "leave key_file unset, or form as it is");
  }
  if (!options.key_file) {
    if (!options.accept_plain) return made;
    return absl::InvalidArgumentError(
        "RuntimeOptions::session_cookies.accept_plain: without a key_file all cookies are plain");
  }
  count->count_config_rejected(kRejected, 0);
  const auto complain = [log, count](const std::string& text) {
    count->count_config_rejected(kRejected);
    log(text);
  };
  auto keys = actors::SealKeyFile::start(*options.key_file, complain, log);
  if (!keys.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("RuntimeOptions::session_cookies.key_file: ", keys.status().message()));
  }
  made.keys_ = *std::move(keys);
  return made;
}

lb::SessionTerms SessionCookies::terms(const std::string& target,
                                       std::shared_ptr<HostLink> link) const {
  const auto warn = [link = std::move(link), log = log_](const std::string& text) {
    link->with([&](actors::Host& host) { host.waker().post([log, text] { log(text); }); });
  };
  return {.target = target,
          .now = coarse_now,
          .seal = keys_ != nullptr ? keys_->seal() : nullptr,
          .accepts_plain = accepts_plain_,
          .form = form_,
          .unix_seconds = unix_seconds,
          .warn = warn};
}

}  // namespace signalbox::channel
