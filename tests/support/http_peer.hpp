// SPDX-License-Identifier: Apache-2.0
//
// HttpPeer — a client of an HTTP server on 127.0.0.1. It sends exactly the bytes of the test.

#pragma once

#include <chrono>
#include <string>

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace signalbox::channel {

class HttpPeer {
 public:
  explicit HttpPeer(int port) : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(static_cast<std::uint16_t>(port));
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ =
        descriptor_ >= 0 &&
        ::connect(descriptor_, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
  }

  ~HttpPeer() { ::close(descriptor_); }

  HttpPeer(const HttpPeer&) = delete;
  HttpPeer& operator=(const HttpPeer&) = delete;

  bool is_connected() const { return is_connected_; }

  bool send(const std::string& text) {
    return ::send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }

  // Returns all bytes that the server sends until it closes the connection.
  std::string receive() {
    std::string all;
    char part[4096];
    for (ssize_t size = 0; (size = ::recv(descriptor_, part, sizeof part, 0)) > 0;)
      all.append(part, static_cast<std::size_t>(size));
    return all;
  }

  // Waits for at most `time`, and returns whether the server has sent a byte that is not received.
  bool has_byte(std::chrono::milliseconds time) {
    pollfd wanted{.fd = descriptor_, .events = POLLIN, .revents = 0};
    char byte = 0;
    return ::poll(&wanted, 1, static_cast<int>(time.count())) == 1 &&
           ::recv(descriptor_, &byte, 1, MSG_PEEK) == 1;
  }

  // Waits for at most `time`, and returns whether the server has closed the connection. False while
  // a byte is not received.
  bool is_closed(std::chrono::milliseconds time) {
    pollfd wanted{.fd = descriptor_, .events = POLLIN, .revents = 0};
    char byte = 0;
    return ::poll(&wanted, 1, static_cast<int>(time.count())) == 1 &&
           ::recv(descriptor_, &byte, 1, MSG_PEEK) <= 0;
  }

 private:
  int descriptor_;
  bool is_connected_ = false;
};

inline std::string ask(int port, const std::string& text) {
  HttpPeer peer(port);
  REQUIRE(peer.is_connected());
  peer.send(text);
  return peer.receive();
}

}  // namespace signalbox::channel
