// SPDX-License-Identifier: Apache-2.0
#include "actors/io/sockets.hpp"

#include <cerrno>
#include <cstdint>

#include "absl/strings/numbers.h"
#include <arpa/inet.h>
#include <netinet/in.h>

namespace signalbox::actors {

SocketAddress parse_socket_address(const std::string& text) {
  SocketAddress parsed;
  const auto colon = text.rfind(':');
  std::uint32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(text.substr(colon + 1), &port) ||
      port > 65535)
    return parsed;
  const std::string host = text.substr(0, colon);
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&parsed.storage);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&parsed.storage);
  if (::inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<std::uint16_t>(port));
    parsed.length = sizeof(*v4);
  } else if (host.size() > 2 && host.front() == '[' &&
             ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<std::uint16_t>(port));
    parsed.length = sizeof(*v6);
  }
  return parsed;
}

Descriptor make_socket(const SocketAddress& to) {
  return Descriptor(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

bool begin_connect(const Descriptor& socket, const SocketAddress& to) {
  const auto* const name = reinterpret_cast<const sockaddr*>(&to.storage);
  return ::connect(*socket, name, to.length) == 0 || errno == EINPROGRESS;
}

int error_of(int socket) {
  int error = 0;
  socklen_t length = sizeof(error);
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

}  // namespace signalbox::actors
