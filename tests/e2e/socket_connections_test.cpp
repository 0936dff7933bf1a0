// SPDX-License-Identifier: Apache-2.0
//
// Connections that are made from sockets (GrpcConnectorOptions::sockets), to servers of all kinds.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "actors/io/end_mark.hpp"
#include "actors/io/grpc_connector.hpp"
#include "actors/io/grpc_load_streams.hpp"
#include "actors/io/grpc_poller.hpp"
#include "actors/io/lost_connection.hpp"
#include "actors/io/sockets.hpp"
#include "lb/pick/stream_lanes.hpp"
#include "tests/e2e/attempt_record.hpp"
#include "tests/e2e/channel_world.hpp"
#include "tests/e2e/cut_headers.hpp"
#include "tests/e2e/echo_server.hpp"
#include "tests/support/happened.hpp"
#include "tests/support/no_descriptors.hpp"
#include "tests/support/process.hpp"
#include "tests/support/talking_socket.hpp"
#include "tests/support/temporary_folder.hpp"

namespace signalbox::test {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using actors::GrpcConnection;
using actors::GrpcConnector;
using actors::GrpcConnectorOptions;
using Turns = std::vector<TalkingSocket::Turn>;
using Words = std::vector<std::string>;

const TalkingSocket::Turn kSettings{"", http2_settings()};
const TalkingSocket::Turn kSilence{"what no client says", ""};
constexpr char kPreface[] = "PRI * HTTP/2.0";

const GrpcConnection& grpc_connection(const ConnectionPtr& connection) {
  return static_cast<const GrpcConnection&>(*connection);
}

// Options of a connector that makes its connections from sockets.
GrpcConnectorOptions options_of_sockets(Graveyard& graveyard, std::chrono::milliseconds silence) {
  GrpcConnectorOptions options = connector_options(graveyard);
  options.sockets = true;
  options.silence = silence;
  options.arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return options;
}

// A connector that makes its connections from sockets, or leaves that to gRPC.
struct Maker {
  explicit Maker(std::chrono::milliseconds silence = kPatientSilence, bool sockets = true)
      : connector(options(silence, sockets)) {}

  GrpcConnectorOptions options(std::chrono::milliseconds silence, bool sockets) {
    GrpcConnectorOptions made = options_of_sockets(graveyard, silence);
    made.credentials = nullptr;  // Plaintext.
    made.sockets = sockets;
    made.no_sockets = [](const std::string& why) { FAIL(why); };
    return made;
  }

  Graveyard graveyard;
  GrpcConnector connector;
};

// A connection to a server. The attempt must succeed.
struct Connected {
  explicit Connected(const Address& server, bool sockets = true)
      : maker(kPatientSilence, sockets),
        attempt(maker.connector.connect({server}, 10s, record.events())) {
    REQUIRE(record.wait_for(1));
    REQUIRE(record.words() == Words{"connected"});
  }

  const GrpcConnection& connection() { return grpc_connection(record.connection()); }

  Maker maker;
  Record record;
  const std::unique_ptr<actors::Connector::Attempt> attempt;
};

// The error of an attempt to connect, which must fail.
std::string failure_by(Maker& maker, const Address& address, std::chrono::milliseconds timeout) {
  Record record;
  const auto attempt = maker.connector.connect({address}, timeout, record.events());
  REQUIRE(record.wait_for(1));
  CHECK(record.words() == Words{"failed"});
  CHECK(record.status().code() == absl::StatusCode::kUnavailable);
  return std::string(record.status().message());
}

std::string failure(const Address& address, std::chrono::milliseconds timeout = 10s) {
  Maker maker(kPatientSilence);
  return failure_by(maker, address, timeout);
}

std::string failed_to(const std::string& address, const std::string& why) {
  return absl::StrCat("connection to ", address, " failed: ", why);
}

grpc::Status call(const ConnectionPtr& connection,
                  grpc::ClientContext& context,
                  const std::string& text = "one") {
  const auto stub = Echo::NewStub(grpc_connection(connection).channel());
  context.set_authority(std::string(grpc_connection(connection).authority()));
  context.set_deadline(std::chrono::system_clock::now() + 10s);
  EchoRequest request;
  request.set_text(text);
  EchoReply reply;
  return stub->Unary(&context, request, &reply);
}

class IgnoredReports final : public LoadListener {
 public:
  void reported(const LoadReport& /*report*/, Instant /*now*/) const noexcept override {}
};

// The bytes of the heap in use. nullopt: the allocator is a sanitizer's, of which mallinfo2() does
// not know.
std::optional<std::size_t> heap() {
  const std::size_t bytes = ::mallinfo2().uordblks;
  if (bytes == 0) return std::nullopt;
  return bytes;
}

// TCP_USER_TIMEOUT of this process's connections to a port of its own.
std::vector<int> user_timeouts_to(int port) {
  std::vector<int> timeouts;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(entry.path().filename());
    sockaddr_in peer{};
    socklen_t length = sizeof(peer);
    if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &length) != 0 ||
        peer.sin_family != AF_INET || ntohs(peer.sin_port) != port)
      continue;
    int value = -1;
    length = sizeof(value);
    ::getsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &length);
    timeouts.push_back(value);
  }
  return timeouts;
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

}  // namespace

TEST_CASE("socket_connections: calls work, and name their endpoint", "[io][connector]") {
  EchoServer server;
  Connected made{server.address()};
  CHECK(made.connection().is_socket());
  CHECK(made.connection().is_ready());
  {
    grpc::ClientContext context;
    CHECK(call(made.record.connection(), context).ok());
    CHECK(context.peer() == "ipv4:" + server.address().str());
  }
  SECTION("a later attempt shares the connection") {
    Record later;
    const auto second = made.maker.connector.connect({server.address()}, 10s, later.events());
    REQUIRE(later.wait_for(1));
    CHECK(later.connection() == made.record.connection());
  }
  SECTION("the end of the server is the end of the connection") {
    server.stop();
    REQUIRE(made.record.wait_for(2));
    CHECK(made.record.words() == Words{"connected", "closed"});
    CHECK(absl::StrContains(made.record.status().message(), server.address().str()));
    CHECK_FALSE(made.connection().is_ready());
  }
}

TEST_CASE("socket_connections: a server on a unix path", "[io][connector]") {
  const TemporaryFolder folder;
  const std::string path = absl::StrCat("unix:", folder.path("socket"));
  EchoServer server(0, [&](grpc::ServerBuilder& builder) {
    builder.AddListeningPort(path, grpc::InsecureServerCredentials());
  });
  Connected made{Address(path)};
  CHECK(made.connection().is_socket());
  grpc::ClientContext context;
  CHECK(call(made.record.connection(), context).ok());
  CHECK(context.peer() == path);
}

TEST_CASE("socket_connections: a server that does not speak HTTP/2 fails with what it says",
          "[io][connector]") {
  struct Row {
    const char* when;
    std::string says;
    std::string why;
  };

  const auto row = GENERATE(values<Row>({
      {"HTTP/1.1",
       "HTTP/1.1 400 Bad Request\r\n\r\n",
       "the server speaks HTTP/1, not HTTP/2: \"HTTP/1.1 400 Bad Request\""},
      {"GOAWAY first", goaway(0), "the server sent GOAWAY instead of SETTINGS, with error code 0"},
      {"half of SETTINGS, then the end",
       http2_settings().substr(0, 5),
       "Socket closed: the server has sent 5 bytes, not a whole SETTINGS frame; the connection is "
       "plaintext: does the server want TLS?"},
      {"the end",
       "",
       "Socket closed, before SETTINGS came; the connection is plaintext: does the server want "
       "TLS?"},
  }));
  CAPTURE(row.when);
  const TalkingSocket server(row.says);
  CHECK(failure(Address(server.address())) == failed_to(server.address(), row.why));
}

TEST_CASE("socket_connections: a server that resets the connection", "[io][connector]") {
  TalkingSocket server;
  server.reset_after();
  CHECK(failure(Address(server.address())) ==
        failed_to(server.address(),
                  "Connection reset by peer, before SETTINGS came; the connection is plaintext: "
                  "does the server want TLS?"));
}

TEST_CASE("socket_connections: a server that says half of SETTINGS, or nothing, runs out of time",
          "[io][connector]") {
  const bool is_mute = GENERATE(false, true);
  CAPTURE(is_mute);
  const TalkingSocket server(Turns{{"", is_mute ? "" : http2_settings().substr(0, 5)}, kSilence});
  const Address address(server.address());
  const auto text = [&address](const std::string& why) {
    return absl::StrCat(
        "connection to ", address.str(), " was not made within 300 ms (connect_timeout): ", why);
  };
  if (!is_mute) {
    CHECK(failure(address, 300ms) ==
          text("the server has sent 5 bytes, not a whole SETTINGS frame"));
    return;
  }
  Maker maker(1ms);
  CHECK(failure_by(maker, address, 300ms) ==
        text("the server accepted the connection, and sent nothing on it"));
  CHECK(failure_by(maker, address, 300ms) ==
        text("an earlier connection was accepted, and the server sent nothing on it"));
}

TEST_CASE("socket_connections: gRPC connects to a server that speaks late", "[io][connector]") {
  const bool waits_for_preface = GENERATE(false, true);
  CAPTURE(waits_for_preface);
  MuteSocket server;
  server.listen();
  std::thread serving([&] {
    // The first connection is the dial, the second one gRPC's.
    const int dialed = server.take_one();
    const int connected = server.take_one();
    if (dialed < 0 || connected < 0) return;  // The attempt fails.
    std::string preface(24, '\0');
    if (waits_for_preface) ::recv(connected, preface.data(), preface.size(), MSG_WAITALL);
    const std::string settings = http2_settings();
    ::send(connected, settings.data(), settings.size(), MSG_NOSIGNAL);
    while (::recv(connected, preface.data(), preface.size(), 0) > 0) {
    }
    ::close(connected);
    ::close(dialed);
  });
  {
    Maker maker(actors::SocketDialer::kSilence);
    Record record;
    const auto attempt = maker.connector.connect({server.address()}, 10s, record.events());
    REQUIRE(record.wait_for(1));
    CHECK(record.words() == Words{"connected"});
    CHECK_FALSE(grpc_connection(record.connection()).is_socket());
  }
  serving.join();
}

TEST_CASE("socket_connections: an attempt that joins another one runs out of its own time",
          "[io][connector]") {
  const bool joins_dial = GENERATE(false, true);
  CAPTURE(joins_dial);
  MuteSocket server;
  server.listen();
  Maker maker(joins_dial ? kPatientSilence : 1ms);
  Record record;
  const auto attempt = maker.connector.connect({server.address()}, 3600s, record.events());
  const actors::Descriptor dialed(server.take_one());
  actors::Descriptor connected;
  if (joins_dial) {  // A server that has sent a part of SETTINGS does not become silent.
    REQUIRE(::send(*dialed, http2_settings().data(), 5, MSG_NOSIGNAL) == 5);
  } else {
    connected = actors::Descriptor(server.take_one());
  }
  Record joined;
  const auto other = maker.connector.connect({server.address()}, 300ms, joined.events());
  REQUIRE(joined.wait_for(1, kPatience));
  CHECK(joined.words() == Words{"failed"});
  CHECK(record.words().empty());
}

// 80 ms is less than the product's silence, too. Only a busy machine needs more than one attempt.
TEST_CASE("socket_connections: a server that waits for the preface connects in a short time",
          "[io][connector]") {
  const TalkingSocket server(Turns{{kPreface, http2_settings()}, kSilence});
  Maker maker(kPatientSilence);
  CHECK(eventually([&] {
    Record record;
    const auto attempt =
        maker.connector.connect({Address(server.address())}, 80ms, record.events());
    REQUIRE(record.wait_for(1));
    return record.words() == Words{"connected"};
  }));
}

TEST_CASE("socket_connections: a server that answers the preface by HTTP/1.1", "[io][connector]") {
  const TalkingSocket server("HTTP/1.1 400 Bad Request\r\n\r\n", kPreface);
  Maker maker(1ms);
  CHECK(failure_by(maker, Address(server.address()), 10s) ==
        failed_to(server.address(), "the server speaks HTTP/1, not HTTP/2"));
}

TEST_CASE("socket_connections: paths that are no server's socket", "[io][connector]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("directory"));
  const std::string directory = absl::StrCat("unix:", folder.path("directory"));
  CHECK(failure(Address(directory)) ==
        failed_to(directory,
                  "Failed to connect to remote host: Connection refused: the path is a directory"));
  const std::string file = absl::StrCat("unix:", folder.write("file", "text"));
  CHECK(failure(Address(file)) ==
        failed_to(file,
                  "Failed to connect to remote host: Connection refused: the path is no socket"));
  const std::string missing = absl::StrCat(directory, "/missing");
  CHECK(failure(Address(missing)) ==
        failed_to(missing, "Failed to connect to remote host: No such file or directory"));
  CHECK(failure(Address("nonsense")) ==
        failed_to("nonsense", "it is neither an IP address with a port nor a unix: path"));
}

TEST_CASE("socket_connections: a process without descriptors says so", "[io][connector]") {
  EchoServer server;
  Maker maker;
  Record record;
  std::unique_ptr<actors::Connector::Attempt> attempt;
  {
    const NoDescriptors none;
    attempt = maker.connector.connect({server.address()}, 10s, record.events());
    REQUIRE(record.wait_for(1));
  }
  CHECK(record.status().message() ==
        failed_to(server.address().str(), "no socket could be made: Too many open files"));
}

TEST_CASE("socket_connections: a GOAWAY is the end of a connection for new calls",
          "[io][connector][A6]") {
  // The server keeps the connection open after the GOAWAY.
  const TalkingSocket server(Turns{kSettings, {"one", goaway(0)}, kSilence});
  Connected made{Address(server.address())};
  const GrpcConnection& connection = made.connection();
  grpc::ClientContext context;
  CHECK(call(made.record.connection(), context).error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(actors::reach_of(context, connection, /*was_taken=*/true) == actors::Reach::kRefused);
  CHECK_FALSE(connection.is_ready());
  REQUIRE(made.record.wait_for(2));
  CHECK(made.record.words() == Words{"connected", "closed"});
  CHECK(absl::StrContains(made.record.status().message(), "was closed"));
}

TEST_CASE("socket_connections: the first call after an idle server's GOAWAY finds it",
          "[io][connector][A6]") {
  const TalkingSocket server(Turns{{"", http2_settings() + goaway(0)}, kSilence});
  Connected made{Address(server.address())};
  const GrpcConnection& connection = made.connection();
  grpc::ClientContext context;
  CHECK(call(made.record.connection(), context).error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(actors::reach_of(context, connection, /*was_taken=*/false) != actors::Reach::kServer);
  CHECK_FALSE(connection.is_ready());
  REQUIRE(made.record.wait_for(2));
  CHECK(made.record.words() == Words{"connected", "closed"});
  CHECK(absl::StrContains(made.record.status().message(), "was closed: GOAWAY"));
}

TEST_CASE("socket_connections: a stream of load reports finds that the server has gone away",
          "[io][connector][A6][A51]") {
  const bool has_lanes = GENERATE(false, true);
  CAPTURE(has_lanes);
  const TalkingSocket server(Turns{kSettings, {"StreamCoreMetrics", goaway(0)}, kSilence});
  Connected made{Address(server.address())};
  ConnectionPtr connection = made.record.connection();
  if (has_lanes) {
    connection = std::make_shared<const GrpcConnection>(
        std::static_pointer_cast<const GrpcConnection>(connection),
        std::make_shared<const lb::StreamLanes>(nullptr, nullptr));
  }
  actors::GrpcLoadStreamsOptions options;
  options.count_report = [](LoadReportResult) {};
  options.stream_ended = [](const Address&, LoadStreamEnd) {};
  const auto streams = actors::make_grpc_load_streams(std::move(options));
  const auto watch = streams->watch(connection, 1s, std::make_shared<IgnoredReports>());
  REQUIRE(made.record.wait_for(2));
  CHECK(made.record.words() == Words{"connected", "closed"});
  CHECK(absl::StrContains(made.record.status().message(), "was closed: GOAWAY NO_ERROR"));
}

TEST_CASE("socket_connections: calls in flight outlive a GOAWAY, and a new connection is made",
          "[channel][A6]") {
  ::setenv("SIGNALBOX_SOCKET_CONNECTIONS", "true", 1);
  EchoServer leaving;
  ChannelWorld world;
  const auto old = world.connect(leaving.address());
  REQUIRE(grpc_connection(old).is_socket());
  world.publish_ready({old});
  grpc::ClientContext context;
  const auto stream = world.stub->Chat(&context);
  EchoRequest request;
  EchoReply reply;
  REQUIRE(stream->Write(request));
  REQUIRE(stream->Read(&reply));
  const int port = leaving.service().port;
  std::thread shutdown([&] { leaving.leave(); });
  // Calls find the GOAWAY. Each is put off, and waits for another pick until its deadline.
  CHECK(eventually([&] {
    grpc::ClientContext probing;
    probing.set_deadline(std::chrono::system_clock::now() + 50ms);
    EchoReply ignored;
    world.stub->Unary(&probing, request, &ignored);
    return !grpc_connection(old).is_ready();
  }));
  CHECK(stream->Write(request));
  CHECK(stream->Read(&reply));
  stream->WritesDone();
  CHECK(stream->Finish().ok());
  shutdown.join();
  EchoServer back(port);
  const auto made = world.connect(back.address());
  CHECK(made != old);
  CHECK(grpc_connection(made).is_ready());
  world.publish(nullptr);
}

TEST_CASE("socket_connections: a status with the text of a GOAWAY ends no connection",
          "[io][connector][A6]") {
  constexpr int kUnavailable = grpc::StatusCode::UNAVAILABLE;
  const TalkingSocket server(Turns{kSettings,
                                   {"one", trailers_only(kUnavailable, "GOAWAY received")},
                                   {"two", goaway(0)},
                                   kSilence});
  Connected made{Address(server.address())};
  const GrpcConnection& connection = made.connection();
  grpc::ClientContext context;
  CHECK(call(made.record.connection(), context).error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(actors::reach_of(context, connection, /*was_taken=*/true) == actors::Reach::kServer);
  CHECK(connection.is_ready());
  CHECK(made.record.words() == Words{"connected"});
  // Nor does it hide a real GOAWAY.
  grpc::ClientContext later;
  CHECK(call(made.record.connection(), later, "two").error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(actors::reach_of(later, connection, /*was_taken=*/true) == actors::Reach::kRefused);
  CHECK_FALSE(connection.is_ready());
  REQUIRE(made.record.wait_for(2));
  CHECK(made.record.words() == Words{"connected", "closed"});
}

// The connection is one that gRPC has made: it leaves READY by itself after a real GOAWAY.
TEST_CASE("socket_connections: calls wait for a GOAWAY's effect for a second in all",
          "[io][connector][A6]") {
  constexpr int kUnavailable = grpc::StatusCode::UNAVAILABLE;
  const TalkingSocket server(
      Turns{kSettings, {"one", trailers_only(kUnavailable, "GOAWAY received")}, kSilence});
  Connected made{Address(server.address()), /*sockets=*/false};
  const GrpcConnection& connection = made.connection();
  grpc::ClientContext context;
  CHECK(call(made.record.connection(), context).error_code() == grpc::StatusCode::UNAVAILABLE);
  const auto reach_with = [&](std::chrono::milliseconds left) {
    context.set_deadline(std::chrono::system_clock::now() + left);
    return actors::reach_of(context, connection, /*was_taken=*/true);
  };
  for (int i = 0; i < 10; ++i)
    CHECK(reach_with(-1s) == actors::Reach::kServer);
  CHECK(reach_with(200ms) == actors::Reach::kServer);
  CHECK_FALSE(connection.server_says_goaway());
  SECTION("in one wait") {
    CHECK(reach_with(1h) == actors::Reach::kServer);
  }
  SECTION("in several waits") {
    for (int i = 0; i < 4; ++i)
      CHECK(reach_with(200ms) == actors::Reach::kServer);
  }
  CHECK(connection.server_says_goaway());
  CHECK(connection.is_ready());
}

TEST_CASE("socket_connections: time that several calls wait at once counts once",
          "[io][connector][A6]") {
  const TalkingSocket server(Turns{kSettings, kSilence});
  Connected made{Address(server.address()), /*sockets=*/false};
  const GrpcConnection& connection = made.connection();
  const Instant begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i)
    connection.record_vain_wait(begun, begun + 600ms);
  connection.record_vain_wait(begun + 200ms, begun + 800ms);
  CHECK_FALSE(connection.server_says_goaway());
  connection.record_vain_wait(begun + 10s, begun + 10200ms);
  CHECK(connection.server_says_goaway());
}

namespace {

class Token final : public grpc::MetadataCredentialsPlugin {
 public:
  bool IsBlocking() const override { return false; }

  grpc::Status GetMetadata(grpc::string_ref /*service_url*/,
                           grpc::string_ref /*method_name*/,
                           const grpc::AuthContext& /*channel_auth_context*/,
                           std::multimap<grpc::string, grpc::string>* metadata) override {
    metadata->emplace("authorization", "secret");
    return grpc::Status::OK;
  }
};

}  // namespace

// A busy machine may need more than one connection: gRPC may read the error first.
TEST_CASE("socket_connections: a reset is told as a socket error", "[io][connector]") {
  TalkingSocket server(Turns{kSettings, {kPreface, ""}});
  server.reset_after();
  CHECK(eventually([&] {
    Maker maker;
    Record record;
    const auto attempt = maker.connector.connect({Address(server.address())}, 10s, record.events());
    REQUIRE(record.wait_for(2, kPatience));
    return absl::EndsWith(record.status().message(), " was closed: socket error");
  }));
}

TEST_CASE("socket_connections: picks look while an ended connection has an owner",
          "[io][connector][A105]") {
  EchoServer server;
  Connected made{server.address()};
  ConnectionPtr first = made.record.connection();
  made.record.forget_connection();
  // A connection with lanes is another owner of the first one, not its last.
  ConnectionPtr with_lanes = made.maker.connector.with_lanes(
      first, std::make_shared<const lb::StreamLanes>(nullptr, [] {}));
  with_lanes = nullptr;
  grpc_connection(first).lose();
  CHECK(actors::EndMark::is_any_set());
  first = nullptr;
  made.maker.graveyard.clear();  // The connection with lanes.
  CHECK(eventually([] { return !actors::EndMark::is_any_set(); }));
}

TEST_CASE("socket_connections: call credentials never leave in plaintext, nor are they dropped",
          "[channel][security]") {
  ::setenv("SIGNALBOX_SOCKET_CONNECTIONS", "true", 1);
  EchoServer server;
  ChannelWorld world;
  const auto connection = world.connect(server.address());
  REQUIRE(grpc_connection(connection).is_socket());
  world.publish_ready({connection});
  for (const Api api : {Api::kSync, Api::kAsync, Api::kCallback}) {
    CAPTURE(to_string(api));
    grpc::ClientContext context;
    context.set_credentials(grpc::MetadataCredentialsFromPlugin(std::make_unique<Token>()));
    EchoReply reply;
    const grpc::Status status = call(*world.stub, api, context, EchoRequest(), reply);
    CHECK(status.error_code() == grpc::StatusCode::UNAUTHENTICATED);
  }
  CHECK(server.service().calls == 0);
  world.publish(nullptr);
}

TEST_CASE("socket_connections: gRPC connects if an argument asks for zero-copy sends",
          "[io][connector]") {
  EchoServer server;
  Graveyard graveyard;
  GrpcConnectorOptions options = connector_options(graveyard);
  options.sockets = true;
  options.arguments.SetInt(GRPC_ARG_TCP_TX_ZEROCOPY_ENABLED, 1);
  options.arguments.SetInt(GRPC_ARG_TCP_TX_ZEROCOPY_SEND_BYTES_THRESHOLD, 1);
  std::string text;
  options.no_sockets = [&text](const std::string& what) { text = what; };
  GrpcConnector connector(std::move(options));
  CHECK(text ==
        "socket_connections has no effect, and gRPC makes all connections: channel_arguments set "
        "\"grpc.experimental.tcp_tx_zerocopy_enabled\", and gRPC enables it for sockets that gRPC "
        "connects");
  Record record;
  const auto attempt = connector.connect({server.address()}, 10s, record.events());
  REQUIRE(record.wait_for(1));
  CHECK_FALSE(grpc_connection(record.connection()).is_socket());
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    CHECK(call(record.connection(), context).ok());
  }
  CHECK(record.words() == Words{"connected"});
}

TEST_CASE("socket_connections: a value of the environment that is neither true nor false",
          "[io][connector]") {
  struct Row {
    const char* value;
    bool allows;
    std::string complaint;
  };

  const auto row = GENERATE(values<Row>({
      {"true", true, ""},
      {"", true, ""},
      {"false", false, ""},
      {"0",
       true,
       "SIGNALBOX_SOCKET_CONNECTIONS=\"0\" in the environment has no effect: write \"false\" or "
       "\"true\""},
      {"False",
       true,
       "SIGNALBOX_SOCKET_CONNECTIONS=\"False\" in the environment has no effect: write \"false\" "
       "or \"true\""},
  }));
  ::setenv("SIGNALBOX_SOCKET_CONNECTIONS", row.value, 1);
  CHECK(actors::environment_allows_sockets() == row.allows);
  Graveyard graveyard;
  GrpcConnectorOptions options = options_of_sockets(graveyard, kPatientSilence);
  std::string text;
  options.no_sockets = [&text](const std::string& what) { text += what; };
  const GrpcConnector connector(std::move(options));
  CHECK(text == row.complaint);
  ::setenv("SIGNALBOX_SOCKET_CONNECTIONS", "true", 1);
}

TEST_CASE("socket_connections: keepalive's timeout is the system's limit for unacknowledged data",
          "[io][connector][keepalive]") {
  EchoServer server;
  Graveyard graveyard;
  GrpcConnectorOptions options = options_of_sockets(graveyard, kPatientSilence);
  options.keepalive = {.time = 1h, .timeout = 1234ms};
  GrpcConnector connector(std::move(options));
  Record record;
  const auto attempt = connector.connect({server.address()}, 10s, record.events());
  REQUIRE(record.wait_for(1));
  CHECK(grpc_connection(record.connection()).is_socket());
  CHECK(user_timeouts_to(server.service().port) == std::vector<int>{1234});
}

// Left out with UBSan: to check an object's type it makes a pipe, and without descriptors it takes
// each new type for a wrong one.
#if !defined(__SANITIZE_ADDRESS__)

// Options of a connector that tries again to begin with sockets. `texts` gets what it says of that.
GrpcConnectorOptions trying_again(Graveyard& graveyard,
                                  Happened<std::string>& texts,
                                  Duration again_after) {
  GrpcConnectorOptions options = options_of_sockets(graveyard, kPatientSilence);
  options.sockets_again_after = again_after;
  options.no_sockets = [&texts](const std::string& text) { texts.add(text); };
  return options;
}

TEST_CASE("socket_connections: a process without descriptors tries again later",
          "[io][connector][limits]") {
  EchoServer server;
  Maker before;  // Makes gRPC open the descriptors that every process needs once.
  Graveyard graveyard;
  Happened<std::string> texts;
  GrpcConnectorOptions options = trying_again(graveyard, texts, 1ms);
  std::optional<GrpcConnector> connector;
  {
    const NoDescriptors none;
    connector.emplace(std::move(options));
    const std::string start =
        "socket_connections has no effect yet, and gRPC makes all connections: no socket for the "
        "self-test could be made: Too many open files; signalbox tries again in ";
    CHECK(texts.next() == start + "1 ms (1 of 10)");
    CHECK(texts.next() == start + "2 ms (2 of 10)");
  }
  CHECK(eventually([&] {
    Record record;
    const auto attempt = connector->connect({server.address()}, 10s, record.events());
    REQUIRE(record.wait_for(1));
    return grpc_connection(record.connection()).is_socket();
  }));
}

TEST_CASE("socket_connections: gRPC connects when the tries are used up",
          "[io][connector][limits]") {
  EchoServer server;
  Maker before;
  Graveyard graveyard;
  Happened<std::string> texts;
  GrpcConnectorOptions options = trying_again(graveyard, texts, 1us);
  std::optional<GrpcConnector> connector;
  {
    const NoDescriptors none;
    connector.emplace(std::move(options));
    for (int i = 0; i < 10; ++i)
      CHECK(absl::StrContains(texts.next(), "tries again"));
    CHECK(texts.next() ==
          "socket_connections has no effect, and gRPC makes all connections: no socket for the "
          "self-test could be made: Too many open files");
  }
  Record record;
  const auto attempt = connector->connect({server.address()}, 10s, record.events());
  REQUIRE(record.wait_for(1));
  CHECK_FALSE(grpc_connection(record.connection()).is_socket());
}

TEST_CASE("socket_connections: a try that is an hour away ends with its connector",
          "[io][connector][limits]") {
  const actors::GrpcPoller::Hold hold;  // Keeps gRPC, and the descriptors that it needs, alive.
  {
    const Maker before;
  }
  Graveyard graveyard;
  Happened<std::string> texts;
  GrpcConnectorOptions options = trying_again(graveyard, texts, 1h);
  {
    const NoDescriptors none;
    const GrpcConnector connector(std::move(options));
    CHECK(absl::StrContains(texts.next(), "tries again in 3600000 ms (1 of 10)"));
  }
  // The poller's thread, which looks at gRPC's sockets every 10 to 50 ms, ends.
  auto looks = actors::GrpcPoller::looks();
  auto since = std::chrono::steady_clock::now();
  CHECK(eventually([&] {
    const auto now = std::chrono::steady_clock::now();
    const auto seen = actors::GrpcPoller::looks();
    if (std::exchange(looks, seen) != seen) since = now;
    return now - since > 500ms;
  }));
}
#endif

TEST_CASE("socket_connections: a server on an IPv6 address", "[io][connector]") {
  int port = 0;
  EchoServer server(0, [&](grpc::ServerBuilder& builder) {
    builder.AddListeningPort("[::1]:0", grpc::InsecureServerCredentials(), &port);
  });
  if (port == 0) return;  // This system has no IPv6.
  Connected made{Address(absl::StrCat("[::1]:", port))};
  CHECK(made.connection().is_socket());
  grpc::ClientContext context;
  CHECK(call(made.record.connection(), context).ok());
  CHECK(context.peer() == absl::StrCat("ipv6:%5B::1%5D:", port));
}

// As with a SETTINGS frame that comes after 19 of 20 seconds: the attempt waits as long as it may.
TEST_CASE("socket_connections: a server that pauses within SETTINGS is waited for",
          "[io][connector]") {
  MuteSocket server;
  server.listen();
  Maker maker;
  Record record;
  const auto attempt = maker.connector.connect({server.address()}, 3600s, record.events());
  const int taken = server.take_one();
  const std::string settings = http2_settings();
  REQUIRE(taken >= 0);
  REQUIRE(::send(taken, settings.data(), 5, MSG_NOSIGNAL) == 5);
  // An attempt that began later, to a server that says nothing, runs out of time meanwhile.
  MuteSocket other;
  other.listen();
  Record short_record;
  const auto shorter = maker.connector.connect({other.address()}, 300ms, short_record.events());
  REQUIRE(short_record.wait_for(1));
  CHECK(short_record.words() == Words{"failed"});
  CHECK(record.words().empty());
  REQUIRE(::send(taken, settings.data() + 5, settings.size() - 5, MSG_NOSIGNAL) > 0);
  REQUIRE(record.wait_for(1));
  CHECK(record.words() == Words{"connected"});
  CHECK(grpc_connection(record.connection()).is_socket());
  ::close(taken);
}

TEST_CASE("socket_connections: neither descriptors nor memory are left over", "[io][connector]") {
  EchoServer good;
  const TalkingSocket http("HTTP/1.1 400 Bad Request\r\n\r\n");
  const TalkingSocket half(Turns{{"", http2_settings().substr(0, 5)}, kSilence});
  TalkingSocket resetting;
  resetting.reset_after();
  TalkingSocket lost(http2_settings());  // Resets the connection amid the hand-over.
  lost.reset_after();
  const TalkingSocket leaving(Turns{{"", http2_settings() + goaway(0)}, kSilence});
  MuteSocket unanswering;
  unanswering.listen();
  std::vector<actors::Descriptor> backlog;
  for (int i = 0; i < 20; ++i) {
    const auto to = actors::parse_socket_address(unanswering.address().str());
    backlog.push_back(actors::make_socket(to));
    REQUIRE(actors::begin_connect(backlog.back(), to));
  }
  Maker maker;
  const auto once = [&](const Address& address, std::chrono::milliseconds timeout) {
    Record record;
    const auto attempt = maker.connector.connect({address}, timeout, record.events());
    REQUIRE(record.wait_for(1));
    record.forget_connection();
  };
  // Servers to which gRPC connects after a dial, with success or without.
  constexpr std::size_t kOfEach = 8;
  std::vector<std::unique_ptr<TalkingSocket>> silent;
  std::vector<std::unique_ptr<TalkingSocket>> late;
  for (std::size_t i = 0; i < kOfEach; ++i) {
    silent.push_back(std::make_unique<TalkingSocket>(Turns{kSilence}));
    late.push_back(std::make_unique<TalkingSocket>(Turns{{kPreface, http2_settings()}, kSilence}));
  }
  const auto fall_back = [&] {
    Maker hasty(1ms);  // A new one, which remembers no silent server.
    std::vector<Record> records(2 * kOfEach);
    std::vector<std::unique_ptr<actors::Connector::Attempt>> attempts;
    const auto connect = [&](const TalkingSocket& server, std::chrono::milliseconds timeout) {
      attempts.push_back(hasty.connector.connect(
          {Address(server.address())}, timeout, records[attempts.size()].events()));
    };
    for (std::size_t i = 0; i < kOfEach; ++i) {
      connect(*silent[i], 20ms);
      connect(*late[i], 10s);
    }
    for (Record& record : records) {
      REQUIRE(record.wait_for(1));
      record.forget_connection();
    }
  };
  int count = 0;
  const auto round = [&] {
    once(good.address(), 10s);
    once(Address(http.address()), 10s);
    once(Address(resetting.address()), 10s);
    once(Address(lost.address()), 10s);
    once(Address(leaving.address()), 10s);
    once(Address(half.address()), 1ms);
    once(unanswering.address(), 1ms);
    maker.graveyard.clear();
    if (count++ % 15 == 0) fall_back();
  };
  constexpr int kFirstRounds = 300;  // Afterwards the caches of gRPC are full.
  constexpr int kRounds = 3'000;
  constexpr std::size_t kMostGrowth = 500'000;  // Less than 30 bytes for each connection.
  for (int i = 0; i < kFirstRounds; ++i)
    round();
  const auto descriptors = open_descriptors();
  const auto before = heap();
  for (int i = 0; i < kRounds; ++i)
    round();
  CHECK(eventually([&] { return open_descriptors() <= descriptors + 2; }));
  if (before.has_value()) CHECK(eventually([&] { return *heap() <= *before + kMostGrowth; }));
}

}  // namespace signalbox::test
