// SPDX-License-Identifier: Apache-2.0
//
// The options of a runtime in its recording: each comes back, and no secret is there.
#include "channel/recorded_options.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "messages/century.hpp"
#include "xds/record/codec.hpp"

namespace signalbox::channel {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Settings = std::map<std::string, std::string>;

const char* no_variable(const char*) {
  return nullptr;
}

Settings settings_of(const RuntimeOptions& options) {
  return header_of(options, {}, options.seed.value_or(0), no_variable).settings;
}

struct ChangedSetting {
  std::string name;
  std::function<void(RuntimeOptions&)> change;
  std::string value;  ///< In the header.
};

/// Each setting once, with another value than by default.
std::vector<ChangedSetting> changed_settings() {
  std::vector<ChangedSetting> all = {
      {"resource_timeout", [](auto& it) { it.resource_timeout = 7s; }, "7000000000"},
      {"failover_timeout", [](auto& it) { it.failover_timeout = 7ms; }, "7000000"},
      {"initial_backoff", [](auto& it) { it.initial_backoff = 7us; }, "7000"},
      {"max_backoff", [](auto& it) { it.max_backoff = 7ns; }, "7"},
      {"lost_backoff", [](auto& it) { it.lost_backoff = 0ns; }, "0"},
      {"connection_attempt_delay", [](auto& it) { it.connection_attempt_delay = 1ns; }, "1"},
      {"standby_priorities", [](auto& it) { it.standby_priorities = ~0U; }, "4294967295"},
      {"max_connections_per_endpoint",
       [](auto& it) { it.max_connections_per_endpoint = 64; },
       "64"},
      {"ring_size_cap", [](auto& it) { it.ring_size_cap = ~0ULL; }, "18446744073709551615"},
      {"missing_cluster_fails_aggregate",
       [](auto& it) { it.missing_cluster_fails_aggregate = true; },
       "1"},
      {"aggregate_mode", [](auto& it) { it.aggregate_mode = AggregateMode::kTiered; }, "1"},
      {"panic_threshold", [](auto& it) { it.panic_threshold = 100; }, "100"},
      {"unreachable_is_unhealthy", [](auto& it) { it.unreachable_is_unhealthy = false; }, "0"},
      {"active_health_checks", [](auto& it) { it.active_health_checks = false; }, "0"},
      {"session_cookies.sealed", [](auto& it) { it.session_cookies.key_file = "keys"; }, "1"},
      {"transport", [](auto& it) { it.transport = EndpointTransport::kAssumed; }, "2"},
      {"seed", [](auto& it) { it.seed = 7; }, "7"},
  };
  for (const xds::NamedLimit& limit : xds::kNamedLimits) {
    const std::size_t value = 100 + all.size();
    all.push_back({"limits." + std::string(limit.name),
                   [&limit, value](auto& it) { it.limits.*limit.member = value; },
                   std::to_string(value)});
  }
  return all;
}

}  // namespace

TEST_CASE("recorded options: a changed setting is in the header, and comes back", "[recording]") {
  for (const ChangedSetting& changed : changed_settings()) {
    CAPTURE(changed.name);
    RuntimeOptions options;
    changed.change(options);
    const RecordingHeader header = header_of(options, {}, options.seed.value_or(0), no_variable);
    Settings expected = settings_of({});
    CHECK(expected[changed.name] != changed.value);
    expected[changed.name] = changed.value;
    CHECK(header.settings == expected);
    std::vector<std::string> unknown;
    const auto read = options_of(header, unknown);
    REQUIRE(read.ok());
    CHECK(unknown.empty());
    CHECK(settings_of(*read) == expected);
  }
}

TEST_CASE("recorded options: a duration of more than a century comes back as a century",
          "[recording]") {
  RuntimeOptions options;
  options.failover_timeout = std::chrono::nanoseconds::max();
  std::vector<std::string> unknown;
  const auto read = options_of(header_of(options, {}, 0, no_variable), unknown);
  REQUIRE(read.ok());
  CHECK(read->failover_timeout == kCentury);
}

TEST_CASE("recorded options: every setting is among those that the tests change", "[recording]") {
  Settings left = settings_of({});
  for (const ChangedSetting& changed : changed_settings())
    CHECK(left.erase(changed.name) == 1);
  for (const auto& [name, value] : left)
    FAIL_CHECK("no test changes " << name);
}

TEST_CASE("recorded options: secrets in options, bootstrap and environment are not in the header",
          "[recording]") {
  const std::string text = R"({
      "xds_servers": [{"server_uri": "plane:443", "channel_creds": [{"type": "tls", "config": {
          "certificate_file": "/secret/a.pem", "private_key_file": "/secret/a.key"}}]}],
      "node": {"id": "orders-1", "metadata": {"TOKEN": "secret"}}})";
  RuntimeOptions options;
  options.bootstrap_json = text;
  options.session_cookies.key_file = "/secret/keys";
  options.channel_arguments.SetString("token", "secret");
  const auto bootstrap = xds::parse_bootstrap(text, "the test");
  REQUIRE(bootstrap.ok());
  const RecordingHeader header = header_of(options, *bootstrap, 7, [](const char* name) {
    return std::string(name).starts_with("GRPC_XDS_BOOTSTRAP") ? "secret" : "true";
  });
  CHECK(header.environment.contains("GRPC_EXPERIMENTAL_XDS_AUTHORITY_REWRITE"));
  CHECK_THAT(header.bootstrap, Contains("orders-1"));
  CHECK_THAT(xds::encode(header), !Contains("secret"));
}

}  // namespace signalbox::channel
