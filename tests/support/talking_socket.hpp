// SPDX-License-Identifier: Apache-2.0
//
// TalkingSocket — a port that takes connections, reads, and says one thing to each.
//
//   client ─▶ connects, sends ─▶ [a thread] ─▶ what the test wants said ─▶ closes, or waits

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace signalbox::test {

class TalkingSocket {
 public:
  /// Waits for `until` in what it is sent, and then says `says`. Empty: at once, nothing.
  explicit TalkingSocket(std::string says = "", std::string until = "")
      : says_(std::move(says)), until_(std::move(until)) {
    listen();
  }

  ~TalkingSocket() { close(); }

  TalkingSocket(const TalkingSocket&) = delete;
  TalkingSocket& operator=(const TalkingSocket&) = delete;

  int port() const { return port_; }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  void say(std::string what) {
    const std::lock_guard lock(mutex_);
    says_ = std::move(what);
  }

  /// What the last one sent.
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

  /// At the port that it has had.
  void listen() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
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
    std::array<char, 1024> bytes{};
    while (got.find(until_) == std::string::npos) {
      pollfd ready{taken, POLLIN, 0};
      if (::poll(&ready, 1, 10) == 0) {
        if (is_ending_) return;
        continue;
      }
      const auto count = ::recv(taken, bytes.data(), bytes.size(), 0);
      if (count <= 0) return;
      got.append(bytes.data(), static_cast<std::size_t>(count));
    }
    const std::lock_guard lock(mutex_);
    heard_ = got;
    [[maybe_unused]] const auto sent = ::send(taken, says_.data(), says_.size(), MSG_NOSIGNAL);
  }

  int port_ = 0;
  int listener_ = -1;
  std::atomic<int> taken_ = 0;
  std::atomic<bool> is_ending_ = false;
  mutable std::mutex mutex_;  ///< Guards the next two.
  std::string says_;
  std::string heard_;
  const std::string until_;
  std::thread thread_;
};

}  // namespace signalbox::test
