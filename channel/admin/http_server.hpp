// SPDX-License-Identifier: Apache-2.0
//
// HttpServer — answers the HTTP requests of one listening socket.
//
//   listening socket ─▶ HttpDoor ─▶ [HttpServer] ─▶ handler(AdminRequest) ─▶ AdminResponse
//
// Two threads: the door's, and one that answers one request after another. Both sleep while there
// are no requests. The destructor ends at once and cuts off open connections.
//
// Limits: those of the door, and behind the door at most kMaxConnections connections at a time. A
// connection has kMaxConnectionBytes for all bytes that it sends. A larger request is refused (414,
// 431). A connection that reads nothing of its response is closed after kIdleSeconds. Each server
// has limits of its own.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "channel/admin/admin_pages.hpp"
#include "channel/admin/http_door.hpp"

struct MHD_Daemon;

namespace signalbox::channel {

class HttpServer {
 public:
  static constexpr unsigned kMaxConnections = 64;
  static constexpr std::size_t kMaxConnectionBytes = HttpDoor::kLongestHeaders;
  static constexpr unsigned kIdleSeconds = 10;

  /// Called on the server's thread.
  using Handler = std::function<AdminResponse(AdminRequest request)>;

  /// Takes the listening socket, and closes it on failure. Returns null when the HTTP library does
  /// not start, or when the system has no descriptors left for the HttpDoor, which accepts the
  /// connections.
  static std::unique_ptr<HttpServer> start(int listener, Handler handler);

  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  AdminResponse respond(AdminRequest request) const { return handler_(std::move(request)); }

 private:
  explicit HttpServer(Handler handler) : handler_(std::move(handler)) {}

  const Handler handler_;
  MHD_Daemon* daemon_ = nullptr;
  std::optional<HttpDoor> door_;
};

}  // namespace signalbox::channel
