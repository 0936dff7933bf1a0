// SPDX-License-Identifier: Apache-2.0
#include "actors/io/tcp_connector.hpp"

#include <future>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include <catch2/catch.hpp>

#include "tests/e2e/attempt_record.hpp"

namespace signalbox::actors {
namespace {

using namespace std::chrono_literals;
using test::Graveyard;
using test::MuteSocket;
using test::Record;
using Words = std::vector<std::string>;

std::unique_ptr<TcpConnector> start(Graveyard& graveyard) {
  TcpConnectorOptions options;
  options.retire = graveyard.retire();
  options.keepalive = {.time = 60s, .timeout = 20s};
  auto connector = TcpConnector::start(std::move(options));
  REQUIRE(connector.ok());
  return *std::move(connector);
}

}  // namespace

TEST_CASE("tcp_connector: an endpoint is there while it takes connections", "[io][tcp]") {
  Graveyard graveyard;
  Record record;
  MuteSocket server;
  server.listen();
  const auto connector = start(graveyard);
  auto attempt = connector->connect({server.address()}, 10s, record.events());
  REQUIRE(record.wait_for(1));
  CHECK(record.words() == Words{"connected"});
  CHECK(record.connection()->address() == server.address());
  CHECK(record.connection()->takes_calls());
  const int taken = server.take_one();
  SECTION("and is lost when it resets them") {
    const linger reset{1, 0};
    REQUIRE(::setsockopt(taken, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) == 0);
    ::close(taken);
    REQUIRE(record.wait_for(2));
    CHECK(record.words() == Words{"connected", "closed"});
    CHECK(absl::StrContains(record.status().message(), server.address().str() + " was lost"));
    CHECK(absl::StrContains(record.status().message(), "reset by peer"));
    CHECK_FALSE(record.connection()->takes_calls());
    CHECK(EndMark::is_any_set());
    record.forget_connection();
    CHECK_FALSE(EndMark::is_any_set());
  }
  SECTION("and nothing is said to it") {
    record.forget_connection();
    attempt.reset();
    char byte = 0;
    CHECK(::recv(taken, &byte, 1, 0) == 0);  // The connection ends before any byte comes.
    CHECK(graveyard.wait_for(1));
    ::close(taken);
  }
}

TEST_CASE("tcp_connector: what cannot be connected fails, and says why", "[io][tcp]") {
  Graveyard graveyard;
  Record record;
  const MuteSocket closed;
  const auto connector = start(graveyard);
  const bool is_refused = GENERATE(true, false);
  const Address address = is_refused ? closed.address() : Address("backend:80");
  const std::string why = is_refused ? "Connection refused" : "it is no IP address";
  const auto attempt = connector->connect({address}, 10s, record.events());
  REQUIRE(record.wait_for(1));
  CHECK(record.words() == Words{"failed"});
  CHECK(record.status().code() == absl::StatusCode::kUnavailable);
  CHECK(absl::StrContains(record.status().message(), address.str() + " failed: "));
  CHECK(absl::StrContains(record.status().message(), why));
}

TEST_CASE("tcp_connector: IPv6 addresses are addresses", "[io][tcp]") {
  Graveyard graveyard;
  Record record;
  const auto connector = start(graveyard);
  // The error depends on this machine's IPv6, but must not be a parse error of the address.
  const auto attempt = connector->connect({Address("[::1]:1")}, 10s, record.events());
  REQUIRE(record.wait_for(1));
  CHECK_FALSE(absl::StrContains(record.status().message(), "no IP address"));
}

TEST_CASE("tcp_connector: an idle connection that the server ends is made anew", "[io][tcp]") {
  Graveyard graveyard;
  Record record;
  MuteSocket server;
  server.listen();
  const auto connector = start(graveyard);
  const auto attempt = connector->connect({server.address()}, 10s, record.events());
  REQUIRE(record.wait_for(1));
  const int idle = server.take_one();
  REQUIRE_FALSE(record.wait_for(2, TcpConnector::kStood));
  SECTION("and nobody hears of it") {
    ::close(idle);
    const int again = server.take_one();
    CHECK(again >= 0);
    Record later;  // Gets the events from here on.
    const auto other = connector->connect({server.address()}, 10s, later.events());
    REQUIRE(later.wait_for(1));
    CHECK(record.words() == Words{"connected"});
    CHECK(record.connection()->takes_calls());
    ::close(again);
  }
  SECTION("and is lost where that fails") {
    server.close();
    ::close(idle);
    REQUIRE(record.wait_for(2));
    CHECK(record.words() == Words{"connected", "closed"});
    CHECK(absl::StrContains(record.status().message(), "Connection refused"));
  }
}

TEST_CASE("tcp_connector: who closes at once is not connected to again at once", "[io][tcp]") {
  Graveyard graveyard;
  Record first;
  Record second;
  MuteSocket server;
  server.listen();
  const auto connector = start(graveyard);
  const auto begun = std::chrono::steady_clock::now();
  const auto attempt = connector->connect({server.address()}, 10s, first.events());
  server.close_one();
  REQUIRE(first.wait_for(2));
  CHECK(first.words() == Words{"connected", "closed"});
  CHECK(absl::StrContains(first.status().message(), "closed at once"));
  const auto next = connector->connect({server.address()}, 10s, second.events());
  REQUIRE(second.wait_for(1));
  CHECK(second.words() == Words{"connected"});
  CHECK(std::chrono::steady_clock::now() - begun >= TcpConnector::kStood);
}

// The first callback blocks the connector's thread while two more attempts are requested. Then the
// thread begins both attempts, and gets the events of both together. The second callback abandons
// the third attempt, so the thread must drop the third attempt's event.
TEST_CASE("tcp_connector: an attempt that was given up is not heard of", "[io][tcp]") {
  Graveyard graveyard;
  Record given_up;
  Record last;
  MuteSocket server;
  server.listen();
  const auto connector = start(graveyard);
  const auto connect = [&](Connector::Events events) {
    return connector->connect({server.address()}, 10s, std::move(events));
  };
  std::promise<void> is_held, go_on;
  const auto holding = connect({.connected = [&](const ConnectionPtr&) {
    is_held.set_value();
    go_on.get_future().wait();
  }});
  is_held.get_future().wait();
  std::unique_ptr<Connector::Attempt> unwanted;
  const auto dropping = connect({.connected = [&](const ConnectionPtr&) { unwanted.reset(); }});
  unwanted = connect(given_up.events());
  go_on.set_value();
  const auto after = connect(last.events());
  REQUIRE(last.wait_for(1));
  CHECK(given_up.words() == Words{});
}

}  // namespace signalbox::actors
