// SPDX-License-Identifier: Apache-2.0
//
// CookieJar — the cookies of one session: stores the cookies that responses set, and sends them
// with the session's next calls. It is the application's half of session affinity (gRFC A55,
// "cookies"); the other half is the HTTP filter stateful_session.
//
//   set-cookie of a response ─▶ receive, save ─▶ [CookieJar] ─▶ send, cookie_header ─▶ cookie
//
//   signalbox::CookieJar jar;                         // One for each session, while it lasts.
//
//   grpc::ClientContext context;
//   jar.send(context);
//   const grpc::Status status = stub->Place(&context, request, &reply);
//   jar.receive(context).IgnoreError();               // Or log why a cookie was refused.
//
// A jar takes Set-Cookie headers as RFC 6265 has them, from the filter and from servers alike. Path
// and Max-Age count: a cookie with neither is sent with every call, as long as the jar lives.
// Expires, Domain, Secure and SameSite are ignored, because a jar belongs to one target. Cookie
// values never appear in an error's text.
//
// Thread-safe: the calls of a session may run at once. The response that comes last decides a
// cookie's value.

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
  /// The wall clock, for Max-Age.
  using Clock = std::chrono::system_clock;

  /// Cookies in a jar. RFC 6265 asks for room for so many per domain.
  static constexpr std::size_t kMostCookies = 50;
  /// Bytes of one Set-Cookie, with its attributes. RFC 6265 asks for 4,096. Every Set-Cookie of
  /// stateful_session is shorter.
  static constexpr std::size_t kLongestCookie = 8192;
  /// Bytes of all names and values. gRPC servers accept as many bytes of metadata per call by
  /// default.
  static constexpr std::size_t kMostBytes = 8192;

  explicit CookieJar(std::function<Clock::time_point()> now = Clock::now);

  /// Takes the value of a Set-Cookie header: "name=value; Path=/shop; Max-Age=60". The cookie
  /// replaces the cookie of the same name and path. A Max-Age of 0 or less only removes that
  /// cookie. A refused cookie changes nothing: INVALID_ARGUMENT when it is malformed,
  /// RESOURCE_EXHAUSTED when it is too long or the jar is full. Expired cookies make room first.
  absl::Status save(absl::string_view set_cookie);

  /// The value of the Cookie header for a call to `path`: "a=1; b=2", longer cookie paths first
  /// (RFC 6265, 5.4). A query in `path` is ignored. An empty `path` is unknown and matches all
  /// cookies. An empty result means that there is no cookie to send.
  std::string cookie_header(absl::string_view path) const;

  /// Adds the Cookie header to the call that is about to be made. `method`
  /// ("/package.Service/Method") is needed only when cookies of the same name have different paths:
  /// the filter reads only cookies of its own path.
  void send(grpc::ClientContext& context, absl::string_view method = {}) const;

  /// Saves the cookies that the call's response sets, first from its headers, then from its
  /// trailers. To be called once the call has ended, and for a stream also as soon as its initial
  /// metadata is there. Returns the error of the first refused cookie; the other cookies are saved.
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
  std::vector<Cookie> cookies_;  ///< In order of first arrival. Guarded by mutex_.
};

}  // namespace signalbox
