// SPDX-License-Identifier: Apache-2.0
#include "tools/load/fault_proxy.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace signalbox::tools {
namespace {

using std::chrono::milliseconds;
using Clock = Pacer::Clock;

// A socket of a test. A wait is a poll, by default with a long timeout.
class Socket {
 public:
  static constexpr int kPatienceMs = 60'000;

  explicit Socket(int descriptor) : descriptor_(descriptor) { REQUIRE(descriptor >= 0); }

  ~Socket() { ::close(descriptor_); }

  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int descriptor() const { return descriptor_; }

  void write(const std::string& text) const {
    REQUIRE(::send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(text.size()));
  }

  bool is_readable(int within_ms = kPatienceMs) const {
    pollfd wanted{descriptor_, POLLIN, 0};
    return ::poll(&wanted, 1, within_ms) == 1;
  }

  // The bytes read; "" at the end of the stream; "reset" if the connection was reset; "error" after
  // any other error.
  std::string read() const {
    REQUIRE(is_readable());
    std::array<char, 100> bytes;
    const ssize_t got = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
    if (got < 0) return errno == ECONNRESET ? "reset" : "error";
    return {bytes.data(), static_cast<std::size_t>(got)};
  }

 private:
  int descriptor_;
};

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

struct World {
  World() {
    const sockaddr_in any = loopback(0);
    REQUIRE(::bind(listener.descriptor(), reinterpret_cast<const sockaddr*>(&any), sizeof any) ==
            0);
    REQUIRE(::listen(listener.descriptor(), 8) == 0);
    sockaddr_in own{};
    socklen_t length = sizeof own;
    REQUIRE(::getsockname(listener.descriptor(), reinterpret_cast<sockaddr*>(&own), &length) == 0);
    auto started = FaultProxy::start(absl::StrCat("127.0.0.1:", ntohs(own.sin_port)));
    REQUIRE(started.ok());
    proxy = *std::move(started);
  }

  int connect() const {
    const std::string& address = proxy->address();
    const sockaddr_in to = loopback(std::stoi(address.substr(address.rfind(':') + 1)));
    const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(::connect(descriptor, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    return descriptor;
  }

  int accept() const {
    REQUIRE(listener.is_readable());
    return ::accept(listener.descriptor(), nullptr, nullptr);
  }

  Socket listener{::socket(AF_INET, SOCK_STREAM, 0)};
  std::unique_ptr<FaultProxy> proxy;
};

}  // namespace

TEST_CASE("fault proxy: passes bytes both ways, and the end", "[load][proxy]") {
  const World world;
  const Socket client(world.connect());
  const Socket server(world.accept());
  client.write("ping");
  CHECK(server.read() == "ping");
  server.write("pong");
  CHECK(client.read() == "pong");
  ::shutdown(client.descriptor(), SHUT_WR);
  CHECK(server.read().empty());
  server.write("last");
  CHECK(client.read() == "last");
}

TEST_CASE("fault proxy: a delay makes bytes late, in order", "[load][proxy]") {
  const World world;
  const Socket client(world.connect());
  const Socket server(world.accept());
  world.proxy->set({.delay = milliseconds(50)});
  const auto sent = Clock::now();
  client.write("late");
  CHECK(server.read() == "late");
  CHECK(Clock::now() - sent >= milliseconds(50));
}

TEST_CASE("fault proxy: a blackhole passes nothing until it ends", "[load][proxy]") {
  const World world;
  const Socket client(world.connect());
  const Socket server(world.accept());
  world.proxy->set({.is_blackhole = true});
  const Socket late(world.connect());
  client.write("held");
  CHECK_FALSE(server.is_readable(50));
  CHECK_FALSE(world.listener.is_readable(50));
  world.proxy->set({});
  CHECK(server.read() == "held");
  const Socket second(world.accept());
  late.write("new");
  CHECK(second.read() == "new");
}

TEST_CASE("fault proxy: open and new connections are reset", "[load][proxy]") {
  const World world;
  const Socket client(world.connect());
  const Socket server(world.accept());
  world.proxy->set({.is_reset = true});
  CHECK(client.read() == "reset");
  CHECK(server.read() == "reset");
  const Socket next(world.connect());
  CHECK(next.read() == "reset");
  world.proxy->set({});
  const Socket good(world.connect());
  const Socket other(world.accept());
  good.write("again");
  CHECK(other.read() == "again");
}

TEST_CASE("fault proxy: a client of an endpoint that is gone is reset", "[load][proxy]") {
  std::unique_ptr<World> world = std::make_unique<World>();
  ::shutdown(world->listener.descriptor(), SHUT_RDWR);
  const Socket client(world->connect());
  CHECK(client.read() == "reset");
  CHECK_FALSE(FaultProxy::start("localhost:http").ok());
}

TEST_CASE("pacer: a bandwidth spaces bytes out, and nothing overtakes", "[load][proxy]") {
  Pacer pacer;
  const Clock::time_point now(std::chrono::seconds(100));
  const Harm slow{.bytes_per_second = 1000};
  CHECK(pacer.leaves(slow, now, 100) == now + milliseconds(100));
  CHECK(pacer.leaves(slow, now, 100) == now + milliseconds(200));
  CHECK(pacer.leaves({}, now, 5) == now + milliseconds(200));
  CHECK(pacer.leaves({}, now + milliseconds(300), 5) == now + milliseconds(300));
  CHECK(pacer.leaves({.delay = milliseconds(50)}, now + milliseconds(300), 5) ==
        now + milliseconds(350));
}

}  // namespace signalbox::tools
