// SPDX-License-Identifier: Apache-2.0
//
// HttpServer — answers the HTTP requests of one listening socket.
//
//   listening socket ─▶ HttpDoor ─┬ any path ──────▶ [slow lane] ─┐
//                                 └ the quick path ▶ [quick lane] ┴▶ handler(AdminRequest)
//
// The server has a thread for the HttpDoor and one for each lane: three threads, or two without a
// quick path, because there is only the slow lane then. They sleep while there are no requests. A
// lane answers one request after another, so a long response delays only the requests of its own
// lane. The destructor cuts off open connections, and waits for handlers that are running.
//
// Limits of one server, beside those of its HttpDoor: each lane has at most kMaxConnections
// connections at a time, and a further connection gets 503. A request larger than
// kMaxConnectionBytes is refused (414, 431). When a client reads nothing of its response for
// idle_seconds, its connection is closed. While clients have kMaxWaitingBytes of responses left to
// read, further responses are 503. HttpServerOptions::hit is called for each limit reached,
// but not when the HTTP library itself refuses a large request.

#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "channel/admin/admin_pages.hpp"
#include "channel/admin/http_door.hpp"
#include "messages/admin_limit.hpp"

struct MHD_Daemon;

namespace signalbox::channel {

struct HttpServerOptions {
  /// Requests of this path are answered in a lane of their own. Empty: there is one lane.
  std::string quick_path = {};
  /// Called on the server's threads. Must not be null.
  LimitHit hit = [](AdminLimit) {};
  unsigned idle_seconds = 10;
};

class HttpServer {
 public:
  static constexpr unsigned kMaxConnections = 64;
  static constexpr std::size_t kMaxConnectionBytes = HttpDoor::kLongestHeaders;
  static constexpr std::size_t kMaxWaitingBytes = std::size_t{64} << 20U;

  /// Sent with every response to a handled request, but not when the HttpDoor or the HTTP library
  /// refuses a request: a browser runs no script, and loads nothing from elsewhere.
  static constexpr char kContentSecurityPolicy[] =
      "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'";

  /// Called on the thread of the request's lane. With a quick path there are two lanes, so two
  /// threads may call it at the same time.
  using Handler = std::function<AdminResponse(AdminRequest request)>;

  /// Takes the listening socket, and closes it on failure. Returns null when the HTTP library does
  /// not start, or when the system has no descriptors left for the HttpDoor, which accepts the
  /// connections.
  static std::unique_ptr<HttpServer> start(int listener,
                                           Handler handler,
                                           HttpServerOptions options = {});

  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Returns the handler's response, or 503 if clients would then have more than kMaxWaitingBytes
  /// of responses left to read. A single response may be larger.
  AdminResponse respond(AdminRequest request);

  /// The bytes of all responses that have not ended. A response ends when all of it has been sent,
  /// or when its connection is closed.
  std::atomic<std::size_t>& waiting_bytes() { return waiting_bytes_; }

  /// Reports AdminLimit::kHttpIdle: the HTTP library closes a connection, because its client has
  /// read nothing for idle_seconds. Closes nothing itself.
  void idled() const { options_.hit(AdminLimit::kHttpIdle); }

 private:
  HttpServer(Handler handler, HttpServerOptions options)
      : handler_(std::move(handler)), options_(std::move(options)) {}

  /// A daemon of the HTTP library (it has a thread), and the number of its connections. enter()
  /// adds a connection, and the library reports the connection's end (count_end()).
  struct Lane {
    MHD_Daemon* daemon = nullptr;
    std::atomic<unsigned> connections{0};
  };

  bool start(Lane& lane);
  void enter(Lane& lane, const AcceptedConnection& connection) const;

  const Handler handler_;
  const HttpServerOptions options_;
  std::atomic<std::size_t> waiting_bytes_{0};
  Lane slow_;
  Lane quick_;  ///< Its `daemon` is null if there is no quick path.
  std::optional<HttpDoor> door_;
};

}  // namespace signalbox::channel
