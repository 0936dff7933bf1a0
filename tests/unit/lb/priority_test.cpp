// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/priority.hpp"

#include <catch2/catch.hpp>

#include "lb/policy/priority_rules.hpp"
#include "tests/support/policy_harness.hpp"

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;

namespace {

PriorityChild in(ConnectivityState state) {
  return {true, state, false};
}

PriorityChild within_window(ConnectivityState state = kConnecting) {
  return {true, state, true};
}

PriorityChild not_started() {
  return {};
}

}  // namespace

TEST_CASE("priority: chooses the child that should carry traffic", "[lb][priority][A56][A75-1]") {
  struct Row {
    const char* when;
    std::vector<PriorityChild> children;
    std::size_t chosen;
    std::size_t considered;
    bool deactivates;
  };

  const auto row = GENERATE(values<Row>({
      {"the first is ready", {in(kReady), in(kReady)}, 0, 1, true},
      {"the first is idle", {in(kIdle), in(kReady)}, 0, 1, true},
      {"the first failed and the second is idle", {in(kFailure), in(kIdle)}, 1, 2, true},
      {"the first still has its window", {within_window(), in(kReady)}, 0, 1, false},
      {"the first outlived its window", {in(kConnecting), in(kReady)}, 1, 2, true},
      {"the first failed, the second is not started", {in(kFailure), not_started()}, 1, 2, false},
      {"nothing is started", {not_started(), not_started()}, 0, 1, false},
      {"nobody is usable, one connects",
       {in(kFailure), in(kConnecting), in(kFailure)},
       1,
       3,
       false},
      {"two connect, the first of them", {in(kConnecting), in(kConnecting)}, 0, 2, false},
      {"all failed, the last explains why", {in(kFailure), in(kFailure)}, 1, 2, false},
  }));
  DYNAMIC_SECTION(row.when) {
    const PriorityChoice choice = choose_priority(row.children);
    CHECK(choice.index == row.chosen);
    CHECK(choice.considered == row.considered);
    CHECK(choice.deactivate_lower == row.deactivates);
  }
}

TEST_CASE("priority: the choice is idempotent in every combination of states",
          "[lb][priority][A56][B3]") {
  const std::vector<PriorityChild> kinds = {not_started(),
                                            in(kIdle),
                                            in(kConnecting),
                                            in(kReady),
                                            in(kFailure),
                                            within_window(),
                                            within_window(kFailure)};
  for (const PriorityChild& first : kinds) {
    for (const PriorityChild& second : kinds) {
      for (const PriorityChild& third : kinds) {
        std::vector<PriorityChild> children = {first, second, third};
        const PriorityChoice choice = choose_priority(children);
        PriorityChild& chosen = children[choice.index];
        if (!chosen.started) chosen = within_window();
        const PriorityChoice again = choose_priority(children);
        CHECK(again.index == choice.index);
        CHECK(again.considered == choice.considered);
        for (std::size_t i = 0; i < choice.index; ++i)
          CHECK(children[i].started);
      }
    }
  }
}
