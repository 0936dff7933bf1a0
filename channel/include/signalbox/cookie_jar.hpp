// SPDX-License-Identifier: Apache-2.0
//
// CookieJar — the cookies of one session: stores the cookies that responses set, and sends them
// with the session's next calls. It is the application's half of session affinity (gRFC A55,
// "cookies"); the other half is the HTTP filter stateful_session.
//
//   set-cookie of a response ─▶ receive, save ─▶ [CookieJar] ─▶ send, cookie_header ─▶ cookie
//
//   signalbox::CookieJar jar;                         // One jar for each session.
//
//   grpc::ClientContext context;
//   jar.send(context);
//   const grpc::Status status = stub->Place(&context, request, &reply);
//   jar.receive(context).IgnoreError();               // Or log why a cookie was refused.
//
// A jar parses Set-Cookie headers by RFC 6265, whether the filter or a server has made them. It
// obeys the attributes Path and Max-Age. A cookie with neither attribute is sent with every call,
// until another Set-Cookie replaces it or the jar is destroyed. Expires, Domain, Secure and
// SameSite are ignored, because a jar belongs to one target.
// Cookie values never appear in an error's text.
//
// Thread-safe: the calls of a session may run at the same time. The response that is saved last
// decides a cookie's value.

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
  /// The wall clock, by which Max-Age ends a cookie.
  using Clock = std::chrono::system_clock;

  /// The most cookies in a jar. RFC 6265 asks clients to keep at least 50 per domain.
  static constexpr std::size_t kMostCookies = 50;
  /// The most bytes of one Set-Cookie value, attributes included. RFC 6265 asks clients to accept
  /// at least 4,096. Every Set-Cookie of stateful_session is shorter than this limit, unless
  /// max_name_length (xds::Limits) is raised.
  static constexpr std::size_t kLongestCookie = 8192;
  /// The most bytes of all names and values together. By default, gRPC servers accept this many
  /// bytes of metadata per call.
  static constexpr std::size_t kMostBytes = 8192;

  explicit CookieJar(std::function<Clock::time_point()> now = Clock::now);

  /// Takes the value of a Set-Cookie header: "name=value; Path=/shop; Max-Age=60". The cookie
  /// replaces the cookie of the same name and path. A Max-Age of 0 or less only removes that
  /// cookie. INVALID_ARGUMENT: the header is malformed. RESOURCE_EXHAUSTED: it is too long, or the
  /// jar is full; expired cookies do not count. After an error, the jar sends what it sent before.
  absl::Status save(absl::string_view set_cookie);

  /// The value of the Cookie header for a call to `path`: "a=1; b=2". Cookies with longer paths are
  /// first (RFC 6265, 5.4). A query in `path` is ignored. With an empty `path`, which means that
  /// the caller does not know the path, the result has the cookies of all paths. Empty result:
  /// there is no cookie to send.
  std::string cookie_header(absl::string_view path) const;

  /// Adds the Cookie header to the call that is about to be made. `method` is the path of the call:
  /// "/package.Service/Method"; empty: the cookies of all paths are sent. `method` is needed only
  /// when the jar has several cookies of one name with different paths, of which the server and the
  /// filter stateful_session must get the right one.
  void send(grpc::ClientContext& context, absl::string_view method = {}) const;

  /// Saves the cookies that the call's response sets, first from its headers, then from its
  /// trailers. Call it after the call has ended. For a stream, also call it as soon as the initial
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
