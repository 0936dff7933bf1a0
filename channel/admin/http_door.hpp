// SPDX-License-Identifier: Apache-2.0
//
// HttpDoor — accepts connections, and lets in those whose request has come.
//
//   listening socket ─▶ [HttpDoor] ─ the request's headers are whole ─▶ enter(connection)
//                          ├ no whole headers within the patience ─▶ closed
//                          └ headers that servers read in different ways ─▶ 400
//
// One thread, a SocketLoop, which sleeps when nothing comes. A connection that is silent holds a
// descriptor, and no thread. What it has sent stays in the socket: the HTTP library behind the door
// reads it.
//
// Invariants
//   D1  At most limits.most connections wait. Another one takes the place of the one that waits
//       longest.
//   D2  A connection waits for at most limits.patience, however often it sends something.
//   D3  No request with two Host headers, or with a NUL in its headers, enters: the library would
//       take the first Host, or the text before the NUL, where a proxy may take the other.

#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include <sys/socket.h>

#include "actors/io/socket_loop.hpp"
#include "actors/io/sockets.hpp"

namespace signalbox::channel {

/// A connection, and what accept() said of its other end.
struct AcceptedConnection {
  int descriptor = -1;
  sockaddr_storage peer{};
  socklen_t peer_size = 0;
};

struct HttpDoorLimits {
  std::size_t most = 256;  ///< Connections that wait.
  std::chrono::milliseconds patience{2000};
};

/// Where the headers of a request end, with the empty line; nullopt: they are not whole.
std::optional<std::size_t> end_of_headers(absl::string_view bytes);

/// Why a request with these whole headers is refused; nullopt: it is not.
std::optional<std::string> flaw_of_headers(absl::string_view headers);

class HttpDoor final : private actors::SocketLoop::Handler {
 public:
  /// Longer headers are refused.
  static constexpr std::size_t kLongestHeaders = std::size_t{16} << 10U;

  /// Called on the door's thread; the descriptor is the callee's.
  using Enter = std::function<void(const AcceptedConnection& connection)>;

  /// `listener`: a listening socket, which the door closes.
  HttpDoor(int listener, Enter enter, HttpDoorLimits limits = {});

  /// Closes all that wait.
  ~HttpDoor() override;

  /// False: the system had no descriptors for the door, and it lets nothing in.
  bool is_open() const { return loop_ != nullptr; }

  HttpDoor(const HttpDoor&) = delete;
  HttpDoor& operator=(const HttpDoor&) = delete;

 private:
  using Id = actors::SocketLoop::Id;

  struct Waiting {
    actors::Descriptor socket;
    AcceptedConnection connection;  ///< Its descriptor is the socket's.
  };

  using Place = std::map<Id, Waiting>::iterator;

  void happened(Id id) override;
  void is_due(Id id) override;

  void accept_all();
  void pause();
  void look(Place place);
  void close_waiting(Place place);
  AcceptedConnection take(Place place);

  const actors::Descriptor listener_;
  const Enter enter_;
  const HttpDoorLimits limits_;
  const std::unique_ptr<actors::SocketLoop> loop_;  // Null: no descriptors were left.
  std::map<Id, Waiting> waiting_;                   // The longest first.
  Id last_;                                         // The one accepted last.
};

}  // namespace signalbox::channel
