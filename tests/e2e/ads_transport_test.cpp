// SPDX-License-Identifier: Apache-2.0
//
// The ADS transport over real sockets: its messages, the addresses of servers, keepalive, and the
// end of a transport.
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <signal.h>

#include "actors/io/grpc_ads_transport.hpp"
#include "tests/e2e/ads_peer.hpp"
#include "tests/e2e/flooding_server.hpp"
#include "tests/support/temporary_folder.hpp"
#include "xds/client/discovery_codec.hpp"

namespace signalbox::test {
namespace {

using namespace std::chrono_literals;

actors::GrpcAdsOptions plaintext_to(const std::string& server) {
  actors::GrpcAdsOptions options;
  options.server_uri = server;
  options.credentials =
      actors::make_credentials(xds::InsecureCredentials{}, [](const std::string&) {});
  return options;
}

const char* const kOneCluster =
    "resources:\n"
    "  - {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a,\n"
    "     type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}\n";

}  // namespace

TEST_CASE("ads transport: a message beyond the limit ends the stream, and the text says so",
          "[e2e][ads][B7]") {
  AdsPeer peer({.answer = std::string(1001, 'x')});
  actors::GrpcAdsOptions options = plaintext_to(peer.address());
  options.max_message_bytes = 1000;
  const auto transport = actors::make_grpc_ads_transport(options);
  const absl::Status why = AdsEnd(*transport).closed();
  CHECK(why.code() == absl::StatusCode::kResourceExhausted);
  CHECK_THAT(std::string(why.message()),
             Catch::Contains("must not be longer than 1000 bytes (limit max_message_bytes)") &&
                 Catch::Contains("RuntimeOptions::limits.max_message_bytes") &&
                 Catch::Contains("1001"));

  options.max_message_bytes = 1001;
  CHECK(AdsEnd(*actors::make_grpc_ads_transport(options)).is_answered());
}

TEST_CASE("ads transport: a stream that the server ends with the status OK is closed with OK",
          "[e2e][ads][A78]") {
  const AdsPeer peer({.ends_after_answer = true});
  const auto transport = actors::make_grpc_ads_transport(plaintext_to(peer.address()));
  AdsEnd end(*transport);
  CHECK(end.is_answered());
  end.read_next();
  CHECK(end.closed() == absl::OkStatus());
}

TEST_CASE("ads transport: a message comes when it is asked for, however many were sent",
          "[e2e][ads][B7]") {
  std::atomic<std::size_t> heard = 0;
  AdsPeer peer({.answer = std::string(100'000, 'x'), .hear = [&](const std::string&) { ++heard; }});
  auto transport = actors::make_grpc_ads_transport(plaintext_to(peer.address()));
  std::optional<AdsEnd> end(*transport);
  for (int i = 0; i < 50; ++i)
    end->send("request");
  REQUIRE(end->has_received(1));
  // The server reads the third request only after it has written the second answer. So the second
  // answer is sent, but the client must not get it before read_next().
  REQUIRE(eventually([&] { return heard >= 3; }));
  for (std::size_t count = 1; count < 10; ++count) {
    CHECK(end->received() == count);
    end->read_next();
    REQUIRE(end->has_received(count + 1));
  }
  SECTION("the stream ends with messages that were not asked for") {
    end.reset();
  }
  SECTION("so does the transport") {
    REQUIRE(eventually([&] { return heard >= 12; }));
    transport.reset();
    CHECK(end->received() == 10);
  }
  SECTION("a client that asks for all gets all") {
    for (std::size_t count = 10; count < 51; ++count) {
      end->read_next();
      REQUIRE(end->has_received(count + 1));
    }
  }
}

TEST_CASE("ads transport: a server on a socket of the file system is found, however many slashes",
          "[e2e][ads][A27]") {
  const TemporaryFolder folder;
  const std::string path = folder.path("xds.sock");
  const AdsPeer peer({.address = "unix:" + path});
  for (const char* scheme : {"unix:", "unix://", "unix:///"}) {
    const std::string uri = scheme + path;
    INFO(uri);
    const auto transport = actors::make_grpc_ads_transport(plaintext_to(uri));
    CHECK(AdsEnd(*transport).is_answered());
    CHECK(transport->server() == uri);
  }
}

TEST_CASE("ads transport: keepalive finds a server that was stopped", "[e2e][ads][S11][S7]") {
  const TemporaryFolder folder;
  auto process = start_program({SIGNALBOX_PROGRAM,
                                "serve",
                                "--resources",
                                folder.write("resources.yaml", kOneCluster),
                                "--listen",
                                "127.0.0.1:0"});
  const auto line = process.read_line(kPatience);
  REQUIRE(line.ok());
  actors::GrpcAdsOptions options = plaintext_to(nlohmann::json::parse(*line)["address"]);
  options.keepalive_time = 500ms;
  options.keepalive_timeout = 2s;
  const auto transport = actors::make_grpc_ads_transport(options);
  AdsEnd end(*transport, xds::encode({.type = ResourceType::kCluster, .names = {"a"}}));
  REQUIRE(end.is_answered());

  process.send_signal(SIGSTOP);
  const absl::Status why = end.closed();
  process.send_signal(SIGCONT);
  INFO(why);
  CHECK(why.code() == absl::StatusCode::kUnavailable);
}

TEST_CASE("ads transport: it ends soon, whatever the server floods it with", "[e2e][ads][S11]") {
  // The transport's destructor may wait for kMostWaitForCalls. Closing a socket can take the kernel
  // 15 to 20 s, for which the destructor must not wait. kSoon lies between the two times, with room
  // for a slow machine.
  STATIC_REQUIRE(actors::kMostWaitForCalls <= 2s);
  constexpr auto kSoon = 10s;

  struct Row {
    const char* what;
    std::string frame;
  };

  const auto row = GENERATE(values<Row>({
      {"pings", http2_ping()},
      {"settings", http2_settings()},
      {"nothing, and nothing is read", ""},
  }));
  DYNAMIC_SECTION(row.what) {
    FloodingServer server(row.frame);
    auto transport = actors::make_grpc_ads_transport(plaintext_to(server.address()));
    AdsEnd end(*transport, std::string(1 << 20, 'x'));
    REQUIRE(eventually([&] { return server.is_held_up(); }));
    const auto begun = std::chrono::steady_clock::now();
    transport.reset();
    CHECK(std::chrono::steady_clock::now() - begun < kSoon);
  }
}

TEST_CASE("ads transport: transports of calls that were cancelled together wait together",
          "[e2e][ads][S11]") {
  // If the transports were closed one after the other, 40 of them would take 20 s.
  constexpr int kTransports = 40;
  constexpr auto kSoon = 10s;
  STATIC_REQUIRE(kTransports * actors::kMostWaitForCalls >= 2 * kSoon);
  FloodingServer server(http2_ping());
  std::vector<std::shared_ptr<actors::AdsTransport>> transports;
  std::vector<std::unique_ptr<AdsEnd>> ends;
  for (int i = 0; i < kTransports; ++i) {
    transports.push_back(actors::make_grpc_ads_transport(plaintext_to(server.address())));
    ends.push_back(std::make_unique<AdsEnd>(*transports.back(), std::string(1 << 20, 'x')));
  }
  REQUIRE(eventually([&] { return server.held_up() == kTransports; }));
  ends.clear();
  const auto begun = std::chrono::steady_clock::now();
  transports.clear();
  CHECK(std::chrono::steady_clock::now() - begun < kSoon);
}

TEST_CASE("ads transport: a server that complains of pings is pinged half as often each time",
          "[e2e][ads][S11][A8]") {
  AdsPeer strict({.more = [](grpc::ServerBuilder& builder) {
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 3'600'000);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 1);
  }});
  actors::GrpcAdsOptions options = plaintext_to(strict.address());
  options.keepalive_time = 1s;  // gRPC sends pings at most once a second.
  const auto transport = actors::make_grpc_ads_transport(options);
  // The server ends the stream at the second early ping, so a stream lives for two intervals at
  // least. A slow machine only makes that longer. The transport doubles the interval after the
  // first stream. Without that, the second stream would end in less than four seconds.
  for (const auto interval : {1s, 2s}) {
    const auto begun = std::chrono::steady_clock::now();
    AdsEnd end(*transport);
    REQUIRE(end.is_answered());
    const absl::Status why = end.closed();
    CHECK(why == absl::UnavailableError("Too many pings"));
    CHECK(std::chrono::steady_clock::now() - begun >= 2 * interval);
  }
}

}  // namespace signalbox::test
