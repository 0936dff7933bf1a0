// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/server.hpp"

#include <chrono>
#include <string>

#include <catch2/catch.hpp>

#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/fleet/scenario.hpp"
#include "xds/type_url.hpp"

namespace signalbox::fleet {
namespace {

using namespace std::chrono_literals;

// A server with one connection, and the number of responses that it has sent there.
class Served {
 public:
  Served() { server_.dial(kConnection); }

  void publish() { server_.publish(ResourceType::kCluster); }

  // A request of the connection. Without a nonce it is the first one of its type.
  void ask(const std::string& nonce) {
    envoy::service::discovery::v3::DiscoveryRequest request;
    request.set_type_url(std::string(xds::type_url_of(ResourceType::kCluster)));
    request.set_response_nonce(nonce);
    server_.receive(kConnection, request.SerializeAsString());
  }

  // After all work is done. The nonces of the responses are "1", "2" and so on.
  int responses() {
    while (clock_.next())
      clock_.run_next();
    return responses_;
  }

 private:
  static constexpr ConnectionId kConnection{.client = 0, .number = 1};

  testing::FakeClock clock_{Instant()};
  Record record_;
  int responses_ = 0;
  Server server_{
      clock_, record_, 1000, [this](ConnectionId /*connection*/, const FromServer& told) {
        if (std::holds_alternative<Response>(told)) ++responses_;
      }};
};

}  // namespace

TEST_CASE("fleet server: a version waits for the answer to the last one, and an old nonce is none",
          "[fleet]") {
  Served served;
  served.ask("");
  CHECK(served.responses() == 1);
  served.ask("1");
  CHECK(served.responses() == 1);
  served.publish();
  CHECK(served.responses() == 2);
  served.publish();
  CHECK(served.responses() == 2);
  served.ask("1");
  CHECK(served.responses() == 2);
  served.ask("2");
  CHECK(served.responses() == 3);
}

TEST_CASE("fleet server: a message takes ten times as long after `slow`, and as before otherwise",
          "[fleet]") {
  for (const Scenario& scenario : scenarios()) {
    INFO(scenario.name);
    testing::FakeClock clock{Instant()};
    Record record;
    Instant accepted;
    Server server{clock, record, 1000, [&](ConnectionId /*connection*/, const FromServer& told) {
                    if (std::holds_alternative<Accepted>(told)) accepted = clock.now();
                  }};
    for (const Step& step : scenario.steps)
      step.take(server, 1000);
    server.dial({.client = 0, .number = 1});
    clock.run_next();
    CHECK(accepted - Instant() == (scenario.name == "slow" ? 10ms : 1ms));
  }
}

}  // namespace signalbox::fleet
