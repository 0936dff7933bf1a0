// SPDX-License-Identifier: Apache-2.0
//
// Targets, bootstraps and ports: mistakes of users get an error text. Also abseil's deadlock
// detection.
#include <cstdlib>

#include "absl/synchronization/mutex.h"
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/e2e/runtime_world.hpp"
#include "tests/support/temporary_folder.hpp"

namespace signalbox::test {
namespace {

using Catch::Matchers::Contains;

const char kPathVariable[] = "GRPC_XDS_BOOTSTRAP";
const char kTextVariable[] = "GRPC_XDS_BOOTSTRAP_CONFIG";

// Sets the bootstrap variables during this object's life, except those with a null value.
class Environment {
 public:
  Environment(const char* path, const char* text) {
    if (path != nullptr) ::setenv(kPathVariable, path, 1);
    if (text != nullptr) ::setenv(kTextVariable, text, 1);
  }

  ~Environment() {
    ::unsetenv(kPathVariable);
    ::unsetenv(kTextVariable);
  }

  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
};

std::string error_of(RuntimeOptions options) {
  const auto runtime = Runtime::start(std::move(options));
  CHECK_FALSE(runtime.ok());
  return std::string(runtime.status().message());
}

}  // namespace

// In Debian's build, abseil's deadlock detection would end the process at the second lock_both(),
// which locks in the other order.
TEST_CASE("runtime: no time is spent on looking for deadlocks unless that is wanted",
          "[e2e][runtime][scale]") {
  const auto plane = start_plane("");
  const auto runtime = start_runtime(options_for(plane->address()));
  absl::Mutex first;
  absl::Mutex second;
  const auto lock_both = [](absl::Mutex& one, absl::Mutex& other) {
    const absl::MutexLock outer(&one);
    const absl::MutexLock inner(&other);
    return true;
  };
  CHECK(lock_both(first, second));
  CHECK(lock_both(second, first));
}

TEST_CASE("runtime: every call on a channel for a wrong target says what is wrong with it",
          "[e2e][runtime][A27][A47]") {
  const RefusingAddress nobody;
  auto runtime = start_runtime(options_for(nobody.address()));

  struct Case {
    const char* target;
    const char* text;
  };

  for (const Case& wrong : {Case{"", "xds:"},
                            Case{"orders", "xds:"},
                            Case{"dns:///orders", "xds:"},
                            Case{"xds://unknown/orders", "unknown"}}) {
    INFO(wrong.target);
    const auto channel = runtime->channel(wrong.target);
    REQUIRE(channel != nullptr);
    for (const bool wait_for_ready : {false, true}) {
      const Answer answer = call(channel, {.wait_for_ready = wait_for_ready});
      INFO(answer.text());
      CHECK(answer.status.error_code() == grpc::StatusCode::UNAVAILABLE);
      CHECK_THAT(answer.status.error_message(), Contains(wrong.target) && Contains(wrong.text));
      CHECK_THAT(answer.status.error_message(), !Contains("shut"));
    }
    CHECK(channel->GetState(true) == GRPC_CHANNEL_TRANSIENT_FAILURE);
  }
  // The error is the same after the runtime's end.
  const auto channel = runtime->channel("orders");
  runtime = nullptr;
  CHECK_THAT(call(channel).status.error_message(), Contains("orders") && Contains("xds:"));
}

TEST_CASE("runtime: a bootstrap that is missing or wrong is named, with the field",
          "[e2e][runtime][A27]") {
  const TemporaryFolder folder;
  const std::string missing = folder.path("missing.json");
  const std::string no_json = folder.write("no.json", "xds_servers: none");
  const std::string no_uri =
      folder.write("uri.json", R"({"xds_servers": [{"channel_creds": [{"type": "insecure"}]}]})");

  SECTION("in the options") {
    RuntimeOptions options;
    options.bootstrap_path = missing;
    CHECK_THAT(error_of(options), Contains(missing) && Contains("cannot be read"));
    options.bootstrap_path = no_json;
    CHECK_THAT(error_of(options), Contains(no_json));
    options.bootstrap_path = no_uri;
    CHECK_THAT(error_of(options), Contains(no_uri) && Contains("xds_servers[0].server_uri"));
    options.bootstrap_path.reset();
    options.bootstrap_json = R"({"xds_servers": [], "node": {"id": 7}})";
    CHECK_THAT(error_of(options), Contains("node.id") && Contains("7"));
    options.bootstrap_json = R"({"xds_servers": []})";
    CHECK_THAT(error_of(options), Contains("xds_servers"));
  }
  SECTION("in the environment") {
    {
      const Environment environment(nullptr, nullptr);
      CHECK_THAT(error_of({}), Contains(kPathVariable) && Contains(kTextVariable));
    }
    {
      const Environment environment(missing.c_str(), nullptr);
      CHECK_THAT(error_of({}), Contains(kPathVariable) && Contains(missing));
    }
    {
      const Environment environment(no_uri.c_str(), "{}");
      CHECK_THAT(error_of({}), Contains(kPathVariable) && Contains("xds_servers[0].server_uri"));
    }
    {
      const Environment environment(nullptr, "{");
      CHECK_THAT(error_of({}), Contains(kTextVariable));
    }
  }
}

TEST_CASE("runtime: the bootstrap of the environment serves", "[e2e][runtime][A27]") {
  const TemporaryFolder folder;
  const BackendProcess backend("good");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  const std::string bootstrap = bootstrap_for(plane->address());
  const std::string path = folder.write("bootstrap.json", bootstrap);
  const bool is_path = GENERATE(true, false);
  const Environment environment(is_path ? path.c_str() : nullptr,
                                is_path ? nullptr : bootstrap.c_str());
  const auto runtime = start_runtime({});
  CHECK(call(runtime->channel("xds:///orders")).ok());
}

TEST_CASE("runtime: metrics are served, and a port in use is an error", "[e2e][runtime]") {
  const RefusingAddress nobody;
  auto runtime = start_runtime(options_for(nobody.address()));
  const auto port = runtime->serve_metrics("127.0.0.1:0");
  INFO(port.status().ToString());
  REQUIRE(port.ok());
  CHECK(*port > 0);
  const std::string address = "127.0.0.1:" + std::to_string(*port);
  const auto second = runtime->serve_metrics(address);
  CHECK(second.status().code() == absl::StatusCode::kUnavailable);
  CHECK_THAT(std::string(second.status().message()), Contains(address));
  for (const char* wrong : {"", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:70000"}) {
    INFO(wrong);
    CHECK_FALSE(runtime->serve_metrics(wrong).ok());
  }
  // The port is free again when the runtime has ended.
  runtime = start_runtime(options_for(nobody.address()));
  CHECK(runtime->serve_metrics(address).ok());
}

}  // namespace signalbox::test
