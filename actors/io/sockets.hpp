// SPDX-License-Identifier: Apache-2.0
//
// sockets — the little of POSIX that TCP connector and prober have in common.

#pragma once

#include <string>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

namespace signalbox::actors {

/// A file descriptor, closed with its owner.
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

  /// From now on it is the caller's to close.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;  ///< 0: the text was no address.
};

/// Of "1.2.3.4:80" or "[::1]:80".
SocketAddress parse_socket_address(const std::string& text);

/// A socket of that family, which does not block; negative: errno says why not.
Descriptor make_socket(const SocketAddress& to);

/// Begins to connect it. False: errno says why not.
bool begin_connect(const Descriptor& socket, const SocketAddress& to);

/// What became of the socket: an errno, 0: nothing bad.
int error_of(int socket);

}  // namespace signalbox::actors
