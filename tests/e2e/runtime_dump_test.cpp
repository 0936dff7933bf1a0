// SPDX-License-Identifier: Apache-2.0
//
// A runtime's answers about its resources: dump, plan and explanation, as data and over the admin
// socket.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/e2e/runtime_world.hpp"
#include "tests/support/printed.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tools/admin_client.hpp"

namespace signalbox::test {
namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;

ResourceDump dump_of(const Runtime& runtime) {
  auto dump = runtime.dump();
  INFO(dump.status().ToString());
  REQUIRE(dump.ok());
  return *std::move(dump);
}

// The dump of one resource; nullopt: it is not watched.
std::optional<ResourceState> state_of(const Runtime& runtime, const ResourceKey& key) {
  for (ResourceState& state : dump_of(runtime).resources) {
    if (state.key == key) return std::move(state);
  }
  return std::nullopt;
}

bool has_status(const Runtime& runtime, const ResourceKey& key, ResourceStatus status) {
  const auto state = state_of(runtime, key);
  return state && state->status == status;
}

std::string serve(Runtime& runtime, const std::string& address) {
  const auto served = runtime.serve_admin(address);
  INFO(served.status().ToString());
  REQUIRE(served.ok());
  return *served;
}

absl::StatusOr<std::string> get(const std::string& address, const std::string& page) {
  const auto parsed = channel::parse_admin_address(address);
  REQUIRE(parsed.ok());
  return tools::admin_get(*parsed, page);
}

// The number of resources in the dump by type and state, as the metric has it.
std::map<std::pair<std::string, std::string>, double> counts(const ResourceDump& dump) {
  std::map<std::pair<std::string, std::string>, double> out;
  for (const ResourceState& state : dump.resources)
    out[{std::string(to_string(state.key.type)), std::string(cache_state(state))}] += 1;
  return out;
}

}  // namespace

TEST_CASE("runtime: the dump has every resource with its state, version, time and server",
          "[e2e][runtime][dump][A40]") {
  const BackendProcess backend("good");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  const auto before = std::chrono::system_clock::now();
  const auto runtime = start_runtime(options_for(plane->address()));
  CHECK(dump_of(*runtime).resources.empty());
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());

  const ResourceDump dump = dump_of(*runtime);
  CHECK(dump.node_id == kNodeId);
  REQUIRE(dump.servers.size() == 1);
  CHECK(dump.servers[0].server == plane->address());
  CHECK(dump.servers[0].connected);
  CHECK(dump.servers[0].error.empty());

  std::vector<ResourceKey> keys;
  for (const ResourceState& state : dump.resources) {
    INFO(state.key.type << " " << state.key.name);
    keys.push_back(state.key);
    CHECK(state.status == ResourceStatus::kAcked);
    CHECK(state.server == plane->address());
    CHECK_FALSE(state.version.empty());
    REQUIRE(state.updated);
    CHECK(*state.updated >= before);
    CHECK(*state.updated <= std::chrono::system_clock::now());
    CHECK(state.bytes);
    CHECK_FALSE(state.failure);
  }
  CHECK(keys == std::vector<ResourceKey>{{ResourceType::kListener, "orders"},
                                         {ResourceType::kRouteConfig, "orders"},
                                         {ResourceType::kCluster, "c"},
                                         {ResourceType::kEndpoints, "c"}});
}

TEST_CASE("runtime: the dump has the configurations that calls have seen, with their versions",
          "[e2e][runtime][dump]") {
  const BackendProcess backend("good");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  const auto before = std::chrono::system_clock::now();
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  const ResourceDump dump = dump_of(*runtime);
  REQUIRE_FALSE(dump.applied.empty());
  const AppliedConfig& newest = dump.applied.back();
  CHECK(newest.target == "xds:///orders");
  for (const std::string& version : newest.versions)
    CHECK_FALSE(version.empty());
  REQUIRE(newest.received);
  CHECK(*newest.received >= before);
  CHECK(*newest.received <= newest.served);
  CHECK(newest.served <= std::chrono::system_clock::now());
  CHECK(metric(*runtime, "signalbox_config_propagation_seconds_count", {"target=\"xds:///orders\""})
            .value_or(0) >= 1);
}

TEST_CASE("runtime: a plan of the resources that are in use", "[e2e][runtime][plan][A75-1]") {
  const BackendProcess backend("good");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  RuntimeOptions options = options_for(plane->address());
  options.aggregate_mode = AggregateMode::kTiered;
  const auto runtime = start_runtime(std::move(options));
  // No target is in use.
  CHECK(runtime->plan().status().code() == absl::StatusCode::kInvalidArgument);
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  for (const char* target : {"", "xds:///orders"}) {
    PlanRequest request;
    request.target = target;
    request.assumptions.down = {backend.address};
    const auto plan = runtime->plan(request);
    INFO(plan.status().ToString());
    REQUIRE(plan.ok());
    CHECK(plan->cluster.str() == "c");
    // aggregate_mode is kTiered, but `c` is a leaf, and a leaf is always in priority mode.
    CHECK(plan->mode == AggregateMode::kPriority);
    CHECK(plan->leaves[0].shares.tiered == PlannedShare{kAllCalls, 0});
    CHECK(plan->failing.priority == PlannedShare{0, kAllCalls});
  }
}

TEST_CASE("runtime: both kinds of admin socket show what dump_json has, and no more",
          "[e2e][runtime][dump][admin][A40]") {
  const BackendProcess backend("good");
  const TemporaryFolder folder;
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  const std::string path = folder.path("admin.sock");
  const std::string local = serve(*runtime, "unix:" + path);
  const std::string loopback = serve(*runtime, "localhost:0");
  CHECK(local == "unix:" + path);
  CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::all) ==
        static_cast<std::filesystem::perms>(0660));

  const auto json = runtime->dump_json();
  REQUIRE(json.ok());
  for (const std::string& address : {local, loopback}) {
    INFO(address);
    CHECK(get(address, "/config_dump").value() == *json);
    const Json narrowed = Json::parse(get(address, "/config_dump?type=CDS&name=c").value());
    REQUIRE(narrowed["generic_xds_configs"].size() == 1);
    const Json& cluster = narrowed["generic_xds_configs"][0];
    CHECK(cluster["client_status"] == "ACKED");
    CHECK(cluster["xds_config"]["@type"] == std::string(xds::kClusterTypeUrl));
    CHECK(cluster["xds_config"]["name"] == "c");
    CHECK_THAT(get(address, "/metrics").value(), Contains("signalbox_xds_connected"));
  }
  runtime = nullptr;
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK_FALSE(get(loopback, "/").ok());
}

TEST_CASE("runtime: a refused resource is NACKED with its error beside the last good",
          "[e2e][runtime][dump][A40][A46]") {
  const BackendProcess backend("good");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  const ResourceKey key{ResourceType::kCluster, "c"};
  const auto good = state_of(*runtime, key);
  REQUIRE(good);

  plane->update(resources(cluster_yaml("c", "", ", connect_timeout: 0s")));
  REQUIRE(eventually([&] { return has_status(*runtime, key, ResourceStatus::kNacked); }));
  const auto refused = state_of(*runtime, key);
  REQUIRE(refused);
  CHECK(refused->version == good->version);
  CHECK(refused->updated == good->updated);
  REQUIRE(refused->bytes);
  CHECK(*refused->bytes == *good->bytes);
  REQUIRE(refused->failure);
  CHECK_THAT(refused->failure->details, Contains("connect_timeout"));
  CHECK_FALSE(refused->failure->version.empty());
  CHECK(refused->failure->version != good->version);
  CHECK(refused->failure->at >= *good->updated);
  CHECK(cache_state(*refused) == "nacked_but_cached");

  plane->update(resources(cluster_yaml("c")));
  CHECK(eventually([&] { return has_status(*runtime, key, ResourceStatus::kAcked); }));
  CHECK_FALSE(state_of(*runtime, key)->failure);
}

TEST_CASE("runtime: a resource that the server lacks is said not to exist",
          "[e2e][runtime][dump][A40]") {
  const auto plane = start_plane(listener_yaml("orders", "orders"));
  RuntimeOptions options = options_for(plane->address());
  options.resource_timeout = std::chrono::milliseconds(50);
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  const ResourceKey key{ResourceType::kRouteConfig, "orders"};
  CHECK(eventually([&] { return has_status(*runtime, key, ResourceStatus::kDoesNotExist); }));
  const auto state = state_of(*runtime, key);
  REQUIRE(state);
  CHECK_FALSE(state->bytes);
  CHECK(state->version.empty());
}

TEST_CASE("runtime: of one bad among many the dump and the metrics say the same",
          "[e2e][runtime][dump][A40][A46]") {
  constexpr int kClusters = 20;
  std::vector<std::string> names;
  std::string yaml = listener_yaml("orders", "orders") + routes_yaml("orders", "all");
  for (int i = 0; i < kClusters; ++i) {
    names.push_back("c" + std::to_string(i));
    yaml += cluster_yaml(names.back(), "", i == 7 ? ", connect_timeout: 0s" : "");
  }
  const auto plane = start_plane(yaml + aggregate_yaml("all", names));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  const auto count = [&](ResourceType type, ResourceStatus status) {
    return std::ranges::count_if(dump_of(*runtime).resources, [&](const ResourceState& state) {
      return state.key.type == type && state.status == status;
    });
  };
  // The aggregate and all of its leaves but c7 are ACKed; c7 is NACKed.
  REQUIRE(eventually([&] {
    return count(ResourceType::kCluster, ResourceStatus::kAcked) == kClusters &&
           count(ResourceType::kCluster, ResourceStatus::kNacked) == 1;
  }));
  CHECK(has_status(*runtime, {ResourceType::kCluster, "c7"}, ResourceStatus::kNacked));
  CHECK(metric(*runtime, "signalbox_xds_resource_updates_invalid_total", {"\"CDS\""}) >= 1.0);
  CHECK(eventually([&] {
    return std::ranges::all_of(counts(dump_of(*runtime)), [&](const auto& entry) {
      return metric(*runtime,
                    "signalbox_xds_resources",
                    {"\"" + entry.first.first + "\"", "\"" + entry.first.second + "\""}) ==
             entry.second;
    });
  }));
  CHECK(metric(*runtime, "signalbox_xds_connected") == 1.0);
  CHECK(dump_of(*runtime).servers.at(0).connected);
  plane->stop();
  CHECK(eventually([&] { return !dump_of(*runtime).servers.at(0).connected; }));
  CHECK_FALSE(dump_of(*runtime).servers.at(0).error.empty());
  CHECK(eventually([&] { return metric(*runtime, "signalbox_xds_connected") == 0.0; }));
}

TEST_CASE("runtime: an admin address that others could reach, or is taken, is refused",
          "[e2e][runtime][admin]") {
  const auto plane = start_plane("");
  const auto runtime = start_runtime(options_for(plane->address()));
  CHECK(runtime->serve_admin("0.0.0.0:0").status().code() == absl::StatusCode::kInvalidArgument);
  const std::string taken = serve(*runtime, "127.0.0.1:0");
  CHECK(runtime->serve_admin(taken).status().code() == absl::StatusCode::kUnavailable);
}

TEST_CASE("runtime: ends promptly while others look in", "[e2e][runtime][admin][shutdown]") {
  const auto plane = start_plane("");
  for (int i = 0; i < 10; ++i) {
    auto runtime = start_runtime(options_for(plane->address()));
    const std::string address = serve(*runtime, "127.0.0.1:0");
    std::atomic<int> answers{0};
    std::thread other([&] {
      // Asks until the admin server has ended.
      for (auto code = absl::StatusCode::kOk; code != absl::StatusCode::kNotFound; ++answers)
        code = get(address, "/config_dump").status().code();
    });
    CHECK(eventually([&] { return answers > 3; }));
    runtime = nullptr;
    other.join();
  }
}

TEST_CASE("runtime: a call is explained over the admin socket, of targets that are in use",
          "[e2e][runtime][admin][explain]") {
  const BackendProcess backend("good");
  const TemporaryFolder folder;
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  auto runtime = start_runtime(options_for(plane->address()));
  const std::string address = serve(*runtime, "unix:" + folder.path("admin.sock"));
  const std::string question = "/explain?target=xds:%2F%2F%2Forders&method=/any.Service/Get";
  const auto none = get(address, question);
  CHECK(absl::IsInvalidArgument(none.status()));
  CHECK_THAT(std::string(none.status().message()), Contains("'xds:///orders' is not in use here"));

  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  const auto told = get(address, question + "&seed=3&header=authorization:secret");
  INFO(told.status().ToString());
  REQUIRE(told.ok());
  const Json json = Json::parse(*told);
  CHECK(json["outcome"] == "complete");
  CHECK(json["cluster"] == "c");
  CHECK(json["address"] == backend.address);
  CHECK(json["seed"] == 3);
  CHECK_THAT(*told, !Contains("secret"));
  CHECK(json["steps"].size() >= 4);
  const auto in_program = runtime->explain_json("xds:///orders", "/any.Service/Get", {}, 3);
  REQUIRE(in_program.ok());
  CHECK(*in_program == *told);

  const auto other = get(address, "/explain?target=xds:%2F%2F%2Fother&method=/m");
  CHECK_THAT(std::string(other.status().message()), Contains("there are: xds:///orders"));
}

}  // namespace signalbox::test
