// SPDX-License-Identifier: Apache-2.0
//
// HttpDoor — accepts connections, and passes a connection on once its request's headers are
// complete.
//
//   listening socket ─▶ [HttpDoor] ─ the request's headers are complete ─▶ enter(connection)
//                          ├ no complete headers within limits.patience ─▶ closed
//                          └ headers that HTTP servers read in different ways ─▶ 400
//
// The door is one thread with a SocketLoop, which sleeps between events. A silent connection costs
// a descriptor and no thread. The door only peeks at a request: its bytes stay in the socket, and
// the HTTP library that gets the connection reads them.
//
// Invariants
//   D1  At most limits.most connections wait. A further connection replaces the connection that has
//       waited longest. The replaced connection is passed to enter() if its request is complete,
//       and else is closed.
//   D2  A connection waits for at most limits.patience, however often it sends bytes.
//   D3  A request with two Host headers, or with a NUL or a lone CR in its headers, is never passed
//       to enter(). The library would use the first Host, or the text before the NUL or CR. A proxy
//       may read the second Host or the text after the NUL or CR, and so let a request pass that
//       the proxy should refuse.
//   D4  When the process has no descriptor left, the door accepts a connection with the descriptor
//       that it holds for this case. So /ready has an answer when it matters most.

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
#include "channel/admin/http_headers.hpp"
#include "messages/admin_limit.hpp"

namespace signalbox::channel {

/// A connection, with its peer's address from accept().
struct AcceptedConnection {
  int descriptor = -1;
  sockaddr_storage peer{};
  socklen_t peer_size = 0;
};

/// The most connections that the kernel keeps until the door accepts them.
inline constexpr int kBacklog = 128;

struct HttpDoorLimits {
  std::size_t most = 256;  ///< Waiting connections.
  std::chrono::milliseconds patience{2000};
};

class HttpDoor final : private actors::SocketLoop::Handler {
 public:
  /// The most bytes of a request's headers. Longer headers are refused (431).
  static constexpr std::size_t kLongestHeaders = std::size_t{16} << 10U;

  /// The function that gets a connection when its request's headers are complete. Called on the
  /// door's thread. The function owns the descriptor. The bytes of `headers` are still in the
  /// socket.
  using Enter =
      std::function<void(const AcceptedConnection& connection, absl::string_view headers)>;

  /// Sends a response with this status and text, and closes the connection. Never blocks.
  static void turn_away(const AcceptedConnection& connection,
                        absl::string_view status,
                        absl::string_view why);

  /// `listener`: a listening socket, which the door owns. `hit` is called on the door's thread.
  HttpDoor(int listener, Enter enter, HttpDoorLimits limits = {}, LimitHit hit = [](AdminLimit) {});

  /// Closes all waiting connections.
  ~HttpDoor() override;

  /// False: the system had no descriptors left for the door, and no connection is accepted.
  bool is_open() const { return loop_ != nullptr; }

  HttpDoor(const HttpDoor&) = delete;
  HttpDoor& operator=(const HttpDoor&) = delete;

 private:
  using Id = actors::SocketLoop::Id;

  struct Waiting {
    actors::Descriptor socket;
    AcceptedConnection connection;  ///< Has the descriptor of `socket`.
  };

  using Place = std::map<Id, Waiting>::iterator;

  void happened(Id id) override;
  void is_due(Id id) override;

  void accept_all();
  bool is_waiting_outside() const;
  bool use_spare();
  void take_spare();
  void pause();
  void look(Place place);
  void evict(Place place);
  void close_waiting(Place place);
  AcceptedConnection take(Place place);

  const actors::Descriptor listener_;
  const Enter enter_;
  const HttpDoorLimits limits_;
  const LimitHit hit_;
  const std::unique_ptr<actors::SocketLoop> loop_;  // Null: the system had no descriptors left.
  std::map<Id, Waiting> waiting_;                   // Ids rise, so the oldest connection is first.
  Id last_;                                         // The connection accepted last.
  std::chrono::milliseconds until_retake_{1};       // Until spare_ is opened again.
  actors::Descriptor spare_;  // See D4. Empty: used, and no other could be opened since.
};

}  // namespace signalbox::channel
