// SPDX-License-Identifier: Apache-2.0
//
// Scenario — what happens to the control plane, as a row of steps. Time 0 is the event that the
// scenario is about; all clients have been served before.
//
//   scenario   at 0                           then
//   push       a new version of all types     nothing
//   handover   all connections end            it is back at once, with a new version of all types
//   restart    all connections end            5 s later: as handover
//   away       all connections end            10 min later: as handover
//   slow       as restart                     its capacity is a tenth
//   bad        a cluster that clients refuse  60 s later: a good one
//   bad-again  as bad                         it answers each NACK with the refused response again
//
// A NACK is answered again by servers that compare only the versions.

#pragma once

#include <vector>

#include "absl/strings/string_view.h"

#include "messages/ids.hpp"
#include "tests/fleet/server.hpp"

namespace signalbox::fleet {

struct Step {
  Duration at;
  void (*take)(Server& server, double capacity);  ///< `capacity`: that of the fleet's options.
};

struct Scenario {
  absl::string_view name;
  absl::string_view title;
  std::vector<Step> steps;  ///< In the order of time.

  /// When the newest version can first be had: the time of the last step.
  Duration published() const { return steps.back().at; }
};

const std::vector<Scenario>& scenarios();

/// nullptr: there is none with the name.
const Scenario* scenario_named(absl::string_view name);

}  // namespace signalbox::fleet
