// SPDX-License-Identifier: Apache-2.0
//
// SocketDialer — connects sockets, waits until the server has spoken, and sees the end of the
// connections.
//
//   grpc_connector ─▶ dial(address) ─▶ [one thread, epoll] ─▶ connect ─▶ peek (first_bytes)
//       speaks(socket) ◀─ SETTINGS ──────────┤
//       is_silent()    ◀─ nothing at all ────┤   The server may wait for the client's preface.
//       failed(why)    ◀─ anything else ─────┘
//       ended()        ◀─ EPOLLRDHUP, after speaks()
//
// Invariants
//   D1  The dialer never reads a byte and never writes one: it peeks. Everything that the server
//       sent is still in the socket when speaks() passes the socket on.
//   D2  Of speaks(), is_silent() and failed() at most one is called, once; ended() is called at
//       most once, and only after speaks(). All run on the dialer's thread, with no lock held.
//   D3  After speaks(), the dialer does not use the socket's descriptor any more, because gRPC may
//       close it at any time. The socket stays in the dialer's epoll set, and leaves it when it is
//       closed. Notices on the socket's error queue are not the connection's end.
//   D4  A socket that was not passed on is closed by the dialer.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "actors/io/end_mark.hpp"
#include "actors/io/socket_loop.hpp"
#include "actors/io/sockets.hpp"
#include "messages/ids.hpp"

namespace signalbox::actors {

/// The receiver of a dial's events (D2).
class DialListener {
 public:
  virtual ~DialListener() = default;
  /// The server has sent a whole SETTINGS frame. `stream_limit`: the most calls at a time that it
  /// allows (FirstBytes::stream_limit).
  virtual void speaks(SocketLoop::Id dial,
                      Descriptor socket,
                      std::optional<std::uint32_t> stream_limit) = 0;
  /// The server has sent nothing for a while (kSilence), or until the dial's last limit, and may be
  /// waiting for the client's preface. The socket is closed.
  virtual void is_silent() = 0;
  /// No connection was made. `why` does not name the address.
  virtual void failed(const std::string& why) = 0;
  /// The server has ended the connection, SocketLine::lose() was called, or the line's last owner
  /// has dropped it. `has_error`: the system has reported an error, such as a reset or a timeout.
  /// False if gRPC has read the error before.
  virtual void ended(bool has_error) = 0;
};

class SocketLine;

/// When a connected server that has sent nothing counts as silent (SocketDialer::kSilence).
class SilenceDeadline {
 public:
  /// The TCP handshake took from `begun` until `connected`.
  constexpr SilenceDeadline(Instant begun, Instant connected, Duration silence)
      : earliest_(connected + 3 * (connected - begun)),
        at_(std::max(connected + silence, earliest_)) {}

  /// Leaves half of the time from `now` until a limit of the dial to another way to connect.
  constexpr void leave_time(Instant now, Instant limit) {
    at_ = std::min(at_, std::max(now + (limit - now) / 2, earliest_));
  }

  constexpr Instant at() const { return at_; }

 private:
  Instant earliest_;
  Instant at_;
};

class SocketDialer {
 public:
  class Loop;
  using Id = SocketLoop::Id;

  /// A server that speaks first has sent SETTINGS this long after the connection was made. After
  /// that it counts as silent, or earlier, after half of the time that a limit of the dial leaves.
  /// It never counts as silent before three times the time of the TCP handshake.
  static constexpr std::chrono::milliseconds kSilence{100};

  /// Begins to connect a socket. False: errno has the reason.
  using Connect = std::function<bool(const Descriptor& socket, const SocketAddress& to)>;

  /// Returns an error if the operating system has no file descriptor left for this process.
  /// `silence`: takes the place of kSilence; `connect`: for tests.
  static absl::StatusOr<std::unique_ptr<SocketDialer>> start(
      std::chrono::milliseconds silence = kSilence, Connect connect = begin_connect);

  /// Calls stop().
  ~SocketDialer();
  SocketDialer(const SocketDialer&) = delete;
  SocketDialer& operator=(const SocketDialer&) = delete;

  /// Begins to connect to "1.2.3.4:80", "[::1]:80" or "unix:/path"; thread-safe, never blocks.
  /// `user_timeout`: TCP_USER_TIMEOUT, after which the system gives up a connection if the peer
  /// does not acknowledge data; nullopt: the system's own.
  Id dial(const Address& to,
          std::optional<std::chrono::milliseconds> user_timeout,
          std::shared_ptr<DialListener> listener);

  /// Calls `over` at `due`, unless speaks(), is_silent() or failed() came before. `so_far` says how
  /// far the dial has come, as a part of an error text. The dial goes on, unless the server counts
  /// as silent with its last limit.
  void limit(Id dial, Instant due, std::function<void(absl::string_view so_far)> over);

  /// Ends a dial: closes its socket. Thread-safe. Events that have begun go on.
  void hang_up(Id dial);

  /// Runs `order` on the dialer's thread. Thread-safe.
  void post(std::function<void()> order);

  /// The line of a dial. The dialer watches the end of the connection for as long as the line
  /// lives. Precondition: the dial's speaks() runs now.
  std::shared_ptr<SocketLine> line(Id dial);

  /// Joins the thread: no event runs afterwards. Must not be called from an event.
  void stop();

 private:
  explicit SocketDialer(std::shared_ptr<Loop> loop);

  const std::shared_ptr<Loop> loop_;
};

/// A connection that the dialer has passed on. Thread-safe; it may outlive the dialer, and then
/// does not see the end of the connection.
class SocketLine {
 public:
  SocketLine(std::shared_ptr<SocketDialer::Loop> loop, SocketLoop::Id dial);
  ~SocketLine();
  SocketLine(const SocketLine&) = delete;
  SocketLine& operator=(const SocketLine&) = delete;

  /// Whether the connection takes no more calls: it has ended, or lose() was called.
  [[gnu::hot]] bool has_ended() const { return mark_.is_set(); }

  /// Records the end of the connection. Called by the dialer.
  void record_end() { mark_.set(); }

  /// The connection's last owner has gone: no pick finds the connection.
  void let_go() { mark_.let_go(); }

  /// Gives the connection up for new calls: DialListener::ended() is called on the dialer's thread.
  /// The connection stays open for its calls in flight.
  void lose();

 private:
  EndMark mark_;
  const std::shared_ptr<SocketDialer::Loop> loop_;
  const SocketLoop::Id dial_;
};

}  // namespace signalbox::actors
