// SPDX-License-Identifier: Apache-2.0
//
// Probes over real sockets: the request of each kind of probe, and its verdict on the answer.
#include "actors/io/health_prober.hpp"

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include <catch2/catch.hpp>
#include <grpcpp/health_check_service_interface.h>

#include "actors/io/grpc_connector.hpp"
#include "tests/e2e/attempt_record.hpp"
#include "tests/e2e/cut_headers.hpp"
#include "tests/e2e/echo_server.hpp"
#include "tests/support/happened.hpp"
#include "tests/support/no_descriptors.hpp"
#include "tests/support/talking_socket.hpp"

namespace signalbox::actors {
namespace {

using namespace std::chrono_literals;
using test::NoDescriptors;
using test::TalkingSocket;

/// A prober, and its answers.
class Probing {
 public:
  Probing() {
    GrpcConnectorOptions options;
    options.credentials = grpc::InsecureChannelCredentials();
    options.sockets = environment_allows_sockets();
    options.retire = [](std::unique_ptr<const Tracked>) {};
    connector_ = std::make_shared<GrpcConnector>(std::move(options));
    auto made = make_health_prober(connector_);
    REQUIRE(made.ok());
    prober_ = *std::move(made);
  }

  ProbeAnswer probe(const std::string& address,
                    const HealthCheck& check,
                    const std::string& cluster = "orders") {
    probe_ = prober_->prepare({{Address(address)}, ClusterName(cluster)}, check);
    return again();
  }

  /// Begins the same probe once more, and waits for its answer.
  ProbeAnswer again() {
    begin();
    return answers_->next();
  }

  void begin() {
    probe_->begin([answers = answers_](ProbeAnswer answer) { answers->add(std::move(answer)); });
  }

  void give_up() { probe_ = nullptr; }

  HealthProber& prober() { return *prober_; }

 private:
  std::shared_ptr<GrpcConnector> connector_;
  std::shared_ptr<HealthProber> prober_;
  std::shared_ptr<test::Happened<ProbeAnswer>> answers_ =
      std::make_shared<test::Happened<ProbeAnswer>>();
  std::unique_ptr<HealthProber::Probe> probe_;
};

HealthCheck by(decltype(HealthCheck::probe) probe, Duration timeout = 10s) {
  HealthCheck check;
  check.probe = std::move(probe);
  check.timeout = timeout;
  return check;
}

HealthCheck::Http http(std::string path = "/up") {
  HealthCheck::Http made;
  made.path = std::move(path);
  return made;
}

std::string status(const std::string& text) {
  return "HTTP/1.1 " + text + "\r\ncontent-length: 0\r\n\r\n";
}

const std::string kEndOfRequest = "\r\n\r\n";

}  // namespace

TEST_CASE("health_prober: HTTP asks for the path, and reads the status", "[io][health_prober]") {
  using Http = HealthCheck::Http;

  struct Row {
    std::string answer;
    ProbeOutcome outcome;
    std::string why;
    Http check = http();
  };

  const Http wide{.path = "/up", .expected = {{200, 300}, {404, 405}}, .retriable = {{500, 504}}};
  const auto row = GENERATE_COPY(values<Row>({
      {status("200 OK"), ProbeOutcome::kPassed, ""},
      {status("200"), ProbeOutcome::kPassed, ""},
      {"HTTP/1.0 200 OK\r\n", ProbeOutcome::kPassed, ""},
      {status("103 Early Hints") + status("200 OK"), ProbeOutcome::kPassed, ""},
      {status("503 Service Unavailable"), ProbeOutcome::kRefused, "the answer is 503"},
      {status("201 Created"), ProbeOutcome::kRefused, "the answer is 201"},
      {status("101 Switching"), ProbeOutcome::kRefused, "the answer is 101"},
      {status("201 Created"), ProbeOutcome::kPassed, "", wide},
      {status("404 Not Found"), ProbeOutcome::kPassed, "", wide},
      {status("503 Service Unavailable"), ProbeOutcome::kFailed, "the answer is 503", wide},
      {status("504 Timeout"), ProbeOutcome::kRefused, "the answer is 504", wide},
      {"220 smtp\r\n", ProbeOutcome::kFailed, "the answer is not HTTP/1.1"},
      {"HTTP/1.1 2000 OK\r\n", ProbeOutcome::kFailed, "the answer is not HTTP/1.1"},
      {"HTTP/2 200\r\n", ProbeOutcome::kFailed, "the answer is not HTTP/1.1"},
      {"HTTP/1.1 200", ProbeOutcome::kFailed, "the connection was closed without the answer"},
      {"", ProbeOutcome::kFailed, "the connection was closed without the answer"},
  }));
  INFO(row.answer);
  TalkingSocket server(row.answer, kEndOfRequest);
  Probing probing;
  const ProbeAnswer answer = probing.probe(server.address(), by(row.check));
  CHECK(answer.outcome == row.outcome);
  CHECK(answer.why == row.why);
  CHECK_FALSE(answer.delayed);
}

TEST_CASE("health_prober: HTTP names the host of the check, else the cluster, else the address",
          "[io][health_prober]") {
  TalkingSocket server(status("200 OK"), kEndOfRequest);
  Probing probing;
  HealthCheck::Http check = http("/up?a=b");
  probing.probe(server.address(), by(check));
  CHECK(server.heard() ==
        "GET /up?a=b HTTP/1.1\r\nhost: orders\r\nuser-agent: signalbox-health-check\r\n"
        "connection: close\r\n\r\n");
  probing.probe(server.address(), by(check), "\xc3\xa4");
  CHECK(absl::StrContains(server.heard(), "host: " + server.address() + "\r\n"));
  check.host = "h";
  probing.probe(server.address(), by(check));
  CHECK(absl::StrContains(server.heard(), "host: h\r\n"));
}

TEST_CASE("health_prober: TCP connects, says something, and looks for the answer",
          "[io][health_prober]") {
  using Tcp = HealthCheck::Tcp;
  TalkingSocket server("xxPONGyyOKzz", "PING");
  Probing probing;
  CHECK(probing.probe(server.address(), by(Tcp{"PING", {"PONG", "OK"}})).outcome ==
        ProbeOutcome::kPassed);
  CHECK(probing.again().outcome == ProbeOutcome::kPassed);
  const ProbeAnswer turned = probing.probe(server.address(), by(Tcp{"PING", {"OK", "PONG"}}));
  CHECK(turned.outcome == ProbeOutcome::kFailed);
  CHECK(turned.why == "the connection was closed without the answer");
  CHECK(probing.probe(server.address(), by(Tcp{"PING", {}})).outcome == ProbeOutcome::kPassed);
  CHECK(probing.probe(server.address(), by(Tcp{})).outcome == ProbeOutcome::kPassed);
  server.close();
  const ProbeAnswer refused = probing.probe(server.address(), by(Tcp{}));
  CHECK(refused.outcome == ProbeOutcome::kFailed);
  CHECK(refused.why == "Connection refused");
  CHECK(probing.probe("backend:80", by(Tcp{})).why == "its address is no IP address with a port");
}

TEST_CASE("health_prober: what this process lacks says nothing of the endpoint",
          "[io][health_prober]") {
  TalkingSocket server("", "");
  Probing probing;
  REQUIRE(probing.probe(server.address(), by(HealthCheck::Tcp{})).outcome == ProbeOutcome::kPassed);
  ProbeAnswer answer;
  {
    const NoDescriptors none;
    answer = probing.again();
  }
  CHECK(answer.outcome == ProbeOutcome::kUndone);
  CHECK(answer.why == "Too many open files");
  CHECK(probing.again().outcome == ProbeOutcome::kPassed);
}

TEST_CASE("health_prober: an answer that is too long is none", "[io][health_prober][limits]") {
  TalkingSocket server(std::string(100'000, 'x') + "OK", "");
  Probing probing;
  const ProbeAnswer answer = probing.probe(server.address(), by(HealthCheck::Tcp{"", {"OK"}}));
  CHECK(answer.outcome == ProbeOutcome::kFailed);
}

TEST_CASE("health_prober: nobody waits longer than the timeout", "[io][health_prober]") {
  Probing probing;
  test::MuteSocket mute;
  mute.listen();
  SECTION("by HTTP") {
    const ProbeAnswer answer = probing.probe(mute.address().str(), by(http(), 50ms));
    CHECK(answer.outcome == ProbeOutcome::kFailed);
    CHECK(answer.why == "no answer in time");
  }
  SECTION("by gRPC, which waits for the server's settings") {
    const ProbeAnswer answer = probing.probe(mute.address().str(), by(HealthCheck::Grpc{}, 50ms));
    CHECK(answer.outcome == ProbeOutcome::kFailed);
    CHECK(absl::StrContains(answer.why, "was not made within 50 ms"));
  }
}

TEST_CASE("health_prober: who is given up is heard of no more, and the prober may end",
          "[io][health_prober]") {
  test::MuteSocket mute;
  mute.listen();
  Probing probing;
  const auto kind = GENERATE(0, 1);
  const HealthCheck check =
      kind == 0 ? by(HealthCheck::Tcp{"", {"x"}}, 3600s) : by(HealthCheck::Grpc{}, 3600s);
  const auto probe = probing.prober().prepare({{mute.address()}, ClusterName("c")}, check);
  probe->begin([](const ProbeAnswer&) {});
}

TEST_CASE("health_prober: gRPC asks the health service", "[io][health_prober]") {
  using Grpc = HealthCheck::Grpc;
  grpc::EnableDefaultHealthCheckService(true);
  test::EchoServer server;
  grpc::EnableDefaultHealthCheckService(false);
  auto* const health = server.health();
  REQUIRE(health != nullptr);
  Probing probing;
  const std::string address = server.address().str();
  CHECK(probing.probe(address, by(Grpc{})).outcome == ProbeOutcome::kPassed);
  health->SetServingStatus(false);
  const ProbeAnswer refused = probing.again();
  CHECK(refused.outcome == ProbeOutcome::kRefused);
  CHECK(refused.why == "the server does not say SERVING");
  health->SetServingStatus("orders", true);
  CHECK(probing.probe(address, by(Grpc{"orders", ""})).outcome == ProbeOutcome::kPassed);
  CHECK(probing.probe(address, by(Grpc{"unknown", ""})).outcome == ProbeOutcome::kRefused);
  CHECK(probing.probe(address, by(Grpc{"orders", ""}), "\xc3\xa4").outcome ==
        ProbeOutcome::kPassed);
  server.stop();
  // The GOAWAY may meet one probe, which then has not reached the server.
  ProbeOutcome outcome = probing.again().outcome;
  if (outcome == ProbeOutcome::kUndone) outcome = probing.again().outcome;
  CHECK(outcome == ProbeOutcome::kFailed);
  CHECK(probing.again().outcome == ProbeOutcome::kFailed);
}

// The server keeps each connection open after its GOAWAY.
TEST_CASE("health_prober: a GOAWAY ends the connection, and only a second one in a row counts",
          "[io][health_prober][A6]") {
  const TalkingSocket server(
      std::vector<TalkingSocket::Turn>{{"", test::http2_settings()},
                                       {"/grpc.health.v1.Health/Check", test::goaway(0)},
                                       {"what no client says", ""}});
  Probing probing;
  const ProbeAnswer first = probing.probe(server.address(), by(HealthCheck::Grpc{}));
  CHECK(first.outcome == ProbeOutcome::kUndone);
  CHECK(absl::StrContains(first.why, "GOAWAY"));
  // A server that sends GOAWAY again and again is no server that restarts.
  CHECK(test::eventually([&] {
    CHECK(probing.again().outcome == ProbeOutcome::kFailed);
    return server.taken() > 1;
  }));
}

TEST_CASE("health_prober: a server without a health service refuses", "[io][health_prober]") {
  test::EchoServer server;
  Probing probing;
  CHECK(probing.probe(server.address().str(), by(HealthCheck::Grpc{})).outcome ==
        ProbeOutcome::kRefused);
}

}  // namespace signalbox::actors
