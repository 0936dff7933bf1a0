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

enum class Kind : std::uint8_t { kSilent, kHttp1, kHalfSettings, kGoaway, kReset };

constexpr std::array kKinds{
    Kind::kSilent, Kind::kHttp1, Kind::kHalfSettings, Kind::kGoaway, Kind::kReset};

// What the failure of an attempt to such a server says; null: its attempt does not end.
const char* failure_of(Kind kind) {
  switch (kind) {
    case Kind::kHttp1:
      return "speaks HTTP/1";
    case Kind::kGoaway:
      return "sent GOAWAY instead of SETTINGS";
    case Kind::kReset:
      return "Connection reset by peer";
    default:
      return nullptr;
  }
}

// Servers on one port of all addresses 127.a.b.c; `a` is the kind of the server. They keep all
// connections open, except those that they reset.
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
      const auto kind = static_cast<Kind>((ntohl(own.sin_addr.s_addr) >> 16U & 0xffU) - 1);
      const std::string says = text(kind);
      [[maybe_unused]] const auto sent = ::send(*taken, says.data(), says.size(), MSG_NOSIGNAL);
      if (kind != Kind::kReset) {
        taken_.push_back(std::move(taken));
        continue;
      }
      const linger at_once{1, 0};
      ::setsockopt(*taken, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    }
  }

  static std::string text(Kind kind) {
    switch (kind) {
      case Kind::kSilent:
      case Kind::kReset:
        return "";
      case Kind::kGoaway:
        return goaway(0);
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

// As many servers of each kind as the limit of descriptors allows, up to 2,000. A server needs up
// to five: one of the client, one for each accepted connection, and some are closed late.
std::size_t servers_of_each_kind() {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  constexpr std::size_t kMost = 2'000;
  constexpr std::size_t kOthers = 300;
  constexpr std::size_t kOfOneOfEachKind = 10;
  SIGNALBOX_INVARIANT(limit.rlim_cur > kOthers, "a process may have hundreds of descriptors");
  return std::min<std::size_t>(kMost, (limit.rlim_cur - kOthers) / kOfOneOfEachKind);
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
  // Not patient, as in the product: gRPC connects to each silent server once more. Then only the
  // clock tells a silent server from a slow one, so gRPC may connect to the good server, too.
  const bool is_patient = GENERATE(true, false);
  const std::vector<Kind> kinds =
      is_patient ? std::vector(kKinds.begin(), kKinds.end()) : std::vector{Kind::kSilent};
  const std::size_t each = servers_of_each_kind();
  CAPTURE(is_patient, each);
  Crowd crowd;
  EchoServer good;
  Graveyard graveyard;
  std::array<Tally, kKinds.size()> tallies;
  GrpcConnectorOptions options = connector_options(graveyard);
  options.sockets = true;
  options.silence = is_patient ? kPatientSilence : actors::SocketDialer::kSilence;
  options.arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  options.no_sockets = [](const std::string& why) { FAIL(why); };
  GrpcConnector connector(std::move(options));
  std::vector<std::unique_ptr<actors::Connector::Attempt>> attempts;
  for (std::size_t i = 0; i < each; ++i) {
    for (const Kind kind : kinds) {
      Tally& tally = tallies[static_cast<std::size_t>(kind)];
      attempts.push_back(connector.connect(
          {crowd.address(kind, i)},
          3600s,
          {[&tally](const ConnectionPtr&) { ++tally.others; },
           [&tally, why = failure_of(kind)](const absl::Status& status) {
             const bool is_right = why != nullptr && absl::StrContains(status.message(), why);
             ++(is_right ? tally.failed : tally.others);
           },
           [&tally](const absl::Status&) { ++tally.others; }}));
    }
  }
  const auto connects = [&] {
    Record record;
    const auto attempt = connector.connect({good.address()}, 3600s, record.events());
    REQUIRE(record.wait_for(1, 300s));
    const auto connection = record.connection();
    REQUIRE(connection != nullptr);
    const bool is_socket = static_cast<const GrpcConnection&>(*connection).is_socket();
    CHECK((is_socket || !is_patient));
  };
  connects();
  // Each server that says something wrong is found out, though each silent one keeps its attempt.
  for (const Kind kind : kinds) {
    const Tally& tally = tallies[static_cast<std::size_t>(kind)];
    const std::size_t failures = failure_of(kind) == nullptr ? 0 : each;
    CAPTURE(kind);
    CHECK(eventually([&] { return tally.failed == failures; }, 300s));
  }
  graveyard.clear();
  connects();
  for (const Tally& tally : tallies)
    CHECK(tally.others == 0);
  attempts.clear();
}

}  // namespace signalbox::test
