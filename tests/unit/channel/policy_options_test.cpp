// SPDX-License-Identifier: Apache-2.0
#include "channel/policy_options.hpp"

#include <fstream>
#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "actors/io/large_pages.hpp"
#include "xds/bootstrap.hpp"
#include "xds/parse/parse_options.hpp"

using namespace signalbox;

TEST_CASE("policy options: a priority that is removed is kept only if the environment says true",
          "[channel][A115]") {
  struct Row {
    const char* value;
    bool keeps;
  };

  const auto row = GENERATE(
      values<Row>({{nullptr, false}, {"", false}, {"false", false}, {"1", false}, {"true", true}}));
  RuntimeOptions options;
  options.failover_timeout = std::chrono::seconds(3);
  const auto get = [&](const std::string& name) -> const char* {
    return name == "GRPC_EXPERIMENTAL_ENABLE_PRIORITY_LB_CHILD_POLICY_CACHE" ? row.value : nullptr;
  };
  const lb::PolicyOptions made = channel::policy_options(options, get);
  CHECK(made.keep_removed_priorities == row.keeps);
  CHECK(made.failover_timeout == std::chrono::seconds(3));
}

TEST_CASE("policy options: endpoints have the weights of A113, unless the environment says false",
          "[channel][A113]") {
  struct Row {
    const char* value;
    bool weighted;
  };

  const auto row = GENERATE(values<Row>(
      {{nullptr, true}, {"", true}, {"true", true}, {"False", true}, {"false", false}}));
  const auto get = [&](const std::string& name) -> const char* {
    return name == "GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING" ? row.value : nullptr;
  };
  CHECK(channel::policy_options({}, get).weighted_shuffling == row.weighted);
}

TEST_CASE("policy options: what calls touch at random stands on large pages", "[channel][A55]") {
  const auto get = [](const char*) -> const char* { return nullptr; };
  CHECK(channel::policy_options({}, get).session_memory == &actors::large_pages());
}

TEST_CASE("policy options: what the application says reaches every policy", "[channel][A42][A61]") {
  RuntimeOptions options;
  options.connection_attempt_delay = std::chrono::milliseconds(300);
  options.ring_size_cap = 0;
  options.standby_priorities = 2;
  const auto get = [](const char*) -> const char* { return nullptr; };
  CHECK(channel::policy_options(options, get).connection_attempt_delay ==
        std::chrono::milliseconds(300));
  CHECK(channel::policy_options(options, get).ring_size_cap == 1);
  CHECK(channel::policy_options(options, get).picker_interval == std::chrono::milliseconds(5));
  CHECK(channel::policy_options(options, get).standby_priorities == 2);
  CHECK(channel::policy_options({}, get).standby_priorities == 0);
  // Only gRPC's connections have streams of load reports.
  CHECK(channel::policy_options(options, get).load_streams);
  options.transport = EndpointTransport::kTcp;
  CHECK_FALSE(channel::policy_options(options, get).load_streams);
  options.ring_size_cap = 100;
  CHECK(channel::policy_options(options, get).ring_size_cap == 100);
}

TEST_CASE("policy options: aggregates are in priority mode unless the application says",
          "[channel][ENV-17][ENV-24]") {
  const auto get = [](const char*) -> const char* { return nullptr; };
  const lb::PolicyOptions unasked = channel::policy_options({}, get);
  CHECK(unasked.aggregate_mode == AggregateMode::kPriority);
  CHECK(unasked.panic_threshold == 0);
  CHECK(unasked.unreachable_is_unhealthy);
  RuntimeOptions options;
  options.aggregate_mode = AggregateMode::kTiered;
  options.panic_threshold = 50;
  options.unreachable_is_unhealthy = false;
  const lb::PolicyOptions made = channel::policy_options(options, get);
  CHECK(made.aggregate_mode == AggregateMode::kTiered);
  CHECK(made.panic_threshold == 50);
  CHECK_FALSE(made.unreachable_is_unhealthy);
}

TEST_CASE("policy options: docs/configure.md has a row for every environment variable that is read",
          "[channel][docs]") {
  std::set<std::string> asked;
  const auto get = [&](const std::string& name) -> const char* {
    asked.insert(name);
    return nullptr;
  };
  channel::policy_options(RuntimeOptions(), get);
  xds::parse_options_from(get, /*trusted_server=*/true);
  CHECK_FALSE(xds::load_bootstrap(xds::BootstrapEnvironment{get}).ok());

  std::ifstream file(SIGNALBOX_CONFIGURE_PAGE);
  REQUIRE(file.good());
  std::set<std::string> rows;
  const std::string begin = "| `GRPC_";
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(begin, 0) == 0) rows.insert(line.substr(3, line.find('`', 3) - 3));
  }
  CHECK(rows == asked);
}
