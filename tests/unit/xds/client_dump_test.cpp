// SPDX-License-Identifier: Apache-2.0
//
// The client core's report of its resources: the dump, and the gauges that agree with it.
#include <chrono>
#include <memory>

#include <catch2/catch.hpp>

#include "tests/support/printed.hpp"
#include "tests/unit/xds/client_support.hpp"

namespace signalbox::xds {
namespace {

using namespace std::chrono_literals;
using tests::cds;

ClientOptions one_server() {
  ClientOptions options;
  options.node_id = "node-1";
  options.servers = {{.name = "cp"}};
  return options;
}

ReceivedResource with_bytes(const std::string& bytes) {
  ReceivedResource received = good("a", bytes);
  received.bytes = std::make_shared<const std::string>(bytes);
  return received;
}

std::map<std::string, std::uint64_t> gauges_of(const ResourceDump& dump) {
  std::map<std::string, std::uint64_t> gauges;
  for (const ResourceState& state : dump.resources)
    ++gauges[absl::StrCat(to_string(state.key.type), " ", cache_state(state))];
  return gauges;
}

// Returns the only resource of the dump, and checks that the gauges agree with the dump.
ResourceState only(const Client& client) {
  const ResourceDump dump = client.dump();
  auto gauges = client.gauges;
  std::erase_if(gauges, [](const auto& gauge) { return gauge.second == 0; });
  CHECK(gauges == gauges_of(dump));
  REQUIRE(dump.resources.size() == 1);
  return dump.resources[0];
}

}  // namespace

TEST_CASE("dump: a resource is told with its state, its version, its times and its error",
          "[xds][client][A40]") {
  Client client(one_server());
  client.watch(1, cds("a"));
  ResourceState state = only(client);
  CHECK(state.key == cds("a"));
  CHECK(state.status == ResourceStatus::kRequested);
  CHECK(state.server == "cp");
  CHECK(state.bytes == nullptr);
  CHECK_FALSE(state.updated);
  CHECK_FALSE(state.failure);

  client.wall += 1s;
  const WallTime came = client.wall;
  client.report(ResourcesReceived{ResourceType::kCluster, "7", {with_bytes("e")}, {}});
  state = only(client);
  CHECK(state.status == ResourceStatus::kAcked);
  CHECK(state.version == "7");
  CHECK(state.updated == came);
  REQUIRE(state.bytes != nullptr);
  CHECK(*state.bytes == "e");

  client.wall += 1s;
  client.report(ResourcesReceived{ResourceType::kCluster, "8", {with_bytes("e")}, {}});
  state = only(client);
  CHECK(state.version == "8");
  CHECK(state.updated == came);

  client.wall += 1s;
  client.report(ResourcesReceived{ResourceType::kCluster, "9", {bad("a")}, {}});
  state = only(client);
  CHECK(state.status == ResourceStatus::kNacked);
  CHECK(cache_state(state) == "nacked_but_cached");
  CHECK(state.version == "8");
  CHECK(state.updated == came);
  CHECK(state.bytes != nullptr);
  REQUIRE(state.failure);
  CHECK(state.failure->details == "CDS resource \"a\": type: not supported");
  CHECK(state.failure->version == "9");
  CHECK(state.failure->at == came + 2s);

  client.report(ResourcesReceived{ResourceType::kCluster, "10", {with_bytes("f")}, {}});
  state = only(client);
  CHECK(state.status == ResourceStatus::kAcked);
  CHECK(state.updated == client.wall);
  CHECK_FALSE(state.failure);

  client.unwatch(1, cds("a"));
  CHECK(client.dump().resources.empty());
  CHECK(client.gauges.at("CDS acked") == 0);
}

TEST_CASE("dump: every way not to have a resource has its state", "[xds][client][A40][A88]") {
  ClientOptions options = one_server();
  const bool loses = GENERATE(false, true);
  options.servers[0].fail_on_data_errors = loses;
  SECTION("it does not exist") {
    Client client(options);
    client.watch(1, cds("a"));
    client.asked({"a"});
    client.step(TimerFired{client.timer.timer});
    CHECK(cache_state(only(client)) == "does_not_exist");
  }
  SECTION("it did not come in time") {
    options.servers[0].resource_timer_is_transient_error = true;
    Client client(options);
    client.watch(1, cds("a"));
    client.asked({"a"});
    client.step(TimerFired{client.timer.timer});
    CHECK(only(client).status == ResourceStatus::kTimeout);
  }
  SECTION("it was refused") {
    Client client(options);
    client.watch(1, cds("a"));
    client.receive({bad("a")});
    CHECK(cache_state(only(client)) == "nacked");
  }
  SECTION("it was deleted") {
    Client client(options);
    client.watch(1, cds("a"));
    client.receive({with_bytes("e")});
    client.receive({});
    const ResourceState state = only(client);
    CHECK(cache_state(state) == (loses ? "does_not_exist" : "does_not_exist_but_cached"));
    CHECK(state.version == (loses ? "" : "v"));
    CHECK((state.bytes == nullptr) == loses);
    CHECK(state.updated.has_value() == !loses);
  }
  SECTION("the server says why") {
    Client client(options);
    client.watch(1, cds("a"));
    client.receive({good("a")});
    client.report(ResourcesReceived{
        ResourceType::kCluster, "v", {}, {}, 0, {{"a", absl::PermissionDeniedError("no")}}});
    const ResourceState state = only(client);
    CHECK(cache_state(state) == (loses ? "received_error" : "received_error_but_cached"));
    CHECK(state.failure->details == "CDS resource \"a\": no");
  }
  SECTION("its name is nobody's") {
    Client client(options);
    client.watch(1, cds("xdstp://west/envoy.config.cluster.v3.Cluster/a"));
    CHECK(cache_state(only(client)) == "does_not_exist");
    CHECK(only(client).server.empty());
    CHECK(only(client).failure);
  }
}

TEST_CASE("dump: the gauges follow each number up and down", "[xds][client][metrics]") {
  Client client(one_server());
  client.watch(1, cds("a"));
  CHECK(client.gauges.at("CDS requested") == 1);
  client.watch(1, cds("b"));
  client.watch(1, cds("c"));
  CHECK(client.gauges.at("CDS requested") == 3);
  client.receive({good("a"), good("b")});
  CHECK(client.gauges.at("CDS requested") == 1);
  CHECK(client.gauges.at("CDS acked") == 2);
}

TEST_CASE("dump: servers are told with what is wrong with them", "[xds][client][A40]") {
  ClientOptions options = one_server();
  options.servers.push_back({.name = "second"});
  options.default_servers = {0, 1};
  Client client(options);
  const auto servers = [&] {
    std::string text;
    for (const ServerState& server : client.dump().servers)
      absl::StrAppend(&text, server.server, " ", server.connected, " ", server.error, "; ");
    return text;
  };
  CHECK(client.dump().node_id == "node-1");
  CHECK(servers() == "cp 0 ; second 0 ; ");
  client.watch(1, cds("a"));
  CHECK(servers() == "cp 1 ; second 0 ; ");
  client.server(absl::UnavailableError("refused"));
  CHECK(servers() == "cp 0 refused; second 1 ; ");
  client.receive({good("a")}, 1);
  CHECK(client.dump().resources[0].server == "second");

  client.receive({good("a")});
  CHECK(client.dump().resources[0].server == "cp");
  client.server(absl::UnavailableError("refused"));
  // Asks the second server for b; the dump still names the first server for a.
  client.watch(1, cds("b"));
  CHECK(servers() == "cp 0 refused; second 1 ; ");
  CHECK(client.dump().resources[0].server == "cp");
  CHECK(client.dump().resources[1].server == "second");
}

TEST_CASE("dump: one bad of a thousand is the only one that is not applied",
          "[xds][client][A46][S10]") {
  Client client(one_server());
  WatchesChanged wanted{1, {}};
  std::vector<ReceivedResource> received;
  for (int i = 0; i < 1000; ++i) {
    const std::string name = absl::StrCat("c", i);
    wanted.changes.emplace_back(Watch{cds(name)});
    received.push_back(i == 500 ? bad(name) : good(name));
  }
  client.step(wanted);
  const Lines told = client.receive(received);
  CHECK(told.back() == "count 999 1");
  CHECK(std::ranges::count_if(
            told, [](const auto& line) { return absl::EndsWith(line, " value"); }) == 999);
  CHECK(client.gauges.at("CDS acked") == 999);
  CHECK(client.gauges.at("CDS nacked") == 1);
  const auto gauges = gauges_of(client.dump());
  CHECK(gauges == std::map<std::string, std::uint64_t>{{"CDS acked", 999}, {"CDS nacked", 1}});
}

}  // namespace signalbox::xds
