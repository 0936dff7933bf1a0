// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/http_door.hpp"

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "channel/admin/metrics_server.hpp"
#include "tests/support/http_peer.hpp"
#include "tests/support/no_descriptors.hpp"

namespace signalbox::channel {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using Clock = std::chrono::steady_clock;

constexpr const char* kRequest = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::chrono::seconds kLong{60};  // More than the slowest machine needs.
constexpr std::chrono::hours kNever{1};    // More than any test takes.

std::unique_ptr<MetricsServer> start() {
  auto server = MetricsServer::start("127.0.0.1:0", [] { return std::string("x 1\n"); });
  INFO(server.status().ToString());
  REQUIRE(server.ok());
  return *std::move(server);
}

constexpr const char* kEntered = "entered";

/// A door without a server: every request that the door lets in gets the answer kEntered.
class Door {
 public:
  explicit Door(const HttpDoorLimits& limits)
      : listener_(::socket(AF_INET, SOCK_STREAM, 0)),
        port_(listen()),
        door_(listener_, answer, limits) {
    REQUIRE(door_.is_open());
  }

  int port() const { return port_; }

 private:
  int listen() const {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const generic = reinterpret_cast<sockaddr*>(&name);
    socklen_t size = sizeof name;
    REQUIRE(listener_ >= 0);
    REQUIRE(::bind(listener_, generic, size) == 0);
    REQUIRE(::getsockname(listener_, generic, &size) == 0);
    REQUIRE(::listen(listener_, 16) == 0);
    return ntohs(name.sin_port);
  }

  static void answer(const AcceptedConnection& connection, absl::string_view /*headers*/) {
    // The request is read because closing a socket with unread bytes resets the connection.
    char request[1024];
    [[maybe_unused]] const auto heard =
        ::recv(connection.descriptor, request, sizeof request, MSG_DONTWAIT);
    [[maybe_unused]] const auto sent =
        ::send(connection.descriptor, kEntered, std::strlen(kEntered), MSG_NOSIGNAL);
    ::close(connection.descriptor);
  }

  const int listener_;
  const int port_;
  HttpDoor door_;
};

std::string with_nul(const std::string& before, const std::string& after) {
  return before + std::string(1, '\0') + after;
}

}  // namespace

TEST_CASE("http door: knows where headers end", "[channel][http]") {
  CHECK_FALSE(end_of_headers(""));
  CHECK_FALSE(end_of_headers("GET / HTTP/1.1\r\nHost: a\r\n"));
  CHECK_FALSE(end_of_headers("GET / HTTP/1.1\r\nHost: a\r\n\r"));
  CHECK(end_of_headers("GET / HTTP/1.1\r\n\r\nbody\r\n\r\n") == 18U);
  CHECK(end_of_headers("GET / HTTP/1.1\n\nbody\r\n\r\n") == 16U);
  CHECK(end_of_headers("GET / HTTP/1.1\n\r\nbody") == 17U);
}

TEST_CASE("http door: knows the path of a request", "[channel][http]") {
  struct Row {
    const char* headers;
    const char* path;
  };

  const auto row = GENERATE(values<Row>({
      {"GET /ready HTTP/1.1\r\nHost: a\r\n\r\n", "/ready"},
      {"GET /ready?target=/a HTTP/1.1\r\n\r\n", "/ready"},
      {"GET /ready\r\n\r\n", "/ready"},
      {"GET /ready\n\n", "/ready"},
      {"GET /%72eady HTTP/1.1\n\n", "/%72eady"},
      {"GET  /ready HTTP/1.1\n\n", ""},
      {"GET\r\nX: /ready \r\n\r\n", ""},
      {"", ""},
  }));
  CHECK(path_of_request(row.headers) == row.path);
}

TEST_CASE("http door: knows headers that servers read in different ways", "[channel][http]") {
  CHECK_FALSE(flaw_of_headers(kRequest));
  CHECK_FALSE(flaw_of_headers("GET / HTTP/1.1\r\nX-Host: a\r\nHosts: a\r\nhost: a\r\n\r\n"));
  CHECK(flaw_of_headers("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n") ==
        "Host: expected one, found 2");
  CHECK(flaw_of_headers("GET / HTTP/1.1\nHOST: a\nX: b\nhost : b\n\n") ==
        "Host: expected one, found 2");
  CHECK(flaw_of_headers("GET / HTTP/1.1\r\nHost: a\rHost: b\r\n\r\n") ==
        "a request must have no CR without LF in its headers");
  const std::string nul = "a request must have no NUL in its headers";
  CHECK(flaw_of_headers(with_nul("GET / HTTP/1.1\r\nHost: localhost", ".evil\r\n\r\n")) == nul);
  CHECK(flaw_of_headers(with_nul("GET /", " HTTP/1.1\r\nHost: a\r\n\r\n")) == nul);
}

TEST_CASE("http door: what it refuses is told, 400, and the next request is served",
          "[channel][http]") {
  const auto server = start();
  const auto request = GENERATE(
      values<std::string>({"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
                           "GET /metrics HTTP/1.1\r\nhost: a\r\nX: y\r\nHOST: a\r\n\r\n",
                           "GET /metrics HTTP/1.1\r\nHost: a\rHost: b\r\n\r\n",
                           "GET /metrics HTTP/1.1\nHost: a\nHost: b\n\r\n",
                           "\r\n\r\n",
                           with_nul("GET /metrics HTTP/1.1\r\nHost: localhost", "\r\n\r\n"),
                           with_nul("GET /metrics HTTP/1.1\r\nHost: a\r\nX: b", "c\r\n\r\n")}));
  const std::string answer = ask(server->port(), request);
  CHECK_THAT(answer, StartsWith("HTTP/1.1 400 ") && Contains("\r\nConnection: close\r\n"));
  CHECK_THAT(ask(server->port(), kRequest), StartsWith("HTTP/1.1 200 "));
}

TEST_CASE("http door: silent connections stop no page", "[channel][http]") {
  const auto server = start();
  std::vector<std::unique_ptr<HttpPeer>> silent;
  // More than the number of connections that may wait.
  for (std::size_t i = 0; i < HttpDoorLimits().most + 50; ++i) {
    silent.push_back(std::make_unique<HttpPeer>(server->port()));
    REQUIRE(silent.back()->is_connected());
    if (i % 2 == 0) silent.back()->send("GET /metrics HT");
    if (i == 15 || i == HttpDoorLimits().most)
      CHECK_THAT(ask(server->port(), kRequest), StartsWith("HTTP/1.1 200 "));
  }
  CHECK_THAT(ask(server->port(), kRequest), StartsWith("HTTP/1.1 200 ") && Contains("x 1\n"));
  // The server has closed the oldest connection: to make room for a newer one, or because its time
  // limit has passed.
  CHECK(silent.front()->is_closed(kLong));
}

TEST_CASE("http door: by default a connection waits for at most two seconds", "[channel][http]") {
  CHECK(HttpDoorLimits().patience == std::chrono::seconds(2));
}

TEST_CASE("http door: one connection too many closes the one that waits longest",
          "[channel][http]") {
  const Door door({.most = 3, .patience = kNever});
  HttpPeer first(door.port());
  HttpPeer second(door.port());
  HttpPeer third(door.port());
  second.send("GET / HT");
  HttpPeer fourth(door.port());
  CHECK(first.is_closed(kLong));
  // The other connections stay open, because kNever is the limit of their time.
  second.send("TP/1.1\r\n\r\n");
  CHECK(second.receive() == kEntered);
  third.send(kRequest);
  CHECK(third.receive() == kEntered);
  fourth.send(kRequest);
  CHECK(fourth.receive() == kEntered);
}

TEST_CASE("http door: a request that does not come is not waited for, however slowly it comes",
          "[channel][http]") {
  const Door door({.most = 1000, .patience = std::chrono::milliseconds(200)});
  HttpPeer silent(door.port());
  HttpPeer slow(door.port());
  REQUIRE(slow.is_connected());
  slow.send("GET /metrics HTTP/1.1\r\nX: ");
  const auto limit = Clock::now() + kLong;
  // A client that sends a byte from time to time does not prolong its time limit.
  bool is_closed = false;
  while (!is_closed && Clock::now() < limit) {
    is_closed = slow.is_closed(std::chrono::milliseconds(20));
    slow.send("y");
  }
  CHECK(is_closed);
  CHECK(silent.is_closed(kLong));
}

TEST_CASE("http door: a process without descriptors still answers", "[channel][http][S18]") {
  const auto server = start();
  const test::FewDescriptors one(1);  // For the peer's own socket.
  for (int i = 0; i < 5; ++i) {
    // The door may have taken the descriptor of the last peer before its own connection is closed.
    const auto limit = Clock::now() + kLong;
    std::string answer;
    while (answer.empty() && Clock::now() < limit) {
      HttpPeer peer(server->port());
      if (peer.is_connected() && peer.send(kRequest)) answer = peer.receive();
    }
    CHECK_THAT(answer, StartsWith("HTTP/1.1 200 ") && Contains("x 1\n"));
  }
}

TEST_CASE("http door: a request in pieces is served", "[channel][http]") {
  const auto server = start();
  HttpPeer peer(server->port());
  HttpPeer other(server->port());
  const std::string request = kRequest;
  for (const char byte : request) {
    REQUIRE(peer.send(std::string(1, byte)));
    if (byte == '\n') CHECK_THAT(ask(server->port(), kRequest), StartsWith("HTTP/1.1 200 "));
  }
  CHECK_THAT(peer.receive(), StartsWith("HTTP/1.1 200 ") && Contains("x 1\n"));
}

}  // namespace signalbox::channel
