// SPDX-License-Identifier: Apache-2.0
//
// A runtime's status as data and as pages, /ready, and `signalbox ready`.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/e2e/runtime_world.hpp"
#include "tests/support/http_peer.hpp"
#include "tests/support/printed.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tools/admin_client.hpp"

namespace signalbox::test {
namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;

const ClusterStatus* cluster_of(const RuntimeStatus& status, const std::string& name) {
  for (const TargetStatus& target : status.targets) {
    for (const ClusterStatus& cluster : target.clusters) {
      if (cluster.name.str() == name) return &cluster;
    }
  }
  return nullptr;
}

std::optional<std::size_t> active_of(const RuntimeStatus& status, const std::string& name) {
  const ClusterStatus* cluster = cluster_of(status, name);
  return cluster == nullptr ? std::nullopt : cluster->active;
}

std::string two_leaves(const std::string& near, const std::string& far) {
  return listener_yaml("orders", "orders") + routes_yaml("orders", "all") +
         aggregate_yaml("all", {"near", "far"}) + cluster_yaml("near") + cluster_yaml("far") +
         endpoints_yaml("near", {{near}}) + endpoints_yaml("far", {{far}});
}

}  // namespace

TEST_CASE("runtime: its status before the first target, and of a target that waits",
          "[e2e][runtime][status]") {
  const auto plane = start_plane("");
  const auto runtime = start_runtime(options_for(plane->address()));
  const RuntimeStatus empty = runtime->status();
  CHECK(empty.ready);
  CHECK(empty.node_id == kNodeId);
  CHECK(empty.targets.empty());
  CHECK(empty.changes.empty());
  CHECK(empty.started <= empty.made);
  CHECK(runtime->ready() == true);
  CHECK(runtime->ready("xds:///orders") == std::nullopt);

  const auto channel = runtime->channel("xds:///orders");
  CHECK(runtime->ready() == false);
  CHECK(runtime->ready("xds:///orders") == false);
  const RuntimeStatus waiting = runtime->status();
  CHECK_FALSE(waiting.ready);
  REQUIRE(waiting.targets.size() == 1);
  CHECK(waiting.targets[0].name == "xds:///orders");
  CHECK(waiting.targets[0].clusters.empty());
}

TEST_CASE("runtime: the status shows calls in flight, and where they run",
          "[e2e][runtime][status]") {
  HoldingBackend backend("good");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address()}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  Calls calls(channel);
  calls.start(3, {.item = "hold"});
  REQUIRE(eventually([&] { return backend.held() == 3; }));
  const RuntimeStatus status = runtime->status();
  CHECK(status.ready);
  CHECK(runtime->ready("xds:///orders") == true);
  const ClusterStatus* cluster = cluster_of(status, "c");
  REQUIRE(cluster != nullptr);
  CHECK(cluster->kind == ClusterKind::kEds);
  CHECK(cluster->active == 0);
  REQUIRE(cluster->priorities.size() == 1);
  const PriorityStatus& priority = cluster->priorities[0];
  CHECK(priority.state == ConnectivityState::kReady);
  REQUIRE(priority.localities.size() == 1);
  const AddressStatus& address = priority.localities[0].endpoints.at(0).addresses.at(0);
  CHECK(address.address.str() == backend.address());
  CHECK(address.state == EndpointState::kReady);
  CHECK(address.calls_in_flight == 3);
  REQUIRE(address.since);
  CHECK(*address.since >= status.started);
  CHECK(*address.since <= status.made);
  backend.release();
  calls.finish();
  CHECK(eventually([&] {
    const RuntimeStatus after = runtime->status();
    return cluster_of(after, "c")
               ->priorities[0]
               .localities[0]
               .endpoints[0]
               .addresses[0]
               .calls_in_flight == 0;
  }));
}

TEST_CASE("runtime: a failover is in the status, with its reason, and so is the way back",
          "[e2e][runtime][status][A75]") {
  const BackendProcess far("far");
  std::optional<RefusingAddress> refusing(std::in_place);
  const auto plane = start_plane(two_leaves(refusing->address(), far.address));
  RuntimeOptions options = options_for(plane->address());
  options.max_backoff = options.initial_backoff = std::chrono::milliseconds(100);
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel, {.wait_for_ready = true}).cluster == "far");

  const RuntimeStatus failed = runtime->status();
  CHECK(failed.ready);
  CHECK(active_of(failed, "all") == 1);
  const ClusterStatus* all = cluster_of(failed, "all");
  REQUIRE(all != nullptr);
  CHECK(all->kind == ClusterKind::kAggregate);
  REQUIRE(all->priorities.size() == 2);
  CHECK(all->priorities[0].name == "near");
  CHECK(all->priorities[0].state == ConnectivityState::kTransientFailure);
  CHECK_THAT(std::string(all->priorities[0].reason.message()), Contains(refusing->address()));
  const ClusterStatus* near = cluster_of(failed, "near");
  REQUIRE(near != nullptr);
  CHECK(near->aggregate.str() == "all");
  REQUIRE_FALSE(failed.changes.empty());
  CHECK(eventually([&] {
    const auto changes = runtime->status().changes;
    return std::ranges::any_of(changes, [](const PriorityChange& change) {
      return change.cluster.str() == "all" && change.to == 1 && change.to_name == "far" &&
             change.target == "xds:///orders";
    });
  }));

  // The leaf "near" gets an endpoint that works.
  const BackendProcess back("near");
  plane->update(resources(endpoints_yaml("near", {{back.address}})));
  REQUIRE(eventually([&] { return active_of(runtime->status(), "all") == 0; }));
  const RuntimeStatus recovered = runtime->status();
  const PriorityChange& last = recovered.changes.back();
  CHECK(eventually([&] {
    const auto changes = runtime->status().changes;
    return std::ranges::any_of(changes, [](const PriorityChange& change) {
      return change.cluster.str() == "all" && change.from == 1 && change.to == 0 &&
             change.reason == PriorityChangeReason::kRecovered;
    });
  }));
  CHECK(last.number == recovered.changes.size());
  CHECK(last.at >= recovered.started);
}

TEST_CASE("runtime: the admin pages show the status, and readiness",
          "[e2e][runtime][status][admin]") {
  const BackendProcess backend("good");
  const auto plane = start_plane(two_leaves(backend.address, backend.address));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto served = runtime->serve_admin("127.0.0.1:0");
  REQUIRE(served.ok());
  const auto address = channel::parse_admin_address(*served);
  REQUIRE(address.ok());
  const auto get = [&](const std::string& page) {
    auto answer = tools::admin_get(*address, page);
    INFO(page << " " << answer.status().ToString());
    REQUIRE(answer.ok());
    return *std::move(answer);
  };
  CHECK(get("/ready") == "LIVE\n");  // No target is in use.
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  CHECK(get("/ready?target=xds:%2F%2F%2Forders") == "LIVE\n");
  CHECK_FALSE(tools::admin_get(*address, "/ready?target=xds:%2F%2F%2Fother").ok());

  const Json status = Json::parse(get("/status"));
  CHECK(status["targets"][0]["name"] == "xds:///orders");
  CHECK(status["targets"][0]["ready"] == true);
  CHECK(status["targets"][0]["clusters"][0]["active"] == 0);
  CHECK_FALSE(status["changes"].empty());
  const Json clusters = Json::parse(get("/clusters?format=json"));
  REQUIRE(clusters["cluster_statuses"].size() == 2);
  CHECK(clusters["cluster_statuses"][0]["host_statuses"].size() == 1);
  CHECK(Json::parse(get("/server_info"))["state"] == "LIVE");
  CHECK(Json::parse(get("/certs?format=json"))["certificates"].empty());
  for (const char* page : {"/", "/clusters"})
    CHECK_THAT(get(page), Contains("all/near") && Contains("<!doctype html>"));
  CHECK_THAT(get("/clusters"), Contains(backend.address));
  CHECK_THAT(get("/priorities"), Contains("<svg") && Contains("not used yet"));
  CHECK_THAT(get("/stats?filter=rpcs_started"),
             Contains("signalbox_rpcs_started_total") && !Contains("signalbox_build_info"));
  CHECK(get("/stats/prometheus").starts_with("# HELP"));
  plane->stop();
  // The target serves on without its control plane.
  CHECK(eventually([&] { return !runtime->dump()->servers.at(0).connected; }));
  CHECK(get("/ready") == "LIVE\n");
}

TEST_CASE("runtime: limits of its own servers are counted, from zero",
          "[e2e][runtime][status][admin]") {
  const auto plane = start_plane("");
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto count = [&](const std::string& limit) {
    return "signalbox_admin_refused_total{limit=\"" + limit + "\"} ";
  };
  CHECK_THAT(runtime->metrics_text(), !Contains("signalbox_admin_refused_total{"));
  const auto metrics_port = runtime->serve_metrics("127.0.0.1:0");
  REQUIRE(metrics_port.ok());
  const auto served = runtime->serve_admin("127.0.0.1:0");
  REQUIRE(served.ok());
  const auto address = channel::parse_admin_address(*served);
  REQUIRE(address.ok());
  for (const char* limit : {"http_headers",
                            "http_silent",
                            "http_waiting",
                            "http_requests",
                            "http_unread_bytes",
                            "http_idle"})
    CHECK_THAT(runtime->metrics_text(), Contains(count(limit) + "0\n"));
  for (const int port : {*metrics_port, int{std::get<channel::LoopbackAddress>(*address).port}}) {
    CHECK_THAT(channel::ask(port, "GET /" + std::string(20'000, 'a')),
               Catch::StartsWith("HTTP/1.1 431 "));
  }
  CHECK_THAT(runtime->metrics_text(), Contains(count("http_headers") + "2\n"));
}

TEST_CASE("runtime: `signalbox ready` by its exit status", "[e2e][runtime][status][tools]") {
  constexpr int kReady = 0;
  constexpr int kNotReady = 1;
  constexpr int kNotAsked = 2;
  const TemporaryFolder folder;
  const std::string address = "unix:" + folder.path("admin.sock");
  const auto ask = [&](std::vector<std::string> more = {}) {
    more.insert(more.begin(), {SIGNALBOX_PROGRAM, "ready", "--admin", address});
    return run_program(more);
  };
  const std::vector<std::string> orders{"--target", "xds:///orders"};
  CHECK(ask().status == kNotAsked);  // Nothing listens there.

  const BackendProcess backend("good");
  const auto plane = start_plane("");
  const auto runtime = start_runtime(options_for(plane->address()));
  REQUIRE(runtime->serve_admin(address).ok());
  CHECK(ask().status == kReady);  // No target is in use.
  CHECK(ask(orders).status == kNotAsked);

  const auto channel = runtime->channel("xds:///orders");
  const Finished waiting = ask();
  CHECK(waiting.status == kNotReady);
  CHECK(waiting.output.empty());
  CHECK_THAT(waiting.errors, Contains(address));
  CHECK(ask(orders).status == kNotReady);

  plane->update(resources(simple_yaml("orders", "c", {backend.address})));
  REQUIRE(call(channel).ok());
  const Finished ready = ask(orders);
  CHECK(ready.status == kReady);
  CHECK(ready.output == "LIVE\n");
  CHECK(ready.errors.empty());
  CHECK(ask().status == kReady);
}

TEST_CASE("runtime: the status of ten thousand endpoints, while they change",
          "[e2e][runtime][status]") {
  constexpr int kEndpoints = 10'000;
  const auto addresses = [&](int from) {
    std::vector<std::string> all;
    for (int i = from; i < from + kEndpoints; ++i)
      all.push_back("10." + std::to_string(i / 65536) + "." + std::to_string(i / 256 % 256) + "." +
                    std::to_string(i % 256) + ":80");
    return all;
  };
  const auto plane = start_plane(simple_yaml("orders", "c", addresses(0)));
  RuntimeOptions options = options_for(plane->address());
  options.transport = EndpointTransport::kAssumed;
  const auto runtime = start_runtime(std::move(options));
  const auto router = runtime->router("xds:///orders");
  REQUIRE(router.ok());
  // The addresses of the status that are READY, sorted.
  const auto ready_addresses = [&] {
    std::vector<std::string> ready;
    const RuntimeStatus status = runtime->status();
    const ClusterStatus* cluster = cluster_of(status, "c");
    if (cluster == nullptr || cluster->priorities.empty()) return ready;
    REQUIRE(cluster->priorities[0].localities.size() == 1);
    for (const EndpointStatus& endpoint : cluster->priorities[0].localities[0].endpoints) {
      const AddressStatus& address = endpoint.addresses.at(0);
      if (address.state == EndpointState::kReady) ready.push_back(address.address.str());
    }
    std::ranges::sort(ready);
    return ready;
  };
  // Half of the endpoints stay with each change.
  for (const int from : {0, 5000, 10'000}) {
    std::vector<std::string> wanted = addresses(from);
    if (from > 0) plane->update(resources(endpoints_yaml("c", {wanted})));
    std::ranges::sort(wanted);
    REQUIRE(eventually([&] { return ready_addresses() == wanted; }));
    CHECK(runtime->ready("xds:///orders") == true);
  }
}

TEST_CASE("runtime: the status of a target without its listener says why",
          "[e2e][runtime][status]") {
  const auto plane = start_plane("");
  RuntimeOptions options = options_for(plane->address());
  options.resource_timeout = std::chrono::milliseconds(50);
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(eventually([&] { return !runtime->status().targets.at(0).failure.ok(); }));
  const RuntimeStatus status = runtime->status();
  CHECK_FALSE(status.ready);
  CHECK(status.targets[0].state == ConnectivityState::kTransientFailure);
  CHECK_THAT(std::string(status.targets[0].failure.message()), Contains("orders"));
}

}  // namespace signalbox::test
