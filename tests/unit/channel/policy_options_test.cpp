// SPDX-License-Identifier: Apache-2.0
#include "channel/policy_options.hpp"

#include <string>

#include <catch2/catch.hpp>

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
