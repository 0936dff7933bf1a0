// SPDX-License-Identifier: Apache-2.0
#include "lb/policy_options.hpp"

#include <catch2/catch.hpp>

namespace signalbox::lb {

TEST_CASE("policy_options: weights count where pick_first shuffles, unless switched off",
          "[lb][pick_first][A113]") {
  struct Row {
    const char* value;
    bool weighted;
  };

  const auto row = GENERATE(values<Row>(
      {{nullptr, true}, {"", true}, {"true", true}, {"False", true}, {"false", false}}));
  const auto options = policy_options_from([&](const char* name) {
    CHECK(absl::string_view(name) == "GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING");
    return row.value;
  });
  CHECK(options.weighted_shuffling == row.weighted);
}

}  // namespace signalbox::lb
