// SPDX-License-Identifier: Apache-2.0
//
// CookieJar — the cookies of one session: kept as the answers set them, sent with its next calls.
// This is the application's half of session affinity (gRFC A55, "cookies"); the other half is the
// HTTP filter stateful_session.
//
//   set-cookie of an answer ─▶ receive, save ─▶ [CookieJar] ─▶ send, cookie_header ─▶ cookie
//
//   signalbox::CookieJar jar;                         // One for each session, while it lasts.
//
//   grpc::ClientContext context;
//   jar.send(context);
//   const grpc::Status status = stub->Place(&context, request, &reply);
//   jar.receive(context).IgnoreError();               // Or log why a cookie was not taken.
//
// What it takes is RFC 6265's Set-Cookie, of the filter and of the servers alike. Path and Max-Age
// count: a cookie that has neither is sent with every call, as long as the jar lives. Expires,
// Domain, Secure and SameSite are not read: a jar belongs to one target, and to nobody else. Values
// are never in an error's text.
//
// Thread-safe: the calls of a session may run at once. The answer that comes last sets what counts.

#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include <grpcpp/client_context.h>

namespace signalbox {

class CookieJar {
 public:
  /// The wall clock: what Max-Age counts by.
  using Clock = std::chrono::system_clock;

  /// Cookies in a jar. RFC 6265 asks for so many of each domain.
  static constexpr std::size_t kMostCookies = 50;
  /// Bytes of one Set-Cookie, with its attributes. RFC 6265 asks for 4,096; whatever
  /// stateful_session writes is within.
  static constexpr std::size_t kLongestCookie = 8192;
  /// Bytes of all names and values: what gRPC servers, unasked, take as metadata of a call.
  static constexpr std::size_t kMostBytes = 8192;

  explicit CookieJar(std::function<Clock::time_point()> now = Clock::now);

  /// Takes the value of a Set-Cookie header: "name=value; Path=/shop; Max-Age=60". It replaces the
  /// cookie of the same name and path; one whose Max-Age is not above 0 only removes that. What is
  /// not taken changes nothing: INVALID_ARGUMENT where it is malformed, RESOURCE_EXHAUSTED where it
  /// is too long or the jar is full. A jar lets go of what has expired before it is full.
  absl::Status save(absl::string_view set_cookie);

  /// The value of the header Cookie for a call to `path`, whose query does not count:
  /// "a=1; b=2", longer cookie paths first (RFC 6265, 5.4). An empty `path` is unknown, and all
  /// cookies go with it. Empty: there is nothing to be sent.
  std::string cookie_header(absl::string_view path) const;

  /// Adds it to the call that is about to be made. `method` ("/package.Service/Method") is needed
  /// only where cookies of the same name have different paths: the filter looks at no cookie of a
  /// path that is not its own.
  void send(grpc::ClientContext& context, absl::string_view method = {}) const;

  /// Saves what the call's answer sets: its headers', then its trailers'. To be called once the
  /// call has ended; of a stream also as soon as its initial metadata is there. The error is of the
  /// first cookie that was not taken; the others were.
  absl::Status receive(const grpc::ClientContext& context);

 private:
  struct Cookie {
    std::string name;
    std::string value;
    std::string path;
    std::optional<Clock::time_point> expires;
  };

  static absl::StatusOr<Cookie> parse(absl::string_view set_cookie, Clock::time_point now);
  absl::Status keep(Cookie cookie, Clock::time_point now);

  const std::function<Clock::time_point()> now_;
  mutable std::mutex mutex_;
  std::vector<Cookie> cookies_;  ///< In the order in which they first came. Guarded by mutex_.
};

}  // namespace signalbox
