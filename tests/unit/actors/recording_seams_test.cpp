// SPDX-License-Identifier: Apache-2.0
//
// What the recording seams note, and what they do not.
#include "actors/record/recording_seams.hpp"

#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "actors/io/ads_transport.hpp"
#include "actors/io/name_lookup.hpp"
#include "tests/support/fake_prober.hpp"
#include "tests/support/temporary_folder.hpp"
#include "xds/client/discovery_codec.hpp"
#include "xds/record/codec.hpp"

namespace signalbox::actors {
namespace {

using Catch::Matchers::Contains;

const absl::Status kLost = absl::UnavailableError("reset by peer");

/// A control plane that says nothing.
class SilentTransport final : public AdsTransport {
 public:
  std::unique_ptr<Stream> open(Events) override { return std::make_unique<SilentStream>(*this); }

  const std::string& server() const override { return name_; }

  std::vector<std::string> sent;

 private:
  class SilentStream final : public Stream {
   public:
    explicit SilentStream(SilentTransport& transport) : transport_(transport) {}

    void send(std::string bytes) override { transport_.sent.push_back(std::move(bytes)); }

    void read_next() override {}

   private:
    SilentTransport& transport_;
  };

  const std::string name_ = "plane";
};

/// Its attempts say what the test tells them to.
class ToldConnector final : public Connector {
 public:
  std::unique_ptr<Attempt> connect(const Peer&, Duration, Events events) override {
    begun.push_back(std::move(events));
    return std::make_unique<Attempt>();
  }

  std::vector<Events> begun;
};

/// Knows one name.
class OneNameLookup final : public NameLookup {
 public:
  absl::StatusOr<std::vector<Address>> resolve(const DnsName& name) override {
    if (name != DnsName("a.example:80")) return kLost;
    return std::vector{Address("10.0.0.1:80")};
  }
};

/// A policy that counts what it is asked.
class CountedAsks final : public AskTarget {
 public:
  void tell(const PickAsk&) const override { ++count; }

  mutable int count = 0;
};

/// What is behind the recording seams.
struct RealOutside {
  const std::shared_ptr<SilentTransport> transport = std::make_shared<SilentTransport>();
  const std::shared_ptr<ToldConnector> connector = std::make_shared<ToldConnector>();
  const std::shared_ptr<test::FakeProber> prober = std::make_shared<test::FakeProber>();
};

/// What `act` does over recording seams, as bytes of a file.
template <typename Act>
std::string recorded(Act act) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("orders.rec");
  RecorderOptions options;
  options.path = path;
  options.max_bytes = std::size_t{1} << 20U;
  options.complain = [](const std::string&) {};
  options.count_dropped = [](std::uint64_t) {};
  options.count_late = [] {};
  auto recorder = Recorder::start(std::move(options));
  REQUIRE(recorder.ok());
  const RealOutside real;
  Environment environment;
  environment.ads_transports = {real.transport};
  environment.connector = real.connector;
  environment.health_prober = real.prober;
  environment.name_lookup = std::make_shared<OneNameLookup>();
  record_outside(*recorder, environment);
  act(environment, real);
  (*recorder)->finish();
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<OutsideEvent> events_in(const std::string& bytes) {
  const auto read = xds::read_recording(bytes, "orders.rec");
  REQUIRE(read.ok());
  std::vector<OutsideEvent> events;
  for (const RecordedEvent& event : read->recording.events)
    events.push_back(event.what);
  return events;
}

}  // namespace

TEST_CASE("recording transport: names and answers of requests are noted, and nothing else of them",
          "[recording]") {
  const std::string bytes = recorded([](Environment& environment, const RealOutside& real) {
    const auto stream = environment.ads_transports[0]->open({});
    xds::DiscoveryRequest request;
    request.type = ResourceType::kCluster;
    request.names = {"c"};
    request.node = "\x0a\x06secret";  // The field `id`.
    stream->send(xds::encode(request));
    request.node = "";
    request.nonce = "1";
    stream->send(xds::encode(request));
    request.names = {"c", "d"};
    request.nonce = "2";
    request.rejection = "secret";
    stream->send(xds::encode(request));
    stream->send("no request");
    CHECK(real.transport->sent.size() == 4);
    CHECK(real.transport->sent[2] == xds::encode(request));
  });
  constexpr auto kCds = ResourceType::kCluster;
  using Names = std::vector<std::string>;
  CHECK(events_in(bytes) ==
        std::vector<OutsideEvent>{StreamBegan{0, 0},
                                  StreamAsked{0, 0, kCds, "", false, Names{"c"}},
                                  StreamAsked{0, 0, kCds, "1", false, {}},
                                  StreamAsked{0, 0, kCds, "2", true, Names{"c", "d"}},
                                  StreamLeft{0, 0}});
  CHECK_THAT(bytes, !Contains("secret"));
}

TEST_CASE("recording connector: an attempt names its peer, its target and its subchannel (A105)",
          "[recording]") {
  int heard = 0;
  const std::string bytes = recorded([&](Environment& environment, const RealOutside& real) {
    const auto connect = [&](UpstreamTlsPtr tls, const std::string& authority) {
      Connector::Events events;
      events.connected = [&](ConnectionPtr) { ++heard; };
      events.failed = events.closed = [&](const absl::Status&) { ++heard; };
      return environment.connector->connect({.address = Address("10.0.0.1:80"),
                                             .tls = std::move(tls),
                                             .authority = authority,
                                             .holder = 77},
                                            std::chrono::seconds(1),
                                            std::move(events));
    };
    const auto lost = connect(nullptr, "orders");
    real.connector->begun[0].connected(nullptr);
    real.connector->begun[0].closed(kLost);
    const auto failed = connect(nullptr, "carts");
    real.connector->begun[1].failed(kLost);
    connect(std::make_shared<const UpstreamTls>(), "orders");
  });
  CHECK(heard == 3);
  CHECK(events_in(bytes) == std::vector<OutsideEvent>{ConnectBegan{0, "10.0.0.1:80 for orders", 77},
                                                      ConnectMade{0},
                                                      ConnectEnded{0, kLost},
                                                      ConnectBegan{1, "10.0.0.1:80 for carts", 77},
                                                      ConnectEnded{1, kLost},
                                                      ConnectBegan{2, "10.0.0.1:80 as orders", 77},
                                                      ConnectLeft{2},
                                                      ConnectLeft{1},
                                                      ConnectLeft{0}});
}

TEST_CASE("recording prober: an answer names its peer, its target and its check", "[recording]") {
  std::vector<ProbeOutcome> heard;
  const std::string bytes = recorded([&](Environment& environment, const RealOutside& real) {
    HealthCheck check;
    check.probe = HealthCheck::Http{.path = "/healthy"};
    check.interval = std::chrono::nanoseconds(5);
    const auto probe = environment.health_prober->prepare(
        {{.address = Address("10.0.0.1:80"), .authority = "orders"}, ClusterName("c")}, check);
    probe->begin([&](const ProbeAnswer& answer) { heard.push_back(answer.outcome); });
    real.prober->answer("10.0.0.1:80", ProbeOutcome::kFailed, "status 500");
  });
  CHECK(heard == std::vector{ProbeOutcome::kFailed});
  CHECK(events_in(bytes) == std::vector<OutsideEvent>{ProbeAnswered{
                                "10.0.0.1:80 for orders of c by http /healthy every 5",
                                ProbeOutcome::kFailed,
                                "status 500",
                                false}});
}

TEST_CASE("recording look-up: addresses and errors are noted", "[recording]") {
  const DnsName known("a.example:80");
  const DnsName unknown("b.example:80");
  const std::string bytes = recorded([&](Environment& environment, const RealOutside&) {
    CHECK(environment.name_lookup->resolve(known).ok());
    CHECK(environment.name_lookup->resolve(unknown).status() == kLost);
  });
  CHECK(events_in(bytes) ==
        std::vector<OutsideEvent>{NameAnswered{known, std::vector{Address("10.0.0.1:80")}},
                                  NameAnswered{unknown, kLost}});
}

TEST_CASE("recording asks: each reaches its policy, and only the first of many equal ones is noted",
          "[recording]") {
  constexpr int kEqual = 100;
  const PolicyPath path("orders/ring");
  const PickAsk first{PickAsk::Kind::kConnect, Address("10.0.0.1:80")};
  const PickAsk second{PickAsk::Kind::kConnect, Address("10.0.0.2:80")};
  const auto policy = std::make_shared<const CountedAsks>();
  const std::string bytes = recorded([&](Environment& environment, const RealOutside&) {
    const auto asks = environment.ask_relay->relay("xds:///orders", path, policy);
    for (const PickAsk& ask : {first, second, first})
      asks->tell(ask);
    for (int i = 1; i < kEqual; ++i)
      asks->tell(first);
  });
  CHECK(policy->count == kEqual + 2);
  const auto events = events_in(bytes);
  REQUIRE(events.size() >= 3);
  CHECK(events.size() < kEqual);  // On a slow machine some of the equal ones are noted, too.
  CHECK(events[0] == OutsideEvent(PolicyAsked{"xds:///orders", path, first}));
  CHECK(events[1] == OutsideEvent(PolicyAsked{"xds:///orders", path, second}));
  CHECK(events[2] == OutsideEvent(PolicyAsked{"xds:///orders", path, first}));
}

TEST_CASE("recording asks: equal ones are noted again after 50 ms", "[recording]") {
  const PickAsk ask{PickAsk::Kind::kConnect, Address("10.0.0.1:80")};
  const auto policy = std::make_shared<const CountedAsks>();
  const std::string bytes = recorded([&](Environment& environment, const RealOutside&) {
    const auto asks =
        environment.ask_relay->relay("xds:///orders", PolicyPath("orders/ring"), policy);
    asks->tell(ask);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    while (std::chrono::steady_clock::now() < end)
      asks->tell(ask);
    asks->tell(ask);
  });
  CHECK(events_in(bytes).size() >= 2);
}

}  // namespace signalbox::actors
