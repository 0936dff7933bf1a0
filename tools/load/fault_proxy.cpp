// SPDX-License-Identifier: Apache-2.0
#include "tools/load/fault_proxy.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace signalbox::tools {
namespace {

using Clock = Pacer::Clock;

// While so many bytes wait in one direction of a connection, no more are read.
constexpr std::size_t kMostWaiting = std::size_t{1} << 20;
constexpr int kBacklog = 1024;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

absl::StatusOr<SocketAddress> parse_address(const std::string& text) {
  const auto colon = text.rfind(':');
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (colon == std::string::npos ||
      ::getaddrinfo(host.c_str(), text.c_str() + colon + 1, &hints, &found) != 0)
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is no ip:port, so it cannot be led through a proxy"));
  SocketAddress address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  ::freeaddrinfo(found);
  return address;
}

void close_with_reset(int socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(socket);
}

void send_at_once(int socket) {
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

struct Chunk {
  Clock::time_point leaves;
  std::string bytes;
};

// One direction of a connection.
struct Direction {
  int from = -1;
  int to = -1;
  Pacer pacer;
  std::deque<Chunk> queue;
  std::size_t waiting_bytes = 0;
  bool has_ended = false;  // `from` has closed its side: no more bytes come.
  bool is_shut = false;    // `to` was shut down for writing.

  bool is_due(Clock::time_point now) const { return !queue.empty() && queue.front().leaves <= now; }
};

struct Connection {
  int client = -1;
  int server = -1;
  bool is_connecting = true;
  bool is_broken = false;
  Direction up;
  Direction down;
};

// Reads one chunk, and computes when it may leave the proxy.
void read_some(Direction& way, const Harm& harm, Connection& connection) {
  std::array<char, 16384> bytes;
  const ssize_t got = ::recv(way.from, bytes.data(), bytes.size(), 0);
  if (got > 0) {
    const auto size = static_cast<std::size_t>(got);
    way.queue.push_back(
        {way.pacer.leaves(harm, Clock::now(), size), std::string(bytes.data(), size)});
    way.waiting_bytes += size;
  } else if (got == 0) {
    way.has_ended = true;
  } else if (errno != EAGAIN && errno != EINTR) {
    connection.is_broken = true;
  }
}

void write_due(Direction& way, Connection& connection) {
  while (way.is_due(Clock::now())) {
    std::string& bytes = way.queue.front().bytes;
    const ssize_t sent = ::send(way.to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR) connection.is_broken = true;
      return;
    }
    const auto size = static_cast<std::size_t>(sent);
    way.waiting_bytes -= size;
    if (size < bytes.size()) {
      bytes.erase(0, size);
      return;
    }
    way.queue.pop_front();
  }
}

void pass_end_on(Direction& way) {
  if (!way.has_ended || way.is_shut || !way.queue.empty()) return;
  ::shutdown(way.to, SHUT_WR);
  way.is_shut = true;
}

int socket_error(int socket) {
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

}  // namespace

Clock::time_point Pacer::leaves(const Harm& harm, Clock::time_point arrived, std::size_t bytes) {
  Clock::time_point time = arrived + harm.delay;
  if (harm.bytes_per_second > 0) {
    const std::chrono::duration<double> length(static_cast<double>(bytes) / harm.bytes_per_second);
    time = std::max(time, free_) + std::chrono::duration_cast<Clock::duration>(length);
  }
  free_ = std::max(free_, time);  // No byte may leave before an earlier byte.
  return free_;
}

// The loop that the proxy's thread runs.
class FaultProxy::Loop {
 public:
  Loop(FaultProxy& proxy, int listener, SocketAddress endpoint)
      : proxy_(proxy), listener_(listener), endpoint_(endpoint) {}

  ~Loop() {
    for (const Connection& connection : connections_)
      end(connection);
    ::close(listener_);
  }

  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void run() {
    while (take_harm()) {
      wait();
      if (polled_[0].revents != 0) {
        std::uint64_t rings = 0;
        static_cast<void>(!::read(proxy_.bell_, &rings, sizeof rings));
        continue;  // take_harm() first: bell_ says that there is a new Harm, or that the proxy ends.
      }
      std::size_t at = 2;
      for (Connection& connection : connections_) {
        serve(connection, polled_[at].revents, polled_[at + 1].revents);
        at += 2;
      }
      std::erase_if(connections_, [](const Connection& connection) {
        const bool is_over = connection.up.is_shut && connection.down.is_shut;
        if (is_over || connection.is_broken) end(connection);
        return is_over || connection.is_broken;
      });
      if (polled_[1].revents != 0) accept();
    }
  }

 private:
  // False: the proxy ends.
  bool take_harm() {
    const std::lock_guard lock(proxy_.mutex_);
    harm_ = proxy_.harm_;
    if (harm_.is_reset) {
      for (const Connection& connection : connections_)
        end(connection);
      connections_.clear();
    }
    return !proxy_.is_ending_;
  }

  void wait() {
    const auto now = Clock::now();
    std::optional<Clock::time_point> next;
    polled_.clear();
    polled_.push_back({proxy_.bell_, POLLIN, 0});
    polled_.push_back({harm_.is_blackhole ? -1 : listener_, POLLIN, 0});
    for (const Connection& connection : connections_) {
      const short client = events(connection, connection.up, connection.down, now);
      const short server = connection.is_connecting
                               ? short{POLLOUT}
                               : events(connection, connection.down, connection.up, now);
      // poll() would report errors of a descriptor even if no event is requested. It ignores -1.
      polled_.push_back({client == 0 ? -1 : connection.client, client, 0});
      polled_.push_back({server == 0 || harm_.is_blackhole ? -1 : connection.server, server, 0});
      for (const Direction* way : {&connection.up, &connection.down}) {
        if (way->queue.empty() || way->queue.front().leaves <= now) continue;
        next = std::min(next.value_or(way->queue.front().leaves), way->queue.front().leaves);
      }
    }
    if (!next || harm_.is_blackhole) {
      ::poll(polled_.data(), polled_.size(), -1);
      return;
    }
    const auto left = std::max<Clock::duration>(*next - now, Clock::duration(0));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec timeout{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
    ::ppoll(polled_.data(), polled_.size(), &timeout, nullptr);
  }

  // The poll events of a socket from which `in` is read, and to which `out` is written.
  short events(const Connection& connection,
               const Direction& in,
               const Direction& out,
               Clock::time_point now) const {
    if (harm_.is_blackhole || connection.is_connecting) return 0;
    short wanted = 0;
    if (!in.has_ended && in.waiting_bytes < kMostWaiting) wanted = POLLIN;
    if (out.is_due(now)) wanted = static_cast<short>(wanted | POLLOUT);
    return wanted;
  }

  void serve(Connection& connection, short client, short server) const {
    if (harm_.is_blackhole) return;
    if (connection.is_connecting) {
      if (server == 0) return;
      connection.is_connecting = false;
      connection.is_broken = socket_error(connection.server) != 0;
      if (connection.is_broken) return;
    }
    if ((client & ~POLLOUT) != 0 && !connection.up.has_ended)
      read_some(connection.up, harm_, connection);
    if ((server & ~POLLOUT) != 0 && !connection.down.has_ended)
      read_some(connection.down, harm_, connection);
    for (Direction* way : {&connection.up, &connection.down}) {
      if (connection.is_broken) return;
      write_due(*way, connection);
      pass_end_on(*way);
    }
  }

  void accept() {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0) return;
    const int server =
        ::socket(endpoint_.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const auto* const address = reinterpret_cast<const sockaddr*>(&endpoint_.storage);
    const bool is_begun =
        server >= 0 && !harm_.is_reset &&
        (::connect(server, address, endpoint_.length) == 0 || errno == EINPROGRESS);
    if (!is_begun) {
      close_with_reset(client);
      if (server >= 0) ::close(server);
      return;
    }
    send_at_once(client);
    send_at_once(server);
    Connection& connection = connections_.emplace_back();
    connection.client = connection.up.from = connection.down.to = client;
    connection.server = connection.up.to = connection.down.from = server;
  }

  // Closes the sockets if both directions have ended. Otherwise the connection broke, or the proxy
  // ends it: the sockets are reset.
  static void end(const Connection& connection) {
    const bool is_over = connection.up.is_shut && connection.down.is_shut;
    for (const int socket : {connection.client, connection.server}) {
      if (is_over)
        ::close(socket);
      else
        close_with_reset(socket);
    }
  }

  FaultProxy& proxy_;
  const int listener_;
  const SocketAddress endpoint_;
  Harm harm_;
  std::list<Connection> connections_;
  std::vector<pollfd> polled_;  // bell_, the listener, and two sockets of each connection.
};

absl::StatusOr<std::unique_ptr<FaultProxy>> FaultProxy::start(const std::string& endpoint) {
  const auto address = parse_address(endpoint);
  if (!address.ok()) return address.status();
  std::unique_ptr<FaultProxy> proxy(new FaultProxy);
  proxy->bell_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof own;
  auto* const socket_address = reinterpret_cast<sockaddr*>(&own);
  if (proxy->bell_ < 0 || listener < 0 || ::bind(listener, socket_address, length) != 0 ||
      ::listen(listener, kBacklog) != 0 || ::getsockname(listener, socket_address, &length) != 0) {
    const int error = errno;
    if (listener >= 0) ::close(listener);
    return absl::InternalError(absl::StrCat("cannot start a proxy: ", std::strerror(error)));
  }
  proxy->address_ = absl::StrCat("127.0.0.1:", ntohs(own.sin_port));
  proxy->thread_ = std::thread([proxy = proxy.get(), listener, endpoint = *address] {
    Loop(*proxy, listener, endpoint).run();
  });
  return proxy;
}

FaultProxy::~FaultProxy() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  const std::uint64_t ring = 1;
  if (bell_ >= 0) static_cast<void>(!::write(bell_, &ring, sizeof ring));
  if (thread_.joinable()) thread_.join();
  if (bell_ >= 0) ::close(bell_);
}

void FaultProxy::set(const Harm& harm) {
  {
    const std::lock_guard lock(mutex_);
    harm_ = harm;
  }
  const std::uint64_t ring = 1;
  static_cast<void>(!::write(bell_, &ring, sizeof ring));
}

}  // namespace signalbox::tools
