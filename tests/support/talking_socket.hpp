// SPDX-License-Identifier: Apache-2.0
//
// TalkingSocket — a server on a port of 127.0.0.1. It accepts one connection after the other, reads
// from it, and sends the test's bytes to it.
//
//   client ─▶ connects, sends ─▶ [a thread] ─▶ one turn after the other ─▶ closes, or resets
//
// A turn waits for a text from the client, and then sends a text.

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "messages/invariant.hpp"

namespace signalbox::test {

class TalkingSocket {
 public:
  struct Turn {
    std::string until;  ///< The socket waits for this text in all bytes received so far.
    std::string says;
  };

  /// Waits for `until` in the received bytes, then sends `says`. Empty `until`: sends at once;
  /// empty `says`: sends nothing.
  explicit TalkingSocket(std::string says = "", std::string until = "")
      : TalkingSocket(std::vector<Turn>{{std::move(until), std::move(says)}}) {}

  /// Takes the turns in order. After the last it ends the sending side, reads until the client
  /// closes, and closes the connection.
  explicit TalkingSocket(std::vector<Turn> turns) : turns_(std::move(turns)) { listen(); }

  ~TalkingSocket() { close(); }

  TalkingSocket(const TalkingSocket&) = delete;
  TalkingSocket& operator=(const TalkingSocket&) = delete;

  int port() const { return port_; }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  void say(std::string what) {
    const std::lock_guard lock(mutex_);
    turns_.back().says = std::move(what);
  }

  /// From now on the socket resets a connection after its last turn, instead of closing it.
  void reset_after() { resets_ = true; }

  /// When a turn sends its text, the socket keeps the bytes received so far on that connection.
  /// Returns the bytes kept by the latest turn.
  std::string heard() const {
    const std::lock_guard lock(mutex_);
    return heard_;
  }

  int taken() const { return taken_; }

  /// From now on connections are refused.
  void close() {
    if (listener_ < 0) return;
    is_ending_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(std::exchange(listener_, -1));
  }

  /// Listens on port_. The first call lets the system choose the port; later calls use the same
  /// port.
  void listen() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    SIGNALBOX_INVARIANT(listener_ >= 0, "the system makes sockets");
    const int on = 1;
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(static_cast<std::uint16_t>(port_));
    auto* const generic = reinterpret_cast<sockaddr*>(&name);
    socklen_t length = sizeof(name);
    REQUIRE(::bind(listener_, generic, length) == 0);
    REQUIRE(::getsockname(listener_, generic, &length) == 0);
    port_ = ntohs(name.sin_port);
    REQUIRE(::listen(listener_, 64) == 0);
    is_ending_ = false;
    thread_ = std::thread([this] { run(); });
  }

 private:
  void run() {
    while (true) {
      const int taken = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (taken < 0) return;
      ++taken_;
      talk(taken);
      ::close(taken);
    }
  }

  void talk(int taken) {
    std::string got;
    for (const Turn& turn : turns_) {
      if (!hear(taken, turn.until, got)) return;
      const std::lock_guard lock(mutex_);
      heard_ = got;
      [[maybe_unused]] const auto sent =
          ::send(taken, turn.says.data(), turn.says.size(), MSG_NOSIGNAL);
    }
    if (resets_) {
      const linger at_once{1, 0};
      ::setsockopt(taken, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
      return;
    }
    // A close with unread bytes would reset the connection, and the peer could lose bytes sent to
    // it.
    ::shutdown(taken, SHUT_WR);
    while (receive(taken, got)) {
    }
  }

  // Returns false if the connection ends, or close() is called, before `until` comes.
  bool hear(int taken, const std::string& until, std::string& got) const {
    while (got.find(until) == std::string::npos) {
      if (!receive(taken, got)) return false;
    }
    return true;
  }

  bool receive(int taken, std::string& got) const {
    pollfd ready{taken, POLLIN, 0};
    while (::poll(&ready, 1, 10) == 0) {
      if (is_ending_) return false;
    }
    std::array<char, 1024> bytes{};
    const auto count = ::recv(taken, bytes.data(), bytes.size(), 0);
    if (count > 0) got.append(bytes.data(), static_cast<std::size_t>(count));
    return count > 0;
  }

  int port_ = 0;
  int listener_ = -1;
  std::atomic<int> taken_ = 0;
  std::atomic<bool> is_ending_ = false;
  std::atomic<bool> resets_ = false;
  mutable std::mutex mutex_;  ///< Guards heard_ and Turn::says.
  std::string heard_;
  std::vector<Turn> turns_;  ///< The number of turns and each `until` never change.
  std::thread thread_;
};

}  // namespace signalbox::test
