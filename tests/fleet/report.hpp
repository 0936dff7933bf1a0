// SPDX-License-Identifier: Apache-2.0
//
// report — outcomes as data, and as a table.
//
//   Outcome ─▶ json_of ─▶ --json FILE ─▶ tests/bench/fleet_page.py
//           └▶ table_of ─▶ stdout

#pragma once

#include <string>
#include <vector>

#include "tests/fleet/fleet.hpp"

namespace signalbox::fleet {

/// A JSON text of all outcomes: their options, numbers, the messages of each second, and the
/// clients that have the newest version at each second from its publication.
std::string json_of(const std::vector<Outcome>& outcomes);

/// A head and a line for each outcome, in aligned columns.
std::string table_of(const std::vector<Outcome>& outcomes);

}  // namespace signalbox::fleet
