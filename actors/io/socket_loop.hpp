// SPDX-License-Identifier: Apache-2.0
//
// SocketLoop — one thread that waits for many sockets, for their times, and for orders. What else
// can be polled, as the news of a file, is a socket to it.
//
//   any thread ─▶ post(order) ─┐
//   sockets ─────── epoll ─────┼─▶ [one thread] ─▶ order() │ Handler::happened │ Handler::is_due
//   times ─────────────────────┘
//
// Whoever stands behind it keeps its sockets and all that belongs to them for the thread alone, and
// so needs no lock of its own.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "actors/io/sockets.hpp"
#include "messages/ids.hpp"

namespace signalbox::actors {

class SocketLoop {
 public:
  /// Of a socket and its time; never 0, which is the loop's own.
  using Id = std::uint64_t;

  /// The clock of times.
  static Instant now() { return std::chrono::steady_clock::now(); }

  /// Called on the loop's thread, with no lock held.
  class Handler {
   public:
    virtual ~Handler() = default;
    /// The socket has what was listened for, or an error. It may have been forgotten meanwhile.
    virtual void happened(Id id) = 0;
    /// Its time is over, and it has none any more.
    virtual void is_due(Id id) = 0;
  };

  /// `unable`: what cannot be done where the system has no open files left, which is the error.
  static absl::StatusOr<std::unique_ptr<SocketLoop>> make(absl::string_view unable);

  /// The thread is there from the first call on; `handler` lives until stop().
  void begin(Handler& handler);

  /// Waits for the thread's end. Orders before this are carried out, later ones perhaps not. Not to
  /// be called from the thread.
  void stop();

  /// Any thread. Orders are carried out one after the other, each once.
  void post(std::function<void()> order);

  // For the thread alone.

  /// Hears of `what` (EPOLLOUT, EPOLLIN, EPOLLRDHUP; with EPOLLET of changes alone), and of nothing
  /// else. A closed socket is forgotten by itself. False: errno says why not.
  bool listen_for(Id id, int socket, std::uint32_t what) const;

  /// Hears of the socket no more, which stays open.
  void forget(Id id, int socket);

  /// Instead of the time that it had. Instant::max(): it has none.
  void set_due(Id id, Instant due);

 private:
  SocketLoop(Descriptor epoll, Descriptor bell)
      : epoll_(std::move(epoll)), bell_(std::move(bell)) {}

  void run(Handler& handler);
  bool obey();
  int patience_ms() const;

  const Descriptor epoll_;
  const Descriptor bell_;
  std::once_flag begun_;

  std::mutex mutex_;  ///< Guards the orders.
  std::vector<std::function<void()>> orders_;

  // The thread's.
  bool is_stopping_ = false;
  std::map<Id, Instant> times_;
  std::set<std::pair<Instant, Id>> due_;

  std::thread thread_;
};

}  // namespace signalbox::actors
