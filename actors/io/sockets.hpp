// SPDX-License-Identifier: Apache-2.0
//
// sockets — the POSIX calls that SocketDialer, TcpConnector and SocketProber share. Other files use
// Descriptor, too.

#pragma once

#include <string>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

namespace signalbox::actors {

/// Owns a file descriptor, and closes it.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}

  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  int operator*() const { return number_; }

  /// Gives up the descriptor. The caller must close it.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;  ///< 0: the text was no address.
};

/// Parses "1.2.3.4:80" or "[::1]:80".
SocketAddress parse_socket_address(const std::string& text);

/// A non-blocking socket of the address family of `to`; negative: errno has the reason.
Descriptor make_socket(const SocketAddress& to);

/// Begins to connect the socket. False: errno has the reason.
bool begin_connect(const Descriptor& socket, const SocketAddress& to);

/// The socket's pending error as an errno; 0: none.
int error_of(int socket);

}  // namespace signalbox::actors
