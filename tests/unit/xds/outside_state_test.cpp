// SPDX-License-Identifier: Apache-2.0
//
// The state with which a segment of a recording begins.
#include "xds/record/outside_state.hpp"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "signalbox/envoy/config/listener/v3/listener.pb.h"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "xds/record/ads_messages.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using envoy::config::endpoint::v3::ClusterLoadAssignment;
using envoy::config::listener::v3::Listener;
using envoy::service::discovery::v3::DiscoveryResponse;

constexpr auto kLds = ResourceType::kListener;
constexpr auto kEds = ResourceType::kEndpoints;

using Names = std::vector<std::string>;

/// A response with resources of these names. `mark` tells the resources of two versions apart.
StreamReceived received(ResourceType type,
                        const std::string& version,
                        const Names& names,
                        const std::string& mark = "") {
  DiscoveryResponse response;
  response.set_type_url(std::string(type_url_of(type)));
  response.set_version_info(version);
  response.set_nonce("nonce " + version);
  for (const std::string& name : names) {
    auto* any = response.add_resources();
    any->set_type_url(response.type_url());
    if (type == kLds) {
      Listener listener;
      listener.set_name(name);
      any->set_value(listener.SerializeAsString() + mark);
    } else {
      ClusterLoadAssignment assignment;
      assignment.set_cluster_name(name);
      any->set_value(assignment.SerializeAsString() + mark);
    }
  }
  return {0, 1, response.SerializeAsString()};
}

/// The response with each resource in a Resource of this name.
StreamReceived wrapped(const StreamReceived& plain, const std::string& name) {
  DiscoveryResponse response;
  REQUIRE(response.ParseFromString(plain.bytes));
  for (auto& any : *response.mutable_resources()) {
    envoy::service::discovery::v3::Resource wrapper;
    wrapper.set_name(name);
    *wrapper.mutable_resource() = any;
    any.set_type_url("type.googleapis.com/envoy.service.discovery.v3.Resource");
    any.set_value(wrapper.SerializeAsString());
  }
  return {0, 1, response.SerializeAsString()};
}

/// A request that changes names.
StreamAsked asked(ResourceType type, const Names& names) {
  return {0, 1, type, "", false, names};
}

/// An answer to the response of the version.
StreamAsked answered(ResourceType type, const std::string& version, bool refused = false) {
  return {0, 1, type, "nonce " + version, refused, std::nullopt};
}

constexpr bool kRefuses = true;
/// Field 1000, of 2 bytes, which no message has.
const char kMark[] = "\xc2\x3e\x02ok";

std::vector<OutsideEvent> opened() {
  return {StreamBegan{0, 1}, StreamOpened{0, 1}};
}

OutsideState state_after(const std::vector<OutsideEvent>& events) {
  OutsideState state;
  for (const OutsideEvent& event : events)
    state.apply(event);
  return state;
}

template <typename Event>
std::vector<Event> all_of(const std::vector<OutsideEvent>& events) {
  std::vector<Event> found;
  for (const OutsideEvent& event : events) {
    if (const auto* wanted = std::get_if<Event>(&event)) found.push_back(*wanted);
  }
  return found;
}

/// Each response as "EDS 2: c d", with the version and the names; a name has "+" behind it if its
/// resource has the mark. An answer follows as "ok" or "refused".
std::vector<std::string> conversation(const std::vector<OutsideEvent>& events) {
  std::vector<std::string> lines;
  for (const OutsideEvent& event : events) {
    if (const auto* one = std::get_if<StreamReceived>(&event)) {
      const auto response = read_response(one->bytes);
      REQUIRE(response.has_value());
      std::string line = absl::StrCat(to_string(response->type), " ", response->version, ":");
      for (const auto& [name, bytes] : response->resources)
        absl::StrAppend(&line, " ", name, absl::StrContains(bytes, kMark) ? "+" : "");
      lines.push_back(line);
    }
    const auto* const request = std::get_if<StreamAsked>(&event);
    if (request != nullptr && !request->nonce.empty())
      lines.emplace_back(request->refused ? "refused" : "ok");
  }
  return lines;
}

/// What a state after the events of a stream says about it. The state can be made again from its
/// own events.
std::vector<std::string> state_of_stream(const std::vector<OutsideEvent>& more) {
  std::vector<OutsideEvent> all = opened();
  all.insert(all.end(), more.begin(), more.end());
  const auto events = state_after(all).events();
  CHECK(state_after(events).events() == events);
  return conversation(events);
}

const absl::Status kRefused = absl::UnavailableError("connection refused");

}  // namespace

TEST_CASE("outside state: targets in use, and the newest answers", "[recording]") {
  const DnsName name("a.example:80");
  const auto events = state_after({TargetOpened{"xds:///a"},
                                   TargetOpened{"xds:///b"},
                                   TargetClosed{"xds:///a"},
                                   NameAnswered{name, kRefused},
                                   NameAnswered{name, std::vector{Address("10.0.0.1:80")}},
                                   ProbeAnswered{"p", ProbeOutcome::kFailed, "no", false},
                                   ProbeAnswered{"p", ProbeOutcome::kPassed, "", false}})
                          .events();
  CHECK(events == std::vector<OutsideEvent>{TargetOpened{"xds:///b"},
                                            NameAnswered{name, std::vector{Address("10.0.0.1:80")}},
                                            ProbeAnswered{"p", ProbeOutcome::kPassed, "", false}});
}

TEST_CASE("outside state: the newest asks of each target, policy and address, until it is closed",
          "[recording]") {
  using Kind = PickAsk::Kind;
  const auto ask = [](const char* target, const char* path, const char* address, Kind kind) {
    return PolicyAsked{target, PolicyPath(path), {kind, Address(address)}};
  };
  std::vector<OutsideEvent> all = {TargetOpened{"xds:///a"},
                                   TargetOpened{"xds:///b"},
                                   TargetWoken{"xds:///a"},
                                   ask("xds:///a", "p", "10.0.0.1:80", Kind::kConnect),
                                   ask("xds:///a", "p", "10.0.0.1:80", Kind::kCreate),
                                   ask("xds:///a", "p", "10.0.0.2:80", Kind::kConnect),
                                   ask("xds:///a", "q", "10.0.0.1:80", Kind::kConnect),
                                   ask("xds:///b", "p", "10.0.0.1:80", Kind::kConnect)};
  CHECK(state_after(all).events() ==
        std::vector<OutsideEvent>{TargetOpened{"xds:///a"},
                                  TargetWoken{"xds:///a"},
                                  TargetOpened{"xds:///b"},
                                  ask("xds:///a", "p", "10.0.0.1:80", Kind::kCreate),
                                  ask("xds:///a", "p", "10.0.0.2:80", Kind::kConnect),
                                  ask("xds:///a", "q", "10.0.0.1:80", Kind::kConnect),
                                  ask("xds:///b", "p", "10.0.0.1:80", Kind::kConnect)});
  all.insert(all.end(),
             {TargetClosed{"xds:///a"},
              // Calls that were under way when the target was closed.
              ask("xds:///a", "p", "10.0.0.1:80", Kind::kConnect),
              TargetWoken{"xds:///a"},
              TargetOpened{"xds:///a"}});
  CHECK(state_after(all).events() ==
        std::vector<OutsideEvent>{TargetOpened{"xds:///a"},
                                  TargetOpened{"xds:///b"},
                                  ask("xds:///b", "p", "10.0.0.1:80", Kind::kConnect)});
}

TEST_CASE("outside state: a full list forgets another entry, and none when an entry is renewed",
          "[recording]") {
  std::vector<OutsideEvent> all;
  const auto probe = [](std::size_t number) {
    return ProbeAnswered{std::to_string(100'000 + number), ProbeOutcome::kPassed, "", false};
  };
  for (std::size_t i = 0; i < OutsideState::kMostAnswers; ++i)
    all.emplace_back(probe(i));
  all.emplace_back(probe(7));
  CHECK(state_after(all).events().size() == OutsideState::kMostAnswers);
  all.emplace_back(probe(OutsideState::kMostAnswers));
  const auto events = state_after(all).events();
  CHECK(events.size() == OutsideState::kMostAnswers);
  CHECK(events.back() == OutsideEvent(probe(OutsideState::kMostAnswers)));
}

TEST_CASE("outside state: a response of LDS lacks what is gone, one of EDS adds to the others",
          "[recording]") {
  std::vector<OutsideEvent> all = opened();
  for (const OutsideEvent& event : std::vector<OutsideEvent>{asked(kLds, {"a", "b"}),
                                                             received(kLds, "1", {"a", "b"}),
                                                             answered(kLds, "1"),
                                                             received(kLds, "2", {"b"}),
                                                             answered(kLds, "2"),
                                                             asked(kEds, {"c", "d"}),
                                                             received(kEds, "3", {"c", "d"}),
                                                             answered(kEds, "3"),
                                                             received(kEds, "4", {"c"}, kMark),
                                                             answered(kEds, "4")})
    all.push_back(event);
  const auto events = state_after(all).events();
  REQUIRE(events.size() == 10);
  CHECK(events[0] == OutsideEvent(StreamBegan{0, 1}));
  CHECK(events[1] == OutsideEvent(StreamOpened{0, 1}));
  CHECK(events[2] == OutsideEvent(asked(kLds, {"a", "b"})));
  CHECK(events[7] == OutsideEvent(asked(kEds, {"c", "d"})));
  CHECK(conversation(events) == Names{"LDS 2: a b", "ok", "LDS 2: b", "ok", "EDS 4: c+ d", "ok"});
}

TEST_CASE("outside state: a resource that no request names any more is dropped", "[recording]") {
  struct Row {
    const char* name;
    std::vector<OutsideEvent> events;
    Names state;
  };

  const std::vector<OutsideEvent> begun = {
      asked(kEds, {"c", "d"}), received(kEds, "1", {"c", "d"}), answered(kEds, "1")};
  const auto row = GENERATE(values<Row>({
      {"all are named", {}, {"EDS 1: c d", "ok"}},
      {"one is given up", {asked(kEds, {"d"})}, {"EDS 1: d", "ok"}},
      {"all are given up", {asked(kEds, {})}, {}},
      {"one is given up before the response that has it",
       {asked(kEds, {"c"}), received(kEds, "2", {"c", "d"}, kMark), answered(kEds, "2")},
       {"EDS 2: c+", "ok"}},
      {"a response with a resource that was never wanted",
       {received(kEds, "2", {"e"}), answered(kEds, "2")},
       {"EDS 2: c d", "ok"}},
      {"the stream is opened again, and a type is not asked for",
       {StreamClosed{0, 1, absl::UnavailableError("gone")},
        StreamBegan{0, 1},
        StreamOpened{0, 1},
        asked(kLds, {"a"}),
        received(kLds, "5", {"a"}),
        answered(kLds, "5")},
       {"LDS 5: a", "ok"}},
      {"the stream is opened again, and the type is asked for",
       {StreamClosed{0, 1, absl::UnavailableError("gone")},
        StreamBegan{0, 1},
        StreamOpened{0, 1},
        asked(kLds, {"a"}),
        asked(kEds, {"c", "d"}),
        received(kLds, "5", {"a"}),
        answered(kLds, "5")},
       {"LDS 5: a", "ok", "EDS 1: c d", "ok"}},
      {"requests may be missing",
       {EventsDropped{3}, received(kEds, "2", {"e"}), answered(kEds, "2")},
       {"EDS 2: c d e", "ok"}},
  }));
  INFO(row.name);
  std::vector<OutsideEvent> all = begun;
  all.insert(all.end(), row.events.begin(), row.events.end());
  CHECK(state_of_stream(all) == row.state);
}

TEST_CASE("outside state: what was accepted stays when a newer version is refused", "[recording]") {
  struct Row {
    const char* name;
    std::vector<OutsideEvent> events;
    Names state;
  };

  const auto row = GENERATE(values<Row>({
      {"EDS: one of two is refused; a client takes the valid resources of the response, too",
       {asked(kEds, {"c", "d"}),
        received(kEds, "1", {"c", "d"}),
        answered(kEds, "1"),
        received(kEds, "2", {"c"}, kMark),
        answered(kEds, "2", kRefuses)},
       {"EDS 1: c d", "ok", "EDS 2: c+", "refused"}},
      {"EDS: refused, then another one accepted",
       {asked(kEds, {"c", "d"}),
        received(kEds, "1", {"c"}, kMark),
        answered(kEds, "1", kRefuses),
        received(kEds, "2", {"d"}),
        answered(kEds, "2")},
       {"EDS 2: d", "ok", "EDS 1: c+", "refused"}},
      {"EDS: refused, then accepted",
       {asked(kEds, {"c"}),
        received(kEds, "1", {"c"}, kMark),
        answered(kEds, "1", kRefuses),
        received(kEds, "2", {"c"}),
        answered(kEds, "2")},
       {"EDS 2: c", "ok"}},
      {"LDS: refused twice",
       {asked(kLds, {"a", "b"}),
        received(kLds, "1", {"a", "b"}),
        answered(kLds, "1"),
        received(kLds, "2", {"a", "b"}, kMark),
        answered(kLds, "2", kRefuses),
        received(kLds, "3", {"a"}, kMark),
        answered(kLds, "3", kRefuses)},
       {"LDS 1: a b", "ok", "LDS 3: a+ b+", "refused", "LDS 3: a+", "refused"}},
      {"LDS: refused, and without one that was accepted",
       {asked(kLds, {"a", "b", "c"}),
        received(kLds, "1", {"a", "b", "c"}),
        answered(kLds, "1"),
        received(kLds, "2", {"a", "b"}, kMark),
        answered(kLds, "2", kRefuses)},
       {"LDS 1: a b c", "ok", "LDS 2: a+ b+ c", "refused", "LDS 2: a+ b+", "refused"}},
      {"LDS: refused without a name, then accepted",
       {asked(kLds, {"a"}),
        received(kLds, "1", {"a", ""}),
        answered(kLds, "1", kRefuses),
        received(kLds, "2", {"a"}),
        answered(kLds, "2")},
       {"LDS 2: a", "ok"}},
      {"LDS: refused, then accepted without one",
       {asked(kLds, {"a", "b"}),
        received(kLds, "1", {"a", "b"}),
        answered(kLds, "1", kRefuses),
        received(kLds, "2", {"b"}),
        answered(kLds, "2")},
       {"LDS 2: b", "ok", "LDS 1: a b", "refused", "LDS 2: b", "ok"}},
      {"LDS: refused, then accepted",
       {asked(kLds, {"a"}),
        received(kLds, "1", {"a"}, kMark),
        answered(kLds, "1", kRefuses),
        received(kLds, "2", {"a"}),
        answered(kLds, "2")},
       {"LDS 2: a", "ok"}},
      {"LDS: all are deleted",
       {asked(kLds, {"a"}),
        received(kLds, "1", {"a"}),
        answered(kLds, "1"),
        received(kLds, "2", {}),
        answered(kLds, "2")},
       {"LDS 2: a", "ok", "LDS 2:", "ok"}},
      {"LDS: one is deleted, and comes back",
       {asked(kLds, {"a", "b"}),
        received(kLds, "1", {"a", "b"}),
        answered(kLds, "1"),
        received(kLds, "2", {"b"}),
        answered(kLds, "2"),
        received(kLds, "3", {"a", "b"}, kMark),
        answered(kLds, "3")},
       {"LDS 3: a+ b+", "ok"}},
      {"LDS: one is deleted, and given up",
       {asked(kLds, {"a", "b"}),
        received(kLds, "1", {"a", "b"}),
        answered(kLds, "1"),
        received(kLds, "2", {"b"}),
        answered(kLds, "2"),
        asked(kLds, {"b"})},
       {"LDS 2: b", "ok"}},
      {"a refused resource that is given up",
       {asked(kEds, {"c", "d"}),
        received(kEds, "1", {"c", "d"}),
        answered(kEds, "1", kRefuses),
        asked(kEds, {"c"})},
       {"EDS 1: c", "refused"}},
      {"the newest response has no answer yet",
       {asked(kEds, {"c"}),
        received(kEds, "1", {"c"}),
        answered(kEds, "1"),
        received(kEds, "2", {"c"}, kMark)},
       {"EDS 1: c", "ok", "EDS 2: c+"}},
      {"an older response was never answered, so it may be in use or not",
       {asked(kEds, {"c"}),
        received(kEds, "1", {"c"}),
        answered(kEds, "1"),
        received(kEds, "2", {"c"}, kMark),
        received(kEds, "3", {}),
        answered(kEds, "3")},
       {"EDS 3: c", "ok", "EDS 2: c+", "refused"}},
      {"the stream ended before the newest response was answered, so it may be in use or not",
       {asked(kEds, {"c"}),
        received(kEds, "1", {"c"}),
        answered(kEds, "1"),
        received(kEds, "2", {"c"}, kMark),
        StreamBegan{0, 1}},
       {"EDS 1: c", "ok", "EDS 2: c+", "refused"}},
  }));
  INFO(row.name);
  CHECK(state_of_stream(row.events) == row.state);
}

TEST_CASE("outside state: a server that the client leaves is forgotten", "[recording]") {
  const std::vector<OutsideEvent> begun = {StreamBegan{0, 1},
                                           StreamOpened{0, 1},
                                           asked(kEds, {"c"}),
                                           received(kEds, "1", {"c"}),
                                           answered(kEds, "1")};
  auto all = begun;
  all.emplace_back(StreamLeft{0, 1});
  CHECK(state_after(all).events().empty());

  all = begun;  // A stream of before is let go.
  all.emplace_back(StreamLeft{0, 0});
  CHECK(conversation(state_after(all).events()) == Names{"EDS 1: c", "ok"});

  all = begun;  // The stream was lost, and the client will open another.
  all.emplace_back(StreamClosed{0, 1, kRefused});
  all.emplace_back(StreamLeft{0, 1});
  CHECK(state_after(all).events().back() == OutsideEvent(StreamClosed{0, 1, kRefused}));

  all = begun;  // The client ends the stream because of a response, and will open another.
  all.emplace_back(received(kEds, "2", {"c"}));
  all.emplace_back(StreamLeft{0, 1});
  const auto events = state_after(all).events();
  CHECK(conversation(events) == Names{"EDS 1: c", "ok"});
  CHECK(std::holds_alternative<StreamClosed>(events.back()));

  all = begun;  // As before, but a target was opened before the client has seen the response.
  all.emplace_back(StreamReceived{0, 1, "\xff"});
  all.emplace_back(StreamAsked{0, 1, kEds, "nonce 1", false, Names{"c", "d"}});
  all.emplace_back(StreamLeft{0, 1});
  CHECK(conversation(state_after(all).events()) == Names{"EDS 1: c", "ok"});
}

TEST_CASE("outside state: resources of EDS come in responses of a bounded size", "[recording]") {
  // Field 1000, of 300,000 bytes.
  const std::string large = "\xc2\x3e\xe0\xa7\x12" + std::string(300'000, 'x');
  CHECK(state_of_stream({asked(kEds, {"a", "b", "c", "d", "e"}),
                         received(kEds, "1", {"a", "b", "c", "d"}, large),
                         answered(kEds, "1"),
                         received(kEds, "2", {"e"}),
                         answered(kEds, "2")}) == Names{"EDS 2: a b c", "ok", "EDS 2: d e", "ok"});
}

TEST_CASE("outside state: names of resources in another spelling", "[recording]") {
  const std::string spelled = "xdstp://x/envoy.config.listener.v3.Listener/a?b=2&a=1";
  const std::string canonical = "xdstp://x/envoy.config.listener.v3.Listener/a?a=1&b=2";
  CHECK(state_of_stream(
            {asked(kLds, {canonical}), received(kLds, "1", {spelled}), answered(kLds, "1")}) ==
        Names{"LDS 1: " + canonical, "ok"});
}

TEST_CASE("outside state: a resource has its own name, also in a Resource of another",
          "[recording]") {
  const auto name = GENERATE("", "outer");
  CHECK(state_of_stream({asked(kEds, {"c", "d"}),
                         wrapped(received(kEds, "1", {"c", "d"}), name),
                         answered(kEds, "1")}) == Names{"EDS 1: c d", "ok"});
  // Without a name of its own it has that of the Resource.
  CHECK(state_of_stream({asked(kEds, {"outer"}),
                         wrapped(received(kEds, "1", {""}), "outer"),
                         answered(kEds, "1")}) == Names{"EDS 1: outer", "ok"});
}

TEST_CASE("outside state: resources stay when the stream ends, and its end is known",
          "[recording]") {
  const auto events = state_after({StreamBegan{0, 1},
                                   StreamOpened{0, 1},
                                   received(kLds, "1", {"a"}),
                                   StreamClosed{0, 1, kRefused}})
                          .events();
  CHECK(all_of<StreamReceived>(events).size() == 1);
  CHECK(events.back() == OutsideEvent(StreamClosed{0, 1, kRefused}));
}

TEST_CASE("outside state: connections that are held, attempts under way, and peers that failed",
          "[recording]") {
  const auto events = state_after({ConnectBegan{1, "held"},
                                   ConnectMade{1},
                                   ConnectBegan{2, "lost"},
                                   ConnectMade{2},
                                   ConnectEnded{2, kRefused},
                                   ConnectLeft{2},
                                   ConnectBegan{3, "down"},
                                   ConnectEnded{3, kRefused},
                                   ConnectLeft{3},
                                   ConnectBegan{4, "under way"},
                                   ConnectBegan{5, "left"},
                                   ConnectMade{5},
                                   ConnectLeft{5},
                                   ConnectBegan{6, "was down"},
                                   ConnectEnded{6, kRefused},
                                   ConnectLeft{6},
                                   ConnectBegan{7, "was down"},
                                   ConnectMade{7},
                                   ConnectLeft{7}})
                          .events();
  std::vector<std::string> peers;
  for (const ConnectBegan& began : all_of<ConnectBegan>(events))
    peers.push_back(began.peer);
  CHECK(peers == std::vector<std::string>{"down", "held", "under way"});
  CHECK(all_of<ConnectMade>(events) == std::vector<ConnectMade>{{1}});
  CHECK(all_of<ConnectEnded>(events).size() == 1);
}

TEST_CASE("outside state: an attempt beside a connection of its subchannel fails no peer",
          "[recording]") {
  std::vector<OutsideEvent> all = {ConnectBegan{1, "p", 7},
                                   ConnectMade{1},
                                   ConnectBegan{2, "p", 7},
                                   ConnectEnded{2, kRefused},
                                   ConnectLeft{2}};
  CHECK(state_after(all).events() ==
        std::vector<OutsideEvent>{ConnectBegan{1, "p", 7}, ConnectMade{1}});
  all.insert(all.end(),
             {ConnectEnded{1, kRefused},
              ConnectLeft{1},
              ConnectBegan{3, "p", 7},
              ConnectEnded{3, kRefused},
              ConnectLeft{3}});
  CHECK(all_of<ConnectEnded>(state_after(all).events()).size() == 1);
}

}  // namespace signalbox::xds
