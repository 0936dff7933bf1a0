// SPDX-License-Identifier: Apache-2.0
//
// Thousands of bad servers at once, beside a good one: connections from sockets (issue 29).
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "actors/io/grpc_connector.hpp"
#include "actors/io/sockets.hpp"
#include "messages/invariant.hpp"
#include "tests/e2e/attempt_record.hpp"
#include "tests/e2e/cut_headers.hpp"
#include "tests/e2e/echo_server.hpp"
#include "tests/support/process.hpp"

namespace signalbox::test {
namespace {

using namespace std::chrono_literals;
using actors::Descriptor;
using actors::GrpcConnection;
using actors::GrpcConnector;
using actors::GrpcConnectorOptions;

enum class Kind : std::uint8_t { kSilent, kHttp1, kHalfSettings };

constexpr std::array kKinds{Kind::kSilent, Kind::kHttp1, Kind::kHalfSettings};

// Servers on one port of all addresses 127.a.b.c; `a` is the kind of the server. They keep all
// connections open.
class Crowd {
 public:
  Crowd() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_ANY);
    auto* const generic = reinterpret_cast<sockaddr*>(&name);
    socklen_t length = sizeof(name);
    REQUIRE(::bind(*listener_, generic, length) == 0);
    REQUIRE(::getsockname(*listener_, generic, &length) == 0);
    port_ = ntohs(name.sin_port);
    REQUIRE(::listen(*listener_, 1024) == 0);
    thread_ = std::thread([this] { run(); });
  }

  ~Crowd() {
    ::shutdown(*listener_, SHUT_RDWR);
    thread_.join();
  }

  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  Address address(Kind kind, std::size_t number) const {
    return Address(absl::StrCat(
        "127.", static_cast<int>(kind) + 1, ".", number / 250, ".", number % 250 + 1, ":", port_));
  }

 private:
  void run() {
    while (true) {
      Descriptor taken(::accept4(*listener_, nullptr, nullptr, SOCK_CLOEXEC));
      if (*taken < 0) return;
      sockaddr_in own{};
      socklen_t length = sizeof(own);
      ::getsockname(*taken, reinterpret_cast<sockaddr*>(&own), &length);
      const auto number = (ntohl(own.sin_addr.s_addr) >> 16U & 0xffU) - 1;
      const std::string says = text(static_cast<Kind>(number));
      [[maybe_unused]] const auto sent = ::send(*taken, says.data(), says.size(), MSG_NOSIGNAL);
      taken_.push_back(std::move(taken));
    }
  }

  static std::string text(Kind kind) {
    switch (kind) {
      case Kind::kSilent:
        return "";
      case Kind::kHttp1:
        return "HTTP/1.1 400 Bad Request\r\n\r\n";
      case Kind::kHalfSettings:
        return http2_settings().substr(0, 5);
    }
    return "";
  }

  Descriptor listener_;
  int port_ = 0;
  std::vector<Descriptor> taken_;  // Only the thread uses it.
  std::thread thread_;
};

// As many servers of each kind as the limit of descriptors allows, up to 3,334. A server needs up
// to five: one of the client, one for each accepted connection, and some are closed late.
std::size_t servers_of_each_kind() {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  constexpr std::size_t kMost = 3'334;
  constexpr std::size_t kOthers = 300;
  constexpr std::size_t kOfEachTriple = 7;
  SIGNALBOX_INVARIANT(limit.rlim_cur > kOthers, "a process may have hundreds of descriptors");
  return std::min<std::size_t>(kMost, (limit.rlim_cur - kOthers) / kOfEachTriple);
}

struct Tally {
  std::atomic<std::size_t> failed{0};
  std::atomic<std::size_t> others{0};  // Events that were not expected.
};

}  // namespace

// The order of events shows that a good server is not held up: the attempts to bad servers would
// end after an hour.
TEST_CASE("socket_connections: thousands of bad servers at once hold up no other",
          "[io][connector][limits]") {
  const std::size_t each = servers_of_each_kind();
  CAPTURE(each);
  Crowd crowd;
  EchoServer good;
  Graveyard graveyard;
  std::array<Tally, kKinds.size()> tallies;
  GrpcConnectorOptions options = connector_options(graveyard);
  options.sockets = true;
  options.silence = kPatientSilence;
  options.arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  options.no_sockets = [](const std::string& why) { FAIL(why); };
  GrpcConnector connector(std::move(options));
  std::vector<std::unique_ptr<actors::Connector::Attempt>> attempts;
  for (std::size_t i = 0; i < each; ++i) {
    for (const Kind kind : kKinds) {
      Tally& tally = tallies[static_cast<std::size_t>(kind)];
      attempts.push_back(connector.connect(
          {crowd.address(kind, i)},
          3600s,
          {[&tally](const ConnectionPtr&) { ++tally.others; },
           [&tally, kind](const absl::Status& status) {
             const bool is_right =
                 kind == Kind::kHttp1 && absl::StrContains(status.message(), "speaks HTTP/1");
             ++(is_right ? tally.failed : tally.others);
           },
           [&tally](const absl::Status&) { ++tally.others; }}));
    }
  }
  const auto connects = [&](bool is_socket) {
    Record record;
    const auto attempt = connector.connect({good.address()}, 3600s, record.events());
    REQUIRE(record.wait_for(1, 300s));
    const auto connection = record.connection();
    REQUIRE(connection != nullptr);
    CHECK(static_cast<const GrpcConnection&>(*connection).is_socket() == is_socket);
  };
  connects(/*is_socket=*/true);
  // Each HTTP/1.1 server is found out, though each silent server keeps its attempt.
  CHECK(eventually([&] { return tallies[static_cast<std::size_t>(Kind::kHttp1)].failed == each; },
                   300s));
  graveyard.clear();
  connects(/*is_socket=*/true);
  for (const Tally& tally : tallies)
    CHECK(tally.others == 0);
  CHECK(tallies[static_cast<std::size_t>(Kind::kSilent)].failed == 0);
  CHECK(tallies[static_cast<std::size_t>(Kind::kHalfSettings)].failed == 0);
  attempts.clear();
}

}  // namespace signalbox::test
