// SPDX-License-Identifier: Apache-2.0
//
// FloodingServer — a broken control plane: it accepts connections, never reads, and sends one
// HTTP/2 frame again and again.
//
//   client ─▶ connects ─▶ [a thread for each] ─▶ SETTINGS, then the flood until the end

#pragma once

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/cut_headers.hpp"

namespace signalbox::test {

class FloodingServer {
 public:
  /// `frame`: the frame that is repeated; empty: nothing more is sent.
  explicit FloodingServer(const std::string& frame) {
    for (int i = 0; i < 256 && !frame.empty(); ++i)
      flood_ += frame;
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // A small receive buffer soon has no room for the client's answers.
    const int little = 4096;
    ::setsockopt(listener_, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const generic = reinterpret_cast<sockaddr*>(&name);
    socklen_t length = sizeof(name);
    REQUIRE(::bind(listener_, generic, length) == 0);
    REQUIRE(::getsockname(listener_, generic, &length) == 0);
    port_ = ntohs(name.sin_port);
    REQUIRE(::listen(listener_, 64) == 0);
    thread_ = std::thread([this] { run(); });
  }

  ~FloodingServer() {
    is_ending_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    for (std::thread& talk : talks_)
      talk.join();
    ::close(listener_);
  }

  FloodingServer(const FloodingServer&) = delete;
  FloodingServer& operator=(const FloodingServer&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  /// The number of bytes that send() has accepted so far, over all connections.
  std::size_t sent() const { return sent_; }

  /// Whether held_up() is not 0.
  bool is_held_up() const { return held_up() > 0; }

  /// The number of connections that were ever so full that nothing could be sent for 20 ms. With an
  /// empty `frame`: the number of connections that had nothing to send for 20 ms.
  int held_up() const { return held_up_; }

 private:
  void run() {
    while (true) {
      const int taken = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (taken < 0) return;
      talks_.emplace_back([this, taken] { talk(taken); });
    }
  }

  void talk(int taken) {
    std::string next = http2_settings();
    bool was_held_up = false;
    while (!is_ending_) {
      pollfd ready{taken, static_cast<short>(next.empty() ? 0 : POLLOUT), 0};
      const int count = ::poll(&ready, 1, 20);
      if (count == 0) {
        if (!std::exchange(was_held_up, true)) ++held_up_;
        continue;
      }
      if ((ready.revents & (POLLERR | POLLHUP)) != 0) break;
      const auto sent = ::send(taken, next.data(), next.size(), MSG_NOSIGNAL);
      if (sent < 0) break;
      sent_ += static_cast<std::size_t>(sent);
      next.erase(0, static_cast<std::size_t>(sent));
      if (next.empty()) next = flood_;
    }
    ::close(taken);
  }

  std::string flood_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> is_ending_ = false;
  std::atomic<int> held_up_ = 0;
  std::atomic<std::size_t> sent_ = 0;
  std::thread thread_;
  std::vector<std::thread> talks_;  ///< Used by thread_ alone until it has ended.
};

/// A PING frame. A peer must answer each one, as it must each SETTINGS (RFC 9113, 6.7 and 6.5).
inline std::string http2_ping() {
  constexpr std::uint8_t kPing = 6;
  return http2_frame(kPing, 0, "12345678");
}

}  // namespace signalbox::test
