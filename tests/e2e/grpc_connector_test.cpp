// SPDX-License-Identifier: Apache-2.0
#include "actors/io/grpc_connector.hpp"

#include <array>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include <catch2/catch.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/attempt_record.hpp"
#include "tests/e2e/echo_server.hpp"
#include "tests/support/process.hpp"
#include "tests/support/talking_socket.hpp"

namespace signalbox::actors {
namespace {

using namespace std::chrono_literals;
using test::connector_options;
using test::EchoServer;
using test::Graveyard;
using test::MuteSocket;
using test::Record;

const GrpcConnection& grpc_connection(const ConnectionPtr& connection) {
  return static_cast<const GrpcConnection&>(*connection);
}

grpc::Status echo(const ConnectionPtr& connection) {
  const auto stub = test::Echo::NewStub(grpc_connection(connection).channel());
  grpc::ClientContext context;
  context.set_authority(std::string(grpc_connection(connection).authority()));
  context.set_deadline(std::chrono::system_clock::now() + 5s);
  test::EchoRequest request;
  test::EchoReply reply;
  return stub->Unary(&context, request, &reply);
}

TEST_CASE("grpc_connector: tells connected, then closed when the server goes, and calls work",
          "[io][connector]") {
  Graveyard graveyard;
  Record record;
  EchoServer server;
  GrpcConnector connector(connector_options(graveyard));
  const auto attempt = connector.connect({server.address()}, 10s, record.events());
  REQUIRE(record.wait_for(1));
  REQUIRE(record.words() == std::vector<std::string>{"connected"});
  CHECK(record.connection()->address() == server.address());
  CHECK(grpc_connection(record.connection()).is_ready());
  CHECK(echo(record.connection()).ok());

  server.stop();
  REQUIRE(record.wait_for(2));
  CHECK(record.words() == std::vector<std::string>{"connected", "closed"});
  CHECK(record.status().code() == absl::StatusCode::kUnavailable);
  CHECK(absl::StrContains(record.status().message(), server.address().str()));
  CHECK_FALSE(grpc_connection(record.connection()).is_ready());
}

TEST_CASE("grpc_connector: a refused connection fails with its address and the reason",
          "[io][connector]") {
  Graveyard graveyard;
  Record record;
  const MuteSocket closed;
  GrpcConnector connector(connector_options(graveyard));
  const auto attempt = connector.connect({closed.address()}, 10s, record.events());
  REQUIRE(record.wait_for(1));
  CHECK(record.words() == std::vector<std::string>{"failed"});
  CHECK(record.status().code() == absl::StatusCode::kUnavailable);
  CHECK(absl::StrContains(record.status().message(), closed.address().str()));
  CHECK(absl::StrContains(record.status().message(), "Connection refused"));
}

TEST_CASE("grpc_connector: a peer that asks for TLS and cannot have it has no connection",
          "[io][connector][tls][A29]") {
  Graveyard graveyard;
  Record record;
  EchoServer server;  // The server accepts plaintext, so only the connector can refuse.
  GrpcConnectorOptions made = connector_options(graveyard);
  std::string why = "there are no certificates";
  SECTION("there are no certificates") {}
  SECTION("theirs are bad") {
    why = "bad luck";
    made.cluster_credentials = [&](const UpstreamTls&) {
      return absl::FailedPreconditionError("bad luck");
    };
  }
  GrpcConnector connector(std::move(made));
  const auto tls = std::make_shared<const UpstreamTls>();
  const auto attempt = connector.connect({server.address(), tls}, 10s, record.events());
  REQUIRE(record.wait_for(1));
  CHECK(record.words() == std::vector<std::string>{"failed"});
  CHECK(absl::StrContains(record.status().message(), server.address().str()));
  CHECK(absl::StrContains(record.status().message(), why));
}

// Accepts a client's connection and sends it SETTINGS, a DATA frame and two PINGs. Returns all
// bytes that the client sent until its answer to the second PING.
std::string frames_of_client(MuteSocket& server) {
  using namespace std::string_literals;
  const int client = server.take_one();
  REQUIRE(client >= 0);
  std::string heard;
  const auto say = [&](const std::string& frames) {
    REQUIRE(::send(client, frames.data(), frames.size(), MSG_NOSIGNAL) == std::ssize(frames));
  };
  const auto hear = [&](const std::string& until) {
    std::array<char, 1024> bytes{};
    while (!absl::StrContains(heard, until)) {
      const auto count = ::recv(client, bytes.data(), bytes.size(), 0);
      REQUIRE(count > 0);
      heard.append(bytes.data(), static_cast<std::size_t>(count));
    }
  };
  say("\0\0\0\x4\0\0\0\0\0"s);    // SETTINGS
  say("\0\0\x1\0\0\0\0\0\x1."s);  // DATA, of a stream that has ended.
  for (const auto& name : {"answer 1"s, "answer 2"s}) {
    say("\0\0\x8\x6\0\0\0\0\0"s + name);  // PING
    // A client answers frames in order, so it has answered all earlier frames when it answers this
    // PING.
    hear("\0\0\x8\x6\x1\0\0\0\0"s + name);
  }
  ::close(client);
  return heard;
}

TEST_CASE("grpc_connector: windows are of one size, and not probed for, unless options say so",
          "[io][connector]") {
  using namespace std::string_literals;
  const std::string ping = "\0\0\x8\x6\0"s;
  Graveyard graveyard;
  Record record;
  MuteSocket server;
  server.listen();
  GrpcConnectorOptions made = connector_options(graveyard);
  bool is_probed = false;
  std::string window = "\0\x4\0\x10\0\0"s;  // SETTINGS_INITIAL_WINDOW_SIZE: 1 MiB
  SECTION("options say nothing") {}
  SECTION("another window is asked for") {
    made.arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 2 << 20);
    window = "\0\x4\0\x20\0\0"s;
  }
  SECTION("probes are asked for") {
    made.arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 1);
    is_probed = true;
    window = "";
  }
  GrpcConnector connector(std::move(made));
  const auto attempt = connector.connect({server.address()}, 10s, record.events());
  const std::string frames = frames_of_client(server);
  CHECK(absl::StrContains(frames, window));
  CHECK(absl::StrContains(frames, ping) == is_probed);
}

TEST_CASE("grpc_connector: an attempt that takes too long fails at its timeout",
          "[io][connector]") {
  Graveyard graveyard;
  Record record;
  MuteSocket mute;
  mute.listen();
  GrpcConnector connector(connector_options(graveyard));
  const auto start = std::chrono::steady_clock::now();
  const auto attempt = connector.connect({mute.address()}, 150ms, record.events());
  REQUIRE(record.wait_for(1));
  const auto taken = std::chrono::steady_clock::now() - start;
  CHECK(record.words() == std::vector<std::string>{"failed"});
  CHECK(taken >= 150ms);
  CHECK(taken < 5s);
  CHECK(absl::StrContains(record.status().message(), mute.address().str()));
}

TEST_CASE("grpc_connector: of many attempts each waits for its turn, and its time begins then",
          "[io][connector][scale]") {
  Graveyard graveyard;
  Record slow;
  Record next;
  MuteSocket mute;
  mute.listen();
  EchoServer server;
  GrpcConnectorOptions one_at_a_time = connector_options(graveyard);
  one_at_a_time.attempts = {.at_once = 1, .slow_after = 1h};
  GrpcConnector connector(one_at_a_time);

  auto first = connector.connect({mute.address()}, 400ms, slow.events());
  const auto second = connector.connect({server.address()}, 10s, next.events());

  SECTION("until the one before it has failed") {
    REQUIRE(next.wait_for(1));
    CHECK(next.words() == std::vector<std::string>{"connected"});
    CHECK(slow.words() == std::vector<std::string>{"failed"});
  }
  SECTION("until the one before it is given up") {
    CHECK(next.words().empty());
    first.reset();
    REQUIRE(next.wait_for(1));
    CHECK(next.words() == std::vector<std::string>{"connected"});
    CHECK(slow.words().empty());
  }
}

TEST_CASE("grpc_connector: a slow attempt does not hold up those that wait",
          "[io][connector][scale]") {
  Graveyard graveyard;
  Record slow;
  Record next;
  MuteSocket mute;
  mute.listen();
  EchoServer server;
  GrpcConnectorOptions quick_turns = connector_options(graveyard);
  quick_turns.attempts = {.at_once = 1, .slow_after = 50ms};
  GrpcConnector connector(quick_turns);

  const auto first = connector.connect({mute.address()}, 60s, slow.events());
  const auto second = connector.connect({server.address()}, 10s, next.events());

  REQUIRE(next.wait_for(1));
  CHECK(next.words() == std::vector<std::string>{"connected"});
  CHECK(slow.words().empty());
}

TEST_CASE("grpc_connector: the time of a dial counts for gRPC's attempt after it",
          "[io][connector]") {
  Graveyard graveyard;
  MuteSocket mute;
  mute.listen();
  MuteSocket known;
  known.listen();
  GrpcConnectorOptions options = connector_options(graveyard);
  options.sockets = true;
  options.silence = 3s;
  options.arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  GrpcConnector connector(options);
  Record before;
  auto short_one = connector.connect({known.address()}, 20ms, before.events());
  REQUIRE(before.wait_for(1));
  short_one.reset();  // Otherwise the next attempt may join gRPC's attempt for this one.
  Record dialed;
  Record not_dialed;
  const auto first = connector.connect({mute.address()}, 6s, dialed.events());
  // The server is known to be silent, so gRPC connects to it at once.
  const auto second = connector.connect({known.address()}, 7500ms, not_dialed.events());
  REQUIRE(not_dialed.wait_for(1));
  CHECK(dialed.words() == std::vector<std::string>{"failed"});
}

TEST_CASE("grpc_connector: attempts to one address share one channel while it lives",
          "[io][connector]") {
  Graveyard graveyard;
  Record first;
  Record second;
  Record third;
  EchoServer server;
  GrpcConnector connector(connector_options(graveyard));
  auto one = connector.connect({server.address()}, 10s, first.events());
  auto two = connector.connect({server.address()}, 10s, second.events());
  REQUIRE(first.wait_for(1));
  REQUIRE(second.wait_for(1));
  auto three = connector.connect({server.address()}, 10s, third.events());
  REQUIRE(third.wait_for(1));
  CHECK(first.connection() == second.connection());
  CHECK(first.connection() == third.connection());

  SECTION("and one that is dropped leaves it to the others") {
    one.reset();
    two.reset();
    CHECK(echo(third.connection()).ok());
    server.stop();
    REQUIRE(third.wait_for(2));
    CHECK(first.words() == std::vector<std::string>{"connected"});
    CHECK(second.words() == std::vector<std::string>{"connected"});
  }
  SECTION("and it is retired when the last of them and of its users is gone") {
    one.reset();
    two.reset();
    three.reset();
    first.forget_connection();
    second.forget_connection();
    CHECK(graveyard.size() == 0);
    third.forget_connection();
    REQUIRE(graveyard.wait_for(1));
    Record later;
    const auto again = connector.connect({server.address()}, 10s, later.events());
    REQUIRE(later.wait_for(1));
    CHECK(later.connection().get() != &graveyard.front());
    CHECK(echo(later.connection()).ok());
  }
}

TEST_CASE("grpc_connector: a connection that is used outlives its pointers and the connector",
          "[io][connector]") {
  Graveyard graveyard;
  EchoServer server;
  std::shared_ptr<grpc::Channel> kept;
  {
    Record record;
    GrpcConnector connector(connector_options(graveyard));
    const auto attempt = connector.connect({server.address()}, 10s, record.events());
    REQUIRE(record.wait_for(1));
    kept = grpc_connection(record.connection()).channel();
    const Use use(*record.connection());
    record.forget_connection();
    CHECK(graveyard.size() == 0);
  }
  REQUIRE(graveyard.wait_for(1));
  CHECK_FALSE(graveyard.front().in_use());
  graveyard.clear();
  // The connector and the connection are gone. But `kept` keeps the channel, so the connector's
  // watch on the channel's state is still armed. It must not touch either of them when it ends. The
  // channel itself still carries calls.
  const auto stub = test::Echo::NewStub(kept);
  grpc::ClientContext context;
  context.set_authority(server.address().str());
  test::EchoReply reply;
  CHECK(stub->Unary(&context, {}, &reply).ok());
}

TEST_CASE("grpc_connector: an attempt that is given up is told nothing", "[io][connector]") {
  Graveyard graveyard;
  MuteSocket mute;
  mute.listen();
  GrpcConnector connector(connector_options(graveyard));
  for (int round = 0; round < 50; ++round) {
    auto record = std::make_unique<Record>();
    auto attempt = connector.connect({mute.address()}, 2ms, record->events());
    if (round % 2 == 0) std::this_thread::yield();
    attempt.reset();
    record.reset();  // A callback after this line would use freed memory.
  }
  CHECK(graveyard.size() == 0);
}

TEST_CASE("grpc_connector: an attempt may be dropped from inside its own callback",
          "[io][connector]") {
  Graveyard graveyard;
  EchoServer server;
  GrpcConnector connector(connector_options(graveyard));
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::unique_ptr<Connector::Attempt> attempt;
  std::unique_lock lock(mutex);
  attempt = connector.connect({server.address()},
                              10s,
                              {[&](const ConnectionPtr&) {
                                 const std::lock_guard inside(mutex);
                                 attempt.reset();
                                 done = true;
                                 changed.notify_all();
                               },
                               nullptr,
                               nullptr});
  REQUIRE(changed.wait_for(lock, 10s, [&] { return done; }));
  lock.unlock();
  CHECK(graveyard.wait_for(1));
}

TEST_CASE("grpc_connector: after a failure, a new attempt makes a new channel", "[io][connector]") {
  Graveyard graveyard;
  Record before;
  Record after;
  auto server = std::make_unique<EchoServer>();
  const Address address = server->address();
  const int port = server->service().port;
  server.reset();
  GrpcConnector connector(connector_options(graveyard));
  auto attempt = connector.connect({address}, 10s, before.events());
  REQUIRE(before.wait_for(1));
  REQUIRE(before.words() == std::vector<std::string>{"failed"});
  server = std::make_unique<EchoServer>(port);
  attempt = connector.connect({address}, 10s, after.events());
  REQUIRE(after.wait_for(1));
  CHECK(after.words() == std::vector<std::string>{"connected"});
  CHECK(before.words().size() == 1);
}

TEST_CASE("grpc_connector: keepalive pings for as long as a connection carries no data",
          "[io][connector][keepalive][A8]") {
  // The server ends the connection at the third ping. By default gRPC sends two pings without data,
  // and then stops.
  EchoServer strict(0, [](grpc::ServerBuilder& builder) {
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 3'600'000);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 1);
  });
  Graveyard graveyard;
  Record record;
  GrpcConnectorOptions pinging = connector_options(graveyard);
  pinging.keepalive = {.time = 1s, .without_calls = true};
  GrpcConnector connector(pinging);
  const auto attempt = connector.connect({strict.address()}, 10s, record.events());
  REQUIRE(record.wait_for(1));
  REQUIRE(record.words() == std::vector<std::string>{"connected"});
  CHECK(record.wait_for(2));
  CHECK(record.words() == std::vector<std::string>{"connected", "closed"});
}

TEST_CASE("grpc_connector: IPv6 addresses are written in brackets", "[io][connector]") {
  CHECK(grpc_target(Address("[::1]:80")) == "ipv6:///[::1]:80");
  CHECK(grpc_target(Address("127.0.0.1:80")) == "ipv4:///127.0.0.1:80");
}

TEST_CASE("grpc_connector: a handshake asks for the target's name, and never for an address",
          "[io][connector][tls]") {
  struct Row {
    const char* authority;
    const char* named;
  };

  const auto row = GENERATE(values<Row>({
      {"echo.default.svc:7070", "echo.default.svc"},
      {"10.1.2.3:7070", "endpoint.invalid"},
      {"[2001:db8::1]:7070", "endpoint.invalid"},
      {"", "endpoint.invalid"},
  }));
  CAPTURE(row.authority);
  Graveyard graveyard;
  Record record;
  // The server reads until "h2" (ALPN), which comes near the end of the ClientHello.
  const test::TalkingSocket server("", "h2");
  GrpcConnectorOptions with_tls = connector_options(graveyard);
  with_tls.cluster_credentials = [](const UpstreamTls&) {
    return ConnectionCredentials{grpc::SslCredentials({})};
  };
  GrpcConnector connector(std::move(with_tls));
  const auto attempt = connector.connect(
      {Address(server.address()), std::make_shared<const UpstreamTls>(), row.authority},
      10s,
      record.events());
  REQUIRE(test::eventually([&] { return !server.heard().empty(); }));
  const std::string heard = server.heard();
  CHECK(absl::StrContains(heard, row.named));
  CHECK_FALSE(absl::StrContains(heard, "127.0.0.1"));
  CHECK_FALSE(absl::StrContains(heard, "10.1.2.3"));
  CHECK_FALSE(absl::StrContains(heard, "2001:db8"));
}

TEST_CASE("grpc_connector: targets share a connection unless its handshake names one of them",
          "[io][connector]") {
  const bool is_named = GENERATE(false, true);
  Graveyard graveyard;
  EchoServer server;
  GrpcConnectorOptions own = connector_options(graveyard);
  if (!is_named) own.credentials = nullptr;  // Plaintext: a target's name does not matter.
  GrpcConnector connector(std::move(own));
  Record one;
  Record other;
  const auto first =
      connector.connect({server.address(), nullptr, "one.example"}, 10s, one.events());
  REQUIRE(one.wait_for(1));
  const auto second =
      connector.connect({server.address(), nullptr, "other.example"}, 10s, other.events());
  REQUIRE(other.wait_for(1));
  CHECK((one.connection() == other.connection()) == !is_named);
  CHECK(grpc_connection(one.connection()).authority() ==
        (is_named ? "one.example" : server.address().str()));
}

}  // namespace
}  // namespace signalbox::actors
