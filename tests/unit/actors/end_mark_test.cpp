// SPDX-License-Identifier: Apache-2.0
#include "actors/io/end_mark.hpp"

#include <optional>
#include <string>
#include <utility>

#include <catch2/catch.hpp>

namespace signalbox::actors {

TEST_CASE("end_mark: picks look while pickers have a connection that has ended", "[actors][io]") {
  struct Case {
    std::string steps;  // s: set(), g: let_go(), d: destroyed.
    bool is_set;
    bool is_any_set;
  };

  const auto [steps, is_set, is_any_set] = GENERATE(Case{"", false, false},
                                                    Case{"s", true, true},
                                                    Case{"ss", true, true},
                                                    Case{"g", false, false},
                                                    Case{"sg", true, false},
                                                    Case{"ssgg", true, false},
                                                    Case{"gs", true, false},
                                                    Case{"sgs", true, false},
                                                    Case{"sd", true, false},
                                                    Case{"sgd", true, false});
  CAPTURE(steps);
  EndMark other;  // Without it, a number below zero would look like zero.
  std::optional<EndMark> mark(std::in_place);
  for (const char step : steps) {
    if (step == 's') mark->set();
    if (step == 'g') mark->let_go();
    if (step == 'd') mark.reset();
  }
  if (mark) CHECK(mark->is_set() == is_set);
  CHECK(EndMark::is_any_set() == is_any_set);
  mark.reset();
  CHECK_FALSE(EndMark::is_any_set());
  other.set();
  CHECK(EndMark::is_any_set());
}

}  // namespace signalbox::actors
