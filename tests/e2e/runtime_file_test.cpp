// SPDX-License-Identifier: Apache-2.0
//
// A runtime without a control plane: its resources are in a file that changes.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/e2e/runtime_world.hpp"
#include "tests/support/temporary_folder.hpp"

namespace signalbox::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

// A bootstrap that names a resource file beside it, and the runtime's log.
struct World {
  explicit World(const std::string& yaml) {
    write(yaml);
    folder.write("bootstrap.json", R"({"signalbox.resources": "resources.yaml"})");
  }

  void write(const std::string& yaml) const {
    folder.write("resources.yaml", "resources:\n" + yaml);
  }

  std::string file() const { return folder.path("resources.yaml"); }

  RuntimeOptions options() {
    RuntimeOptions options = options_for("");
    options.bootstrap_json = std::nullopt;
    options.bootstrap_path = folder.path("bootstrap.json");
    options.log = [this](const std::string& text) {
      const std::lock_guard lock(mutex);
      log += text + "\n";
    };
    return options;
  }

  bool said(const std::string& text) {
    return eventually([&] {
      const std::lock_guard lock(mutex);
      return absl::StrContains(log, text);
    });
  }

  TemporaryFolder folder;
  std::mutex mutex;
  std::string log;
};

bool serves(const std::shared_ptr<grpc::ChannelInterface>& channel, const std::string& cluster) {
  return eventually([&] {
    const Answer answer = call(channel);
    return answer.ok() && answer.cluster == cluster;
  });
}

}  // namespace

TEST_CASE("runtime: a resource file serves drop-in calls and picks", "[e2e][runtime][file]") {
  const BackendProcess backend("good");
  World world(simple_yaml("orders", "c", {backend.address}));
  const auto runtime = start_runtime(world.options());
  const auto channel = runtime->channel("xds:///orders");
  const Answer answer = call(channel);
  INFO(answer.text());
  CHECK(answer.cluster == "good");

  const auto router = runtime->router("xds:///orders");
  REQUIRE(router.ok());
  CHECK(eventually([&] {
    auto pick = (*router)->pick({.path = "/signalbox.demo.v1.Orders/Place"});
    return pick.outcome() == PickOutcome::kComplete &&
           pick.connection()->address().str() == backend.address;
  }));
  const std::string server = absl::StrCat("xds_server=\"file:", world.file(), "\"");
  CHECK(metric(*runtime, "signalbox_xds_connected", {server}) == 1);
  CHECK(metric(*runtime, "signalbox_xds_resource_updates_invalid_total", {server}) == 0);
  CHECK(metric(*runtime, "signalbox_config_rejected_total") == 0);
}

TEST_CASE("runtime: a resource file that is edited under load fails no call",
          "[e2e][runtime][file]") {
  const BackendProcess one("one");
  const BackendProcess two("two");
  const BackendProcess three("three");
  World world(simple_yaml("orders", "c", {one.address}));
  const auto runtime = start_runtime(world.options());
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(serves(channel, "one"));
  Traffic traffic(channel, 2);

  // Other endpoints.
  world.write(simple_yaml("orders", "c", {two.address}));
  CHECK(serves(channel, "two"));
  // Another route, to a new cluster.
  world.write(simple_yaml("orders", "d", {three.address}));
  CHECK(serves(channel, "three"));

  // A file that ends in the middle, written in place as an editor may do.
  std::ofstream(world.file()) << "resources:\n" << listener_yaml("orders", "orders").substr(0, 90);
  CHECK(world.said(world.file() + ": line 2"));
  CHECK(metric(*runtime, "signalbox_config_rejected_total", {"reason=\"parse\""}) == 1);
  CHECK(serves(channel, "three"));
  // No file.
  std::filesystem::remove(world.file());
  CHECK(world.said("cannot read " + world.file()));
  CHECK(metric(*runtime, "signalbox_config_rejected_total", {"reason=\"unreadable\""}) == 1);
  CHECK(serves(channel, "three"));
  // A file without resources. As when a server deletes all of them, the target keeps the last good
  // ones.
  std::ofstream(world.file()) << "resources: []\n";
  std::ofstream(world.file()) << "resources: []";
  CHECK(serves(channel, "three"));
  // The first file again.
  world.write(simple_yaml("orders", "c", {one.address}));
  CHECK(serves(channel, "one"));
  CHECK(traffic.finish().empty());
}

TEST_CASE("runtime: of a file too it is known when calls have seen its last change",
          "[e2e][runtime][file][metrics][dump]") {
  const BackendProcess one("one");
  const BackendProcess two("two");
  World world(simple_yaml("orders", "c", {one.address}));
  const auto runtime = start_runtime(world.options());
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(serves(channel, "one"));
  const auto propagated = [&](const std::string& part) {
    const std::string name = "signalbox_config_propagation_seconds_" + part;
    return metric(*runtime, name, {"target=\"xds:///orders\""}).value_or(0);
  };
  const auto newest = [&] {
    const auto dump = runtime->dump();
    REQUIRE(dump.ok());
    REQUIRE_FALSE(dump->applied.empty());
    return dump->applied.back();
  };
  CHECK(eventually([&] { return propagated("count") >= 1; }));
  const double before = propagated("count");
  const AppliedConfig first = newest();
  REQUIRE(first.received);

  const auto changed = std::chrono::system_clock::now();
  world.write(simple_yaml("orders", "c", {two.address}));
  REQUIRE(serves(channel, "two"));
  const auto seen = std::chrono::system_clock::now();
  CHECK(eventually([&] { return propagated("count") > before; }));
  CHECK(propagated("sum") > 0);
  const AppliedConfig second = newest();
  CHECK(second.target == "xds:///orders");
  CHECK(second.versions != first.versions);
  for (const std::string& version : second.versions)
    CHECK_FALSE(version.empty());
  REQUIRE(second.received);
  CHECK(*second.received >= changed);
  CHECK(*second.received <= second.served);
  CHECK(second.served <= seen);
}

TEST_CASE("runtime: what goes beyond a limit of the user's is refused by its name",
          "[e2e][runtime][file][limits]") {
  const BackendProcess one("one");
  const BackendProcess two("two");
  World world(simple_yaml("orders", "c", {one.address}));
  RuntimeOptions options = world.options();
  options.limits.max_endpoints = 1;
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(serves(channel, "one"));

  // Without the limit, every other call would go to the second backend.
  world.write(simple_yaml("orders", "c", {two.address, one.address}));
  CHECK(
      world.said("EDS resource \"c\": endpoints: must have at most 1 endpoints in all, found 2 "
                 "(limit max_endpoints)"));
  for (int i = 0; i < 10; ++i)
    CHECK(call(channel).cluster == "one");
}

TEST_CASE("runtime: of an invalid resource in the file the last good version serves",
          "[e2e][runtime][file][A46]") {
  const BackendProcess one("one");
  const BackendProcess two("two");
  World world(simple_yaml("orders", "c", {one.address}));
  const auto runtime = start_runtime(world.options());
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(serves(channel, "one"));

  // The endpoints are valid and are applied; the cluster is not.
  world.write(listener_yaml("orders", "orders") + routes_yaml("orders", "c") +
              cluster_yaml("c", "", ", connect_timeout: 0s") +
              endpoints_yaml("c", {{two.address}}));
  CHECK(serves(channel, "two"));
  CHECK(world.said(world.file() +
                   ": line 4: resources[2]: CDS resource \"c\": connect_timeout: must be"));
  CHECK(metric(*runtime, "signalbox_xds_resource_updates_invalid_total").value_or(0) > 0);
  const auto rejected = [&](const std::string& reason) {
    return metric(*runtime, "signalbox_config_rejected_total", {"reason=\"" + reason + "\""});
  };
  CHECK(rejected("semantic").value_or(0) > 0);
  CHECK(rejected("parse") == 0);
}

TEST_CASE("runtime: what the file lacks fails at once, and comes when it is added",
          "[e2e][runtime][file][A88]") {
  const BackendProcess backend("good");
  World world(listener_yaml("orders", "orders") + routes_yaml("orders", "c") +
              listener_yaml("routeless", "none"));
  RuntimeOptions options = world.options();
  options.resource_timeout = std::chrono::hours(1);
  const auto runtime = start_runtime(std::move(options));

  struct Row {
    const char* target;
    std::string missing;
    std::string there;
  };

  for (const Row& row :
       {Row{"xds:///absent",
            "LDS resource \"absent\"",
            "; its LDS resources are: \"orders\", \"routeless\""},
        Row{"xds:///routeless", "RDS resource \"none\"", "; its RDS resources are: \"orders\""},
        Row{"xds:///orders", "CDS resource \"c\"", ", which has no CDS resource"}}) {
    const Answer answer = call(runtime->channel(row.target));
    INFO(answer.text());
    CHECK(answer.status.error_code() == grpc::StatusCode::UNAVAILABLE);
    CHECK_THAT(answer.status.error_message(),
               Contains(row.missing + ": not in " + world.file() + row.there));
  }
  world.write(simple_yaml("orders", "c", {backend.address}));
  CHECK(serves(runtime->channel("xds:///orders"), "good"));
}

TEST_CASE("runtime: does not start with a resource file that is bad", "[e2e][runtime][file]") {
  World world("");

  struct Row {
    std::string text;
    std::string error;  // The text that follows the file's path in the error.
  };

  for (const Row& row : {Row{"resources: [", ": line 1"},
                         Row{"resources:\n  - {name: a}\n", ": line 2: resources[0]: @type"},
                         Row{absl::StrCat("resources:\n", cluster_yaml("c"), cluster_yaml("c")),
                             ": line 3: resources[1]: "}}) {
    world.folder.write("resources.yaml", row.text);
    const auto runtime = Runtime::start(world.options());
    CHECK(absl::IsInvalidArgument(runtime.status()));
    CHECK_THAT(std::string(runtime.status().message()), StartsWith(world.file() + row.error));
  }
  std::filesystem::remove(world.file());
  CHECK(Runtime::start(world.options()).status().message() ==
        "cannot read " + world.file() + ": No such file or directory");

  RuntimeOptions both = world.options();
  both.bootstrap_path = std::nullopt;
  both.bootstrap_json =
      R"({"signalbox.resources": "r.yaml",
          "xds_servers": [{"server_uri": "cp:1", "channel_creds": [{"type": "insecure"}]}]})";
  const auto neither = Runtime::start(std::move(both));
  CHECK(neither.status().message() ==
        "inline bootstrap: signalbox.resources: expected it or xds_servers, found both");
}

TEST_CASE("runtime: ends while its resource file changes", "[e2e][runtime][file][shutdown]") {
  const BackendProcess backend("good");
  const std::string good = simple_yaml("orders", "c", {backend.address});
  World world(good);
  for (int round = 0; round < 20; ++round) {
    auto runtime = start_runtime(world.options());
    const auto channel = runtime->channel("xds:///orders");
    Calls calls(channel);
    calls.start(2, {});
    for (int i = 0; i <= round % 4; ++i)
      world.write(i % 2 == 0 ? "  - {}\n" : listener_yaml("orders", "orders"));
    runtime = nullptr;
    for (const Answer& answer : calls.finish()) {
      INFO(answer.text());
      CHECK((answer.ok() || answer.status.error_code() == grpc::StatusCode::UNAVAILABLE));
    }
    world.write(good);
  }
}

TEST_CASE("runtime: the quick start's files serve its two backends", "[e2e][runtime][file]") {
  RuntimeOptions options = options_for("");
  options.bootstrap_json = std::nullopt;
  options.bootstrap_path = std::string(SIGNALBOX_CONF) + "/bootstrap.file.example.json";
  const auto runtime = start_runtime(std::move(options));
  const auto router = runtime->router("xds:///orders");
  REQUIRE(router.ok());
  // The metric counts endpoints whether or not a server listens at their addresses.
  const std::string endpoints = "signalbox_endpoints";
  CHECK(eventually([&] {
    const auto pick = (*router)->pick({.path = "/any.Service/Method"});
    return metric(*runtime, endpoints, {"cluster=\"orders\""}) == 2;
  }));
}

}  // namespace signalbox::test
