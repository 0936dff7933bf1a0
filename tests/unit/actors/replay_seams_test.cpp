// SPDX-License-Identifier: Apache-2.0
//
// The outside as a recording has it: the n-th question gets the n-th recorded answer.
#include "actors/record/replay_seams.hpp"

#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "actors/io/ads_transport.hpp"
#include "actors/io/connector.hpp"
#include "actors/io/name_lookup.hpp"
#include "xds/client/discovery_codec.hpp"
#include "xds/record/ads_messages.hpp"

namespace signalbox::actors {
namespace {

using std::chrono::seconds;

constexpr Instant kBegin{std::chrono::hours(1)};
const Address kAddress("10.0.0.1:80");
const absl::Status kRefused = absl::UnavailableError("connection refused");

/// A recording by hand, and what the replayed outside says about it.
struct World {
  explicit World(std::vector<RecordedEvent> events) : time(kBegin) {
    Recording recording;
    recording.events = std::move(events);
    script = make_script(recording, kBegin);
    replay_outside(script, time, 1, environment);
  }

  std::unique_ptr<Connector::Attempt> connect() {
    Connector::Events events;
    events.connected = [this](ConnectionPtr) { say("connected"); };
    events.failed = [this](const absl::Status& why) { say(std::string(why.message())); };
    events.closed = [this](const absl::Status&) { say("closed"); };
    return environment.connector->connect({kAddress}, seconds(20), std::move(events));
  }

  std::unique_ptr<AdsTransport::Stream> open() {
    AdsTransport::Events events;
    events.opened = [this] { say("opened"); };
    events.received = [this](const std::string& bytes) {
      const auto response = xds::read_response(bytes);
      say(response ? response->version : bytes);
    };
    events.written = [this] { say("written"); };
    events.closed = [this](const absl::Status&) { say("closed"); };
    return environment.ads_transports[0]->open(std::move(events));
  }

  void say(const std::string& what) {
    const auto at = std::chrono::duration_cast<seconds>(time.now() - kBegin);
    heard.push_back(std::to_string(at.count()) + " " + what);
  }

  std::vector<std::string> run_until(seconds end) {
    while (time.next() && *time.next() <= kBegin + end)
      time.run_next();
    time.advance_to(kBegin + end);
    return std::exchange(heard, {});
  }

  VirtualTime time;
  std::shared_ptr<Script> script;
  Environment environment;
  std::vector<std::string> heard;
};

using Heard = std::vector<std::string>;

/// A field of a message: its number, and fewer than 128 bytes.
std::string field(int number, const std::string& content) {
  std::string bytes;
  bytes.push_back(static_cast<char>((number << 3) | 2));
  bytes.push_back(static_cast<char>(content.size()));
  return bytes + content;
}

std::string clusters(const std::string& version, const std::vector<std::string>& names) {
  xds::SeenResponse response{ResourceType::kCluster, version, "nonce", {}};
  for (const std::string& name : names) {
    response.resources[name] =
        field(1, "type.googleapis.com/envoy.config.cluster.v3.Cluster") + field(2, field(1, name));
  }
  return xds::encode_response(response);
}

std::string request_of(std::set<std::string> names) {
  xds::DiscoveryRequest request;
  request.type = ResourceType::kCluster;
  request.names = std::move(names);
  return xds::encode(request);
}

}  // namespace

TEST_CASE("replayed connector: each attempt ends as it was recorded, at that time or later",
          "[recording]") {
  World world({{seconds(1), false, ConnectBegan{0, kAddress.str()}},
               {seconds(2), false, ConnectEnded{0, kRefused}},
               {seconds(3), false, ConnectBegan{1, kAddress.str()}},
               {seconds(4), false, ConnectMade{1}},
               {seconds(9), false, ConnectEnded{1, kRefused}}});
  auto attempt = world.connect();
  CHECK(world.run_until(seconds(6)) == Heard{"2 connection refused"});
  attempt = world.connect();  // Later than it was recorded.
  CHECK(world.run_until(seconds(8)) == Heard{"6 connected"});
  CHECK(world.run_until(seconds(10)) == Heard{"9 closed"});
  CHECK(world.script->unmatched == 0);
  attempt = world.connect();
  CHECK(world.run_until(seconds(20)).empty());
  CHECK(world.script->unmatched == 1);
  attempt.reset();  // A destroyed attempt says nothing.
  CHECK(world.run_until(seconds(60)).empty());
}

TEST_CASE(
    "replayed connector: a peer that was down before the segment is down until the next attempt",
    "[recording]") {
  World world({{seconds(0), true, ConnectBegan{0, kAddress.str()}},
               {seconds(0), true, ConnectEnded{0, kRefused}},
               {seconds(5), false, ConnectBegan{1, kAddress.str()}},
               {seconds(6), false, ConnectMade{1}}});
  for (int i = 0; i < 2; ++i) {
    const auto attempt = world.connect();
    CHECK(world.run_until(seconds(i + 1)) == Heard{std::to_string(i) + " connection refused"});
  }
  CHECK(world.run_until(seconds(5)).empty());
  const auto attempt = world.connect();
  CHECK(world.run_until(seconds(7)) == Heard{"6 connected"});
}

TEST_CASE("replayed connector: a subchannel's connection lasts as long as it had one (A105)",
          "[recording]") {
  constexpr std::uint64_t kHolder = 7;
  World world({{seconds(1), false, ConnectBegan{0, kAddress.str(), kHolder}},
               {seconds(1), false, ConnectMade{0}},
               // A second connection. The first one is lost, and a third attempt fails.
               {seconds(2), false, ConnectBegan{1, kAddress.str(), kHolder}},
               {seconds(3), false, ConnectMade{1}},
               {seconds(4), false, ConnectEnded{0, kRefused}},
               {seconds(4), false, ConnectLeft{0}},
               {seconds(5), false, ConnectBegan{2, kAddress.str(), kHolder}},
               {seconds(6), false, ConnectEnded{2, kRefused}},
               {seconds(6), false, ConnectLeft{2}},
               // Another attempt is under way when the last connection is lost.
               {seconds(7), false, ConnectBegan{3, kAddress.str(), kHolder}},
               {seconds(8), false, ConnectEnded{1, kRefused}},
               {seconds(8), false, ConnectLeft{1}},
               {seconds(9), false, ConnectMade{3}},
               {seconds(10), false, ConnectEnded{3, kRefused}}});
  auto attempt = world.connect();
  CHECK(world.run_until(seconds(8)) == Heard{"1 connected", "8 closed"});
  attempt = world.connect();
  CHECK(world.run_until(seconds(11)) == Heard{"9 connected", "10 closed"});
  CHECK(world.script->unmatched == 0);
  attempt = world.connect();
  CHECK(world.script->unmatched == 1);
}

TEST_CASE("replayed connector: connections of different subchannels are different", "[recording]") {
  World world({{seconds(1), false, ConnectBegan{0, kAddress.str(), 7}},
               {seconds(1), false, ConnectMade{0}},
               {seconds(2), false, ConnectBegan{1, kAddress.str(), 8}},
               {seconds(2), false, ConnectMade{1}},
               {seconds(3), false, ConnectLeft{0}},
               {seconds(4), false, ConnectEnded{1, kRefused}},
               {seconds(5), false, ConnectBegan{2, kAddress.str(), 7}},
               {seconds(5), false, ConnectEnded{2, kRefused}}});
  const auto first = world.connect();
  const auto second = world.connect();
  CHECK(world.run_until(seconds(4)) == Heard{"1 connected", "2 connected", "4 closed"});
  const auto third = world.connect();
  CHECK(world.run_until(seconds(6)) == Heard{"5 connection refused"});
}

TEST_CASE("replayed transport: responses wait for read_next(), and the end comes after them",
          "[recording]") {
  World world({{seconds(1), false, StreamBegan{0, 0}},
               {seconds(2), false, StreamOpened{0, 0}},
               {seconds(3), false, StreamReceived{0, 0, "first"}},
               {seconds(4), false, StreamReceived{0, 0, "second"}},
               {seconds(7), false, StreamClosed{0, 0, kRefused}}});
  const auto stream = world.open();
  CHECK(world.run_until(seconds(5)) == Heard{"2 opened", "3 first"});
  stream->send("request");
  stream->read_next();
  CHECK(world.run_until(seconds(6)) == Heard{"5 written", "5 second"});
  CHECK(world.run_until(seconds(8)) == Heard{"7 closed"});
  stream->send("too late");
  CHECK(world.run_until(seconds(9)).empty());
}

TEST_CASE("replayed transport: a carried response comes again when a request names more of it",
          "[recording]") {
  World world({{seconds(0), true, StreamBegan{0, 0}},
               {seconds(0), true, StreamOpened{0, 0}},
               {seconds(0), true, StreamReceived{0, 0, clusters("v1", {"all", "near", "far"})}},
               {seconds(0), true, StreamReceived{0, 0, clusters("v2", {"all", "near"})}},
               {seconds(5), false, StreamReceived{0, 0, clusters("v3", {"all"})}},
               {seconds(9), false, StreamClosed{0, 0, kRefused}}});
  const auto stream = world.open();
  stream->send(request_of({"all"}));
  CHECK(world.run_until(seconds(1)) == Heard{"0 opened", "0 v1", "0 written"});
  stream->read_next();
  CHECK(world.run_until(seconds(2)) == Heard{"1 v2"});
  stream->read_next();
  stream->send(request_of({"all"}));
  stream->send(request_of({"all", "unknown"}));
  CHECK(world.run_until(seconds(3)) == Heard{"2 written", "2 written"});
  stream->send(request_of({"all", "far"}));
  CHECK(world.run_until(seconds(4)) == Heard{"3 written", "3 v1"});
  stream->read_next();
  CHECK(world.run_until(seconds(4)) == Heard{"4 v2"});
  stream->read_next();
  CHECK(world.run_until(seconds(6)) == Heard{"5 v3"});
  stream->read_next();
  stream->send(request_of({"all", "near"}));
  CHECK(world.run_until(seconds(10)) == Heard{"6 written", "9 closed"});
}

TEST_CASE("replayed look-up: the answers in their order, and the last one again", "[recording]") {
  const DnsName name("a.example:80");
  World world({{seconds(1), false, NameAnswered{name, kRefused}},
               {seconds(2), false, NameAnswered{name, std::vector{kAddress}}}});
  NameLookup& lookup = *world.environment.name_lookup;
  CHECK(lookup.resolve(name).status() == kRefused);
  CHECK(lookup.resolve(name).value() == std::vector{kAddress});
  CHECK(lookup.resolve(name).value() == std::vector{kAddress});
  CHECK_FALSE(lookup.resolve(DnsName("b.example:80")).ok());
  CHECK(world.script->unmatched == 1);
}

}  // namespace signalbox::actors
