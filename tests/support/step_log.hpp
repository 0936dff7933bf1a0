// SPDX-License-Identifier: Apache-2.0
//
// StepLog — an explanation as lines: "part: decision; reason; source". An empty reason or source is
// left out.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lb/trace.hpp"

namespace signalbox::testing {

inline std::string to_line(const PickStep& step) {
  std::string line = step.part + ": " + step.decision;
  for (const std::string* part : {&step.reason, &step.source}) {
    if (!part->empty()) line += "; " + *part;
  }
  return line;
}

struct StepLog {
  explicit StepLog(Instant now = Instant())
      : trace(now, [this](const PickStep& step) { lines.push_back(to_line(step)); }) {}

  std::vector<std::string> lines;
  lb::TimedTrace trace;
};

/// The picker's explanation of a call.
inline std::vector<std::string> steps_of(const PickerPtr& picker,
                                         const PickArgs& args = {},
                                         Instant now = Instant()) {
  StepLog log(now);
  picker->explain(args, log.trace);
  return log.lines;
}

}  // namespace signalbox::testing
