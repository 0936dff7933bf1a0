// SPDX-License-Identifier: Apache-2.0
//
// SocketLoop — one thread that waits for many sockets, for timers, and for orders (functions that
// other threads post). Other pollable descriptors, such as those of inotify, count as sockets.
//
//   any thread ─▶ post(order) ─┐
//   sockets ─────── epoll ─────┼─▶ [one thread] ─▶ order() │ Handler::happened │ Handler::is_due
//   times ─────────────────────┘
//
// Only the loop's thread uses the sockets and their data, so the user of a loop needs no lock.

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
  /// Identifies a socket and its timer; never 0, which is the loop's own.
  using Id = std::uint64_t;

  /// The clock of timers.
  static Instant now() { return std::chrono::steady_clock::now(); }

  /// The callbacks of the loop's user. They run on the loop's thread, with no lock held.
  class Handler {
   public:
    virtual ~Handler() = default;
    /// The socket is ready as listen_for() asked, or has an error. The socket may have been
    /// forgotten meanwhile.
    virtual void happened(Id id) = 0;
    /// The socket's timer has ended, and is not set any more.
    virtual void is_due(Id id) = 0;
  };

  /// Returns UNAVAILABLE if the system gives no descriptor, for example because none is free. The
  /// error's text begins with `unable`.
  static absl::StatusOr<std::unique_ptr<SocketLoop>> make(absl::string_view unable);

  /// The first call starts the thread; `handler` must live until stop().
  void begin(Handler& handler);

  /// Ends the thread, if begin() has started it, and waits for its end. Orders that were posted
  /// before are then carried out; orders that are posted later may not be. Must not be called on
  /// the loop's thread.
  void stop();

  /// Lets the loop's thread run `order`. Thread-safe. Orders run one after another, each once.
  void post(std::function<void()> order);

  // The functions below may be called on the loop's thread only.

  /// Listens for `what` (EPOLLOUT, EPOLLIN, EPOLLRDHUP; with EPOLLET only for changes) instead of
  /// the earlier events. The system forgets a closed socket by itself. False: errno has the reason.
  bool listen_for(Id id, int socket, std::uint32_t what) const;

  /// Stops listening to the socket and its timer; the socket stays open.
  void forget(Id id, int socket);

  /// The events of the socket for which Handler::happened() runs now.
  std::uint32_t events() const { return events_; }

  /// Replaces the socket's timer. Instant::max(): no timer.
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

  // Only the loop's thread uses the next four members.
  std::uint32_t events_ = 0;
  bool is_stopping_ = false;
  std::map<Id, Instant> times_;
  std::set<std::pair<Instant, Id>> due_;

  std::thread thread_;
};

}  // namespace signalbox::actors
