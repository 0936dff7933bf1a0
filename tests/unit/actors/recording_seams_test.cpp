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
#include "tests/support/temporary_folder.hpp"
#include "xds/client/discovery_codec.hpp"
#include "xds/record/codec.hpp"

namespace signalbox::actors {
namespace {

using Catch::Matchers::Contains;

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

class SilentConnector final : public Connector {
 public:
  std::unique_ptr<Attempt> connect(const Peer&, Duration, Events) override {
    return std::make_unique<Attempt>();
  }
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
  Environment environment;
  const auto transport = std::make_shared<SilentTransport>();
  environment.ads_transports = {transport};
  environment.connector = std::make_shared<SilentConnector>();
  record_outside(*recorder, environment);
  act(environment, *transport);
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
  const std::string bytes = recorded([](Environment& environment, SilentTransport& transport) {
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
    CHECK(transport.sent.size() == 4);
    CHECK(transport.sent[2] == xds::encode(request));
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

TEST_CASE("recording connector: an attempt names its subchannel (A105)", "[recording]") {
  const std::string bytes = recorded([](Environment& environment, SilentTransport&) {
    environment.connector->connect(
        {.address = Address("10.0.0.1:80"), .holder = 77}, std::chrono::seconds(1), {});
  });
  CHECK(events_in(bytes) ==
        std::vector<OutsideEvent>{ConnectBegan{0, "10.0.0.1:80", 77}, ConnectLeft{0}});
}

}  // namespace signalbox::actors
