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
#include "actors/io/health_prober.hpp"
#include "actors/io/name_lookup.hpp"
#include "actors/record/recording_seams.hpp"
#include "xds/client/discovery_codec.hpp"
#include "xds/record/ads_messages.hpp"

namespace signalbox::actors {
namespace {

using std::chrono::seconds;

constexpr Instant kBegin{std::chrono::hours(1)};
const Address kAddress("10.0.0.1:80");

std::string peer_of(const std::string& address, const std::string& authority) {
  return peer_text({.address = Address(address), .authority = authority});
}

const std::string kPeer = peer_of("10.0.0.1:80", "orders");
const std::string kPeerOfCarts = peer_of("10.0.0.1:80", "carts");
const absl::Status kRefused = absl::UnavailableError("connection refused");
const OutsideEvent kOther = TargetWoken{"xds:///other"};  // Concerns no seam.

/// A recording by hand, and what the replayed outside says about it.
struct World {
  explicit World(std::vector<RecordedEvent> events) : time(kBegin) {
    Recording recording;
    recording.events = std::move(events);
    script = make_script(recording, kBegin);
    replay_outside(script, time, {"xds.example:443"}, environment);
    asks = std::make_shared<ReplayedAsks>(script, time);
  }

  /// `label`: what it says begins with this.
  std::unique_ptr<Connector::Attempt> connect(const Address& address = kAddress,
                                              const std::string& authority = "orders",
                                              const std::string& label = "") {
    Connector::Events events;
    events.connected = [this, label](ConnectionPtr) { say(label + "connected"); };
    events.failed = [this, label](const absl::Status& why) {
      say(label + std::string(why.message()));
    };
    events.closed = [this, label](const absl::Status&) { say(label + "closed"); };
    return environment.connector->connect(
        {.address = address, .authority = authority}, seconds(20), std::move(events));
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
  std::shared_ptr<ReplayedAsks> asks;
  std::vector<std::string> heard;
};

/// A policy of the target xds:///orders that connects when it is asked.
struct AskedPolicy final : public AskTarget {
  AskedPolicy(World& all, const std::string& path) : world(all), name(path) {}

  void tell(const PickAsk& ask) const override {
    world.say(name + " " + ask.address.str());
    attempts.push_back(world.connect(ask.address, "orders", name + " "));
  }

  World& world;
  const std::string name;
  mutable std::vector<std::unique_ptr<Connector::Attempt>> attempts;
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
  World world({{seconds(1), false, ConnectBegan{0, kPeer}},
               {seconds(2), false, ConnectEnded{0, kRefused}},
               {seconds(3), false, ConnectBegan{1, kPeer}},
               {seconds(4), false, ConnectMade{1}},
               {seconds(9), false, ConnectEnded{1, kRefused}},
               {seconds(10), false, kOther}});
  auto attempt = world.connect();
  CHECK(world.run_until(seconds(6)) == Heard{"2 connection refused"});
  attempt = world.connect();  // Later than it was recorded.
  CHECK(world.run_until(seconds(8)) == Heard{"6 connected"});
  CHECK(world.run_until(seconds(10)) == Heard{"9 closed"});
  CHECK(world.script->unmatched == 0);
  attempt = world.connect();
  CHECK(world.run_until(seconds(20)).empty());
  attempt = world.connect();  // After the recording's end.
  CHECK(world.script->unmatched == 1);
  attempt.reset();  // A destroyed attempt says nothing.
  CHECK(world.run_until(seconds(60)).empty());
}

TEST_CASE(
    "replayed connector: a peer that was down before the segment is down until the next attempt",
    "[recording]") {
  World world({{seconds(0), true, ConnectBegan{0, kPeer}},
               {seconds(0), true, ConnectEnded{0, kRefused}},
               {seconds(5), false, ConnectBegan{1, kPeer}},
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
  World world({{seconds(1), false, ConnectBegan{0, kPeer, kHolder}},
               {seconds(1), false, ConnectMade{0}},
               // A second connection. The first one is lost, and a third attempt fails.
               {seconds(2), false, ConnectBegan{1, kPeer, kHolder}},
               {seconds(3), false, ConnectMade{1}},
               {seconds(4), false, ConnectEnded{0, kRefused}},
               {seconds(4), false, ConnectLeft{0}},
               {seconds(5), false, ConnectBegan{2, kPeer, kHolder}},
               {seconds(6), false, ConnectEnded{2, kRefused}},
               {seconds(6), false, ConnectLeft{2}},
               // Another attempt is under way when the last connection is lost.
               {seconds(7), false, ConnectBegan{3, kPeer, kHolder}},
               {seconds(8), false, ConnectEnded{1, kRefused}},
               {seconds(8), false, ConnectLeft{1}},
               {seconds(9), false, ConnectMade{3}},
               {seconds(10), false, ConnectEnded{3, kRefused}},
               {seconds(11), false, kOther}});
  auto attempt = world.connect();
  CHECK(world.run_until(seconds(8)) == Heard{"1 connected", "8 closed"});
  attempt = world.connect();
  CHECK(world.run_until(seconds(11)) == Heard{"9 connected", "10 closed"});
  CHECK(world.script->unmatched == 0);
  attempt = world.connect();
  CHECK(world.script->unmatched == 1);
}

TEST_CASE("replayed connector: connections of different subchannels are different", "[recording]") {
  World world({{seconds(1), false, ConnectBegan{0, kPeer, 7}},
               {seconds(1), false, ConnectMade{0}},
               {seconds(2), false, ConnectBegan{1, kPeer, 8}},
               {seconds(2), false, ConnectMade{1}},
               {seconds(3), false, ConnectLeft{0}},
               {seconds(4), false, ConnectEnded{1, kRefused}},
               {seconds(5), false, ConnectBegan{2, kPeer, 7}},
               {seconds(5), false, ConnectEnded{2, kRefused}}});
  const auto first = world.connect();
  const auto second = world.connect();
  CHECK(world.run_until(seconds(4)) == Heard{"1 connected", "2 connected", "4 closed"});
  const auto third = world.connect();
  CHECK(world.run_until(seconds(6)) == Heard{"5 connection refused"});
}

TEST_CASE("replayed connector: what the recorded runtime kept for a session is there again",
          "[recording]") {
  // The replayed runtime gives the connection up at 5 s, and asks for it again.
  const RecordedEvent again_began{seconds(7), false, ConnectBegan{1, kPeer}};
  const RecordedEvent again_made{seconds(7), false, ConnectMade{1}};
  const RecordedEvent at_once_began{seconds(5), false, ConnectBegan{1, kPeer}};
  const RecordedEvent at_once_refused{seconds(9), false, ConnectEnded{1, kRefused}};

  struct Row {
    const char* name;
    std::vector<RecordedEvent> after;  // What the recorded runtime did after 4 s.
    std::string answer;
    seconds again = seconds(8);
  };

  const auto row = GENERATE_REF(values<Row>({
      {"kept to the end", {}, "8 connected"},
      {"kept until the recording stopped", {{seconds(30), false, ConnectLeft{0}}}, "8 connected"},
      {"given up soon after, and not replaced",
       {{seconds(6), false, ConnectLeft{0}}},
       "5 connected",
       seconds(5)},
      {"replaced by another",
       {{seconds(6), false, ConnectLeft{0}}, again_began, {seconds(9), false, ConnectMade{1}}},
       "9 connected",
       seconds(5)},
      {"kept beside another attempt, which was due at once",
       {at_once_began, at_once_refused},
       "9 connection refused",
       seconds(5)},
      {"lost meanwhile, and made again",
       {{seconds(7), false, ConnectEnded{0, kRefused}}, again_began, again_made},
       "8 connected"},
      {"released by a sweep, and made again",
       {{seconds(7), false, ConnectLeft{0}}, again_began, again_made},
       "8 connected"},
  }));
  INFO(row.name);
  std::vector<RecordedEvent> events = {{seconds(1), false, ConnectBegan{0, kPeer}},
                                       {seconds(2), false, ConnectMade{0}}};
  events.insert(events.end(), row.after.begin(), row.after.end());
  World world(std::move(events));
  auto attempt = world.connect();
  CHECK(world.run_until(seconds(5)) == Heard{"2 connected"});
  attempt.reset();
  CHECK(world.run_until(row.again).empty());
  attempt = world.connect();
  CHECK(world.run_until(seconds(10)) == Heard{row.answer});
  CHECK(world.script->unmatched == 0);
}

TEST_CASE("replayed connector: an attempt of which nothing is known makes way for the next one",
          "[recording]") {
  World world({{seconds(1), false, ConnectBegan{0, kPeer}},
               {seconds(50), false, ConnectBegan{1, kPeer}},
               {seconds(50), false, ConnectMade{1}}});
  auto attempt = world.connect();
  CHECK(world.run_until(seconds(40)) ==
        Heard{"20 " + kPeer + ": the recording does not say how this attempt to connect ended"});
  attempt.reset();
  attempt = world.connect();
  CHECK(world.run_until(seconds(60)) == Heard{"50 connected"});
}

TEST_CASE("replayed connector: targets that connect in another order have their own connections",
          "[recording]") {
  World world({{seconds(1), false, ConnectBegan{0, kPeer}},
               {seconds(1), false, ConnectBegan{1, kPeerOfCarts}},
               {seconds(2), false, ConnectEnded{0, kRefused}},
               {seconds(3), false, ConnectMade{1}},
               {seconds(9), false, ConnectEnded{1, kRefused}}});
  const auto carts = world.connect(kAddress, "carts", "carts ");
  const auto orders = world.connect(kAddress, "orders", "orders ");
  CHECK(world.run_until(seconds(10)) ==
        Heard{"2 orders connection refused", "3 carts connected", "9 carts closed"});
  CHECK(world.script->unmatched == 0);
}

TEST_CASE("replayed prober: each probe of a target has the answers that it had", "[recording]") {
  HealthCheck check;
  check.probe = HealthCheck::Tcp{};
  check.interval = seconds(1);
  const auto target_of = [](const std::string& authority) {
    return HealthProber::Target{{.address = kAddress, .authority = authority}, ClusterName("c")};
  };
  const std::string orders = probe_text(target_of("orders"), check);
  World world(
      {{seconds(1), false, ProbeAnswered{orders, ProbeOutcome::kPassed, "", false}},
       {seconds(1),
        false,
        ProbeAnswered{probe_text(target_of("carts"), check), ProbeOutcome::kFailed, "no", true}},
       {seconds(5), false, ProbeAnswered{orders, ProbeOutcome::kPassed, "", false}},
       {seconds(6), false, kOther}});
  const auto prepare = [&](const std::string& authority) {
    return world.environment.health_prober->prepare(target_of(authority), check);
  };
  const auto answer = [&](const std::string& label) {
    return [&world, label](const ProbeAnswer& answered) {
      world.say(label + (answered.outcome == ProbeOutcome::kPassed ? "passed" : answered.why) +
                (answered.delayed ? " delayed" : ""));
    };
  };
  auto of_carts = prepare("carts");
  auto of_orders = prepare("orders");
  of_carts->begin(answer("carts "));
  of_orders->begin(answer("orders "));
  CHECK(world.run_until(seconds(2)) == Heard{"1 carts no delayed", "1 orders passed"});
  of_orders->begin(answer("orders "));
  of_orders.reset();  // A destroyed probe says nothing.
  CHECK(world.run_until(seconds(6)).empty());
  CHECK(world.script->unmatched == 0);
  of_carts->begin(answer("carts "));
  CHECK(world.run_until(seconds(9)).empty());
  of_carts->begin(answer("carts "));  // After the recording's end.
  CHECK(world.script->unmatched == 1);
}

TEST_CASE("replayed asks: an ask reaches the policy of its target and path, while there is one",
          "[recording]") {
  World world({{seconds(1), false, ConnectBegan{0, kPeer}}, {seconds(1), false, ConnectMade{0}}});
  auto policy = std::make_shared<AskedPolicy>(world, "ring");
  const PickAsk ask{PickAsk::Kind::kConnect, kAddress};
  world.asks->relay("xds:///orders", PolicyPath("ring"), policy);
  CHECK(world.run_until(seconds(2)).empty());  // Nothing was carried.
  world.asks->ask({"xds:///orders", PolicyPath("other"), ask});
  world.asks->ask({"xds:///carts", PolicyPath("ring"), ask});
  CHECK(world.run_until(seconds(2)).empty());
  world.asks->ask({"xds:///orders", PolicyPath("ring"), ask});
  CHECK(world.run_until(seconds(2)) == Heard{"2 ring 10.0.0.1:80", "2 ring connected"});
  policy.reset();
  world.asks->ask({"xds:///orders", PolicyPath("ring"), ask});
  CHECK(world.run_until(seconds(3)).empty());
}

TEST_CASE("replayed asks: a policy is asked again for the connections that its target had",
          "[recording]") {
  struct Row {
    const char* name;
    std::vector<OutsideEvent> before;
    std::vector<RecordedEvent> after;
    Heard heard;
  };

  const auto ask = [](const std::string& path, const std::string& target = "xds:///orders") {
    return PolicyAsked{target, PolicyPath(path), {PickAsk::Kind::kCreate, kAddress}};
  };
  const std::vector<OutsideEvent> made = {ConnectBegan{0, kPeer}, ConnectMade{0}};
  const std::vector<OutsideEvent> down = {ConnectBegan{0, kPeer}, ConnectEnded{0, kRefused}};
  const std::vector<OutsideEvent> of_carts = {ConnectBegan{0, kPeerOfCarts}, ConnectMade{0}};
  const TargetWoken woken{"xds:///orders"};
  // The first attempt since the segment began.
  const auto later = [](int at) {
    return std::vector<RecordedEvent>{{seconds(at), false, ConnectBegan{1, kPeer}},
                                      {seconds(at), false, ConnectMade{1}}};
  };
  const auto and_then = [](std::vector<OutsideEvent> events, const OutsideEvent& more) {
    events.push_back(more);
    return events;
  };
  const auto row = GENERATE_COPY(values<Row>({
      {"it was asked",
       and_then(made, ask("second")),
       {},
       {"4 second 10.0.0.1:80", "4 second connected"}},
      {"both were asked, and there is one connection",
       and_then(and_then(made, ask("second")), ask("first")),
       {},
       {"4 first 10.0.0.1:80", "4 first connected"}},
      {"it failed to connect",
       and_then(down, ask("second")),
       {},
       {"4 second 10.0.0.1:80", "4 second connection refused"}},
      {"a policy was asked that is not there",
       and_then(made, ask("third")),
       {},
       {"4 first 10.0.0.1:80", "4 first connected"}},
      {"no policy was asked", made, {}, {"4 first 10.0.0.1:80", "4 first connected"}},
      {"the connection of another target", of_carts, {}, {}},
      {"its connection was lost before the segment", {ask("second")}, {}, {}},
      {"its connection was lost, and another is made later", {ask("second")}, later(9), {}},
      {"it was asked just before the segment",
       {ask("second")},
       later(5),
       {"5 second 10.0.0.1:80", "5 second connected"}},
      {"the program woke the target just before the segment",
       {woken},
       later(5),
       {"5 first 10.0.0.1:80", "5 first connected"}},
      {"the program woke the target long before", {woken}, later(9), {}},
  }));
  INFO(row.name);
  std::vector<RecordedEvent> events;
  events.reserve(row.before.size() + row.after.size());
  for (const OutsideEvent& event : row.before)
    events.push_back({seconds(4), true, event});
  events.insert(events.end(), row.after.begin(), row.after.end());
  World world(std::move(events));
  world.run_until(seconds(4));
  const auto first = std::make_shared<AskedPolicy>(world, "first");
  const auto second = std::make_shared<AskedPolicy>(world, "second");
  world.asks->relay("xds:///orders", PolicyPath("first"), first);
  world.asks->relay("xds:///orders", PolicyPath("second"), second);
  CHECK(world.run_until(seconds(30)) == row.heard);
  CHECK(world.script->unmatched == 0);
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
  world.run_until(seconds(3));  // After the recording's end.
  CHECK_FALSE(lookup.resolve(DnsName("b.example:80")).ok());
  CHECK(world.script->unmatched == 1);
}

}  // namespace signalbox::actors
