// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/cutting_proxy.hpp"

#include <algorithm>
#include <array>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace signalbox::test {
namespace {

sockaddr_in loopback(int port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  name.sin_port = htons(static_cast<std::uint16_t>(port));
  return name;
}

// Returns a connected socket, or -1 when the connection fails.
int connect_to(const std::string& address) {
  int port = 0;
  if (!absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) return -1;
  const sockaddr_in name = loopback(port);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0) return fd;
  ::close(fd);
  return -1;
}

bool write_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::send(fd, data, size, MSG_NOSIGNAL);
    if (written <= 0) return false;
    data += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

// Discards unsent bytes. The other side's read fails with a reset.
void close_with_reset(int fd) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  ::close(fd);
}

}  // namespace

CuttingProxy::CuttingProxy(const std::string& server, End end) : server_(server), end_(end) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name = loopback(0);
  socklen_t length = sizeof(name);
  auto* const generic = reinterpret_cast<sockaddr*>(&name);
  REQUIRE(::bind(listener_, generic, length) == 0);
  REQUIRE(::listen(listener_, SOMAXCONN) == 0);
  REQUIRE(::getsockname(listener_, generic, &length) == 0);
  REQUIRE(::pipe2(stop_.data(), O_CLOEXEC) == 0);
  address_ = absl::StrCat("127.0.0.1:", ntohs(name.sin_port));
  acceptor_ = std::thread([this] { accept_all(); });
}

CuttingProxy::~CuttingProxy() {
  ::close(stop_[1]);
  acceptor_.join();
  for (std::thread& connection : connections_)
    connection.join();
  ::close(stop_[0]);
  ::close(listener_);
}

void CuttingProxy::cut_after(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  left_.push_back(bytes);
}

std::size_t CuttingProxy::cuts() const {
  const std::lock_guard lock(mutex_);
  return cuts_;
}

void CuttingProxy::accept_all() {
  for (;;) {
    std::array<pollfd, 2> fds{pollfd{listener_, POLLIN, 0}, pollfd{stop_[0], POLLIN, 0}};
    ::poll(fds.data(), fds.size(), -1);
    if (fds[1].revents != 0) return;
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client >= 0) connections_.emplace_back([this, client] { serve(client); });
  }
}

// Passes bytes until either side ends the connection or a cut is due. A blocked write to one side
// also stops the other direction. A client's messages are too small to cause that.
void CuttingProxy::serve(int client) {
  const int server = connect_to(server_);
  bool goes_on = server >= 0;
  while (goes_on) {
    std::array<pollfd, 3> fds{
        pollfd{client, POLLIN, 0}, pollfd{server, POLLIN, 0}, pollfd{stop_[0], POLLIN, 0}};
    ::poll(fds.data(), fds.size(), -1);
    goes_on = fds[2].revents == 0;
    if (goes_on && fds[0].revents != 0) goes_on = pass(client, server, /*from_server=*/false);
    if (goes_on && fds[1].revents != 0) goes_on = pass(server, client, /*from_server=*/true);
  }
  for (const int fd : {client, server}) {
    if (fd < 0) continue;
    if (end_ == End::kReset)
      close_with_reset(fd);
    else
      ::close(fd);
  }
}

// Reads once from the socket `from`, and writes the bytes that may pass to `to`. Returns false if
// the connection must end: a socket failed or was closed, or a cut is due.
bool CuttingProxy::pass(int from, int to, bool from_server) {
  std::array<char, 4096> bytes;
  const ssize_t got = ::recv(from, bytes.data(), bytes.size(), 0);
  if (got <= 0) return false;
  const auto size = static_cast<std::size_t>(got);
  const std::size_t allowed = from_server ? allowance(size) : size;
  if (!write_all(to, bytes.data(), allowed)) return false;
  return !from_server || !was_last_byte();
}

// Returns how many of the next `wanted` bytes may pass before the next cut, and counts these as
// passed.
std::size_t CuttingProxy::allowance(std::size_t wanted) {
  const std::lock_guard lock(mutex_);
  if (left_.empty()) return wanted;
  const std::size_t allowed = std::min(wanted, left_.front());
  left_.front() -= allowed;
  return allowed;
}

bool CuttingProxy::was_last_byte() {
  const std::lock_guard lock(mutex_);
  if (left_.empty() || left_.front() > 0) return false;
  left_.pop_front();
  ++cuts_;
  return true;
}

}  // namespace signalbox::test
