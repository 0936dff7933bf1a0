// SPDX-License-Identifier: Apache-2.0
//
// The state with which a segment of a recording begins.
#include "xds/record/outside_state.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "signalbox/envoy/config/listener/v3/listener.pb.h"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using envoy::config::endpoint::v3::ClusterLoadAssignment;
using envoy::config::listener::v3::Listener;
using envoy::service::discovery::v3::DiscoveryResponse;

std::string listeners(const std::vector<std::string>& names) {
  DiscoveryResponse response;
  response.set_type_url(std::string(type_url_of(ResourceType::kListener)));
  for (const std::string& name : names) {
    Listener listener;
    listener.set_name(name);
    auto* any = response.add_resources();
    any->set_type_url(response.type_url());
    any->set_value(listener.SerializeAsString());
  }
  return response.SerializeAsString();
}

std::string endpoints(const std::string& version, const std::vector<std::string>& names) {
  DiscoveryResponse response;
  response.set_type_url(std::string(type_url_of(ResourceType::kEndpoints)));
  response.set_version_info(version);
  response.set_nonce("nonce " + version);
  for (const std::string& name : names) {
    ClusterLoadAssignment assignment;
    assignment.set_cluster_name(name);
    auto* any = response.add_resources();
    any->set_type_url(response.type_url());
    any->set_value(assignment.SerializeAsString());
  }
  return response.SerializeAsString();
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

TEST_CASE("outside state: a response of LDS replaces all listeners, one of EDS adds to the others",
          "[recording]") {
  const auto events = state_after({StreamBegan{0, 4},
                                   StreamOpened{0, 4},
                                   StreamReceived{0, 4, listeners({"a", "b"})},
                                   StreamReceived{0, 4, listeners({"b"})},
                                   StreamReceived{0, 4, endpoints("1", {"c", "d"})},
                                   StreamReceived{0, 4, endpoints("2", {"c"})}})
                          .events();
  REQUIRE(events.size() == 4);
  CHECK(events[0] == OutsideEvent(StreamBegan{0, 4}));
  CHECK(events[1] == OutsideEvent(StreamOpened{0, 4}));
  const auto received = all_of<StreamReceived>(events);
  REQUIRE(received.size() == 2);
  for (const StreamReceived& one : received) {
    DiscoveryResponse response;
    REQUIRE(response.ParseFromString(one.bytes));
    const bool is_lds = resource_type_of(response.type_url()) == ResourceType::kListener;
    CHECK(response.resources_size() == (is_lds ? 1 : 2));
    if (!is_lds) CHECK(response.nonce() == "nonce 2");
  }
}

TEST_CASE("outside state: resources stay when the stream ends, and its end is known",
          "[recording]") {
  const auto events = state_after({StreamBegan{0, 0},
                                   StreamOpened{0, 0},
                                   StreamReceived{0, 0, listeners({"a"})},
                                   StreamClosed{0, 0, kRefused}})
                          .events();
  CHECK(all_of<StreamReceived>(events).size() == 1);
  CHECK(events.back() == OutsideEvent(StreamClosed{0, 0, kRefused}));
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
                                   ConnectLeft{5}})
                          .events();
  std::vector<std::string> peers;
  for (const ConnectBegan& began : all_of<ConnectBegan>(events))
    peers.push_back(began.peer);
  CHECK(peers == std::vector<std::string>{"down", "held", "under way"});
  CHECK(all_of<ConnectMade>(events) == std::vector<ConnectMade>{{1}});
  CHECK(all_of<ConnectEnded>(events).size() == 1);
}

}  // namespace signalbox::xds
