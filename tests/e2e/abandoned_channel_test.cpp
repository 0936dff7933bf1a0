// SPDX-License-Identifier: Apache-2.0
//
// Connection attempts that are given up while they run: no connection is left, neither here nor at
// the server.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include <catch2/catch.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "actors/io/grpc_connector.hpp"
#include "tests/e2e/attempt_record.hpp"
#include "tests/e2e/echo_server.hpp"
#include "tests/support/process.hpp"

namespace signalbox::actors {
namespace {

using namespace std::chrono_literals;
using test::connector_options;
using test::EchoServer;
using test::Graveyard;
using test::MuteSocket;
using test::Record;

/// The server's end of the next connection that `server` accepts.
class Taken {
 public:
  explicit Taken(MuteSocket& server) : socket_(server.take_one()) {
    REQUIRE(socket_ >= 0);
    const timeval patience{20, 0};
    REQUIRE(::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0);
  }

  ~Taken() { ::close(socket_); }

  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

  /// Reads until the client has sent `what`. Once HTTP/2's preface is sent, gRPC has a transport.
  void hear(const std::string& what) {
    std::string heard;
    while (!absl::StrContains(heard, what)) {
      const std::string more = read();
      REQUIRE_FALSE(more.empty());
      heard += more;
    }
  }

  /// The client may be gone, so errors are ignored.
  void say(const std::string& frames) const {
    ::send(socket_, frames.data(), frames.size(), MSG_NOSIGNAL);
  }

  /// Reads until the client closes the connection; false if it does not do so in time.
  bool is_closed() {
    while (!read().empty()) {
    }
    return is_over_;
  }

 private:
  // The next bytes from the client; "" if the connection is over, or if nothing came within 20 s.
  std::string read() {
    std::array<char, 4096> bytes{};
    const auto count = ::recv(socket_, bytes.data(), bytes.size(), 0);
    is_over_ = count == 0 || (count < 0 && errno == ECONNRESET);
    return count > 0 ? std::string(bytes.data(), static_cast<std::size_t>(count)) : "";
  }

  const int socket_;
  bool is_over_ = false;
};

const std::string kSettings("\0\0\0\x4\0\0\0\0\0", 9);

constexpr unsigned kSeed = 20;

// gRPC sends the preface at once. A dial of signalbox's own would come first.
GrpcConnectorOptions grpc_connects(Graveyard& graveyard) {
  GrpcConnectorOptions options = connector_options(graveyard);
  options.sockets = false;
  return options;
}

TEST_CASE("grpc_connector: an attempt that is given up before the server's SETTINGS leaves nothing",
          "[io][connector][leak]") {
  Graveyard graveyard;
  auto connector = std::make_unique<GrpcConnector>(grpc_connects(graveyard));
  const bool ends_first = GENERATE(false, true);
  INFO("the connector ends before the SETTINGS come: " << ends_first);
  for (int round = 0; round < 20; ++round) {
    MuteSocket server;
    server.listen();
    Record record;
    auto attempt = connector->connect({server.address()}, 30s, record.events());
    Taken connection(server);
    connection.hear("PRI * HTTP/2.0");
    attempt.reset();
    if (ends_first) connector.reset();
    // If ends_first, the connector is destroyed before the server answers, and another connector
    // exists when the answer comes. The abandoned connection must be closed in this case, too.
    if (ends_first) connector = std::make_unique<GrpcConnector>(grpc_connects(graveyard));
    connection.say(kSettings);
    REQUIRE(connection.is_closed());
    CHECK(record.words().empty());
  }
}

TEST_CASE("grpc_connector: an attempt that is given up and never answered ends with its time",
          "[io][connector][leak]") {
  Graveyard graveyard;
  GrpcConnector connector(grpc_connects(graveyard));
  MuteSocket server;
  server.listen();
  Record record;
  auto attempt = connector.connect({server.address()}, 1s, record.events());
  Taken connection(server);
  connection.hear("PRI * HTTP/2.0");
  attempt.reset();
  CHECK(connection.is_closed());
}

/// A server that sends its SETTINGS late: after a random time for each connection.
class LateServer {
 public:
  static constexpr std::chrono::milliseconds kLatest{2};

  LateServer() {
    socket_.listen();
    thread_ = std::thread([this] { run(); });
  }

  ~LateServer() {
    is_ending_ = true;
    thread_.join();
    for (const Open& one : open_)
      ::close(one.socket);
  }

  LateServer(const LateServer&) = delete;
  LateServer& operator=(const LateServer&) = delete;

  Address address() const { return socket_.address(); }

 private:
  struct Open {
    int socket;
    std::chrono::steady_clock::time_point speaks_at;
    bool has_spoken = false;
  };

  void run() {
    while (!is_ending_) {
      std::vector<pollfd> ready;
      for (const Open& one : open_)
        ready.push_back({one.socket, POLLIN, 0});
      ready.push_back({socket_.descriptor(), POLLIN, 0});
      ::poll(ready.data(), ready.size(), 1);
      for (std::size_t at = 0; at < open_.size(); ++at)
        serve(open_[at], ready[at].revents != 0);
      std::erase_if(open_, [](const Open& one) { return one.socket < 0; });
      if (ready.back().revents != 0) take();
    }
  }

  void take() {
    const std::chrono::microseconds most = kLatest;
    const std::chrono::microseconds late(dice_() % (most.count() + 1));
    open_.push_back({socket_.take_one(), std::chrono::steady_clock::now() + late});
  }

  static void serve(Open& one, bool has_input) {
    std::array<char, 4096> bytes{};
    if (has_input && ::recv(one.socket, bytes.data(), bytes.size(), 0) <= 0) {
      ::close(std::exchange(one.socket, -1));
      return;
    }
    if (one.has_spoken || std::chrono::steady_clock::now() < one.speaks_at) return;
    one.has_spoken = true;
    ::send(one.socket, kSettings.data(), kSettings.size(), MSG_NOSIGNAL);
  }

  MuteSocket socket_;
  std::mt19937 dice_{kSeed};
  std::vector<Open> open_;  ///< Used by the thread alone while it runs.
  std::atomic<bool> is_ending_ = false;
  std::thread thread_;
};

// An address of 127.0.0.1 as /proc/net/tcp has it.
std::string in_table(const Address& address) {
  const std::string text = address.str();
  absl::string_view port = text;
  REQUIRE(absl::ConsumePrefix(&port, "127.0.0.1:"));
  return absl::StrFormat("0100007F:%04X", std::stoi(std::string(port)));
}

// The number of TCP connections in /proc/net/tcp with `server` on either side. Listening sockets
// and sockets in TIME_WAIT do not count.
int open_connections(const std::string& server) {
  std::ifstream table("/proc/net/tcp");
  REQUIRE(table.good());
  std::string line;
  std::getline(table, line);  // Skips the heading.
  int count = 0;
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string number;
    std::string local;
    std::string remote;
    std::string state;
    words >> number >> local >> remote >> state;
    const bool is_open = state != "0A" && state != "06";
    if (is_open && (local == server || remote == server)) ++count;
  }
  return count;
}

// Begins 3,000 connection attempts. Gives each up, or the connection that it has made, after a
// random time below `longest`. Returns the number of connections that are left open.
int left_after_comings_and_goings(const Address& server, Duration longest) {
  constexpr int kGoings = 3'000;
  Graveyard graveyard;
  GrpcConnector connector(connector_options(graveyard));
  std::mt19937 dice(kSeed);
  for (int i = 0; i < kGoings; ++i) {
    Record record;
    const auto attempt = connector.connect({server}, 20s, record.events());
    const auto until = std::chrono::steady_clock::now() + longest * (dice() % 1'000) / 1'000;
    while (std::chrono::steady_clock::now() < until) {
    }
    graveyard.clear();
  }
  int left = -1;
  test::eventually([&] {
    graveyard.clear();
    left = open_connections(in_table(server));
    return left == 0;
  });
  return left;
}

TEST_CASE("grpc_connector: 3,000 quick comings and goings leave no connection",
          "[io][connector][leak]") {
  EchoServer server;
  // The shortest time, of five attempts, in which a connection is made; at most 3 ms.
  Duration life = 3ms;
  for (int i = 0; i < 5; ++i) {
    Graveyard graveyard;
    GrpcConnector connector(connector_options(graveyard));
    const auto begun = std::chrono::steady_clock::now();
    Record record;
    const auto attempt = connector.connect({server.address()}, 20s, record.events());
    REQUIRE(record.wait_for(1));
    life = std::min<Duration>(life, std::chrono::steady_clock::now() - begun);
  }
  CHECK(left_after_comings_and_goings(server.address(), 5 * life / 2) == 0);
}

TEST_CASE("grpc_connector: 3,000 goings around late SETTINGS leave no connection",
          "[io][connector][leak]") {
  LateServer server;
  CHECK(left_after_comings_and_goings(server.address(), 2 * LateServer::kLatest) == 0);
}

}  // namespace
}  // namespace signalbox::actors
