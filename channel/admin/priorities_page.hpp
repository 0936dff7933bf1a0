// SPDX-License-Identifier: Apache-2.0
//
// priorities_page — which priority carried the calls of each cluster, and when: a timeline.
//
//   RuntimeStatus ─▶ [timelines] ─▶ rows of segments ─▶ [priorities_page] ─▶ GET /priorities
//                                                      SVG, and a table of the changes
//
//   all/near   ████ 0 ████████████▌ none ▌▒▒▒ 1 ▒▒▒▒▒▌████ 0 ████
//              12:00:00                  12:05:00               now
//
// Pure. The pictures have no fixed width: horizontal places are percentages, so texts keep their
// size on every screen.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "signalbox/runtime_status.hpp"

namespace signalbox::channel {

/// A time in which the same priority carried the calls, or no priority did.
struct TimelineSegment {
  WallTime begin;
  WallTime end;
  std::optional<std::size_t> priority;  ///< nullopt: no priority carried calls.
  std::string name;                     ///< The priority's name; may be empty.
  bool is_before_first = false;         ///< No priority has carried calls yet.

  friend bool operator==(const TimelineSegment&, const TimelineSegment&) = default;
};

struct Timeline {
  std::string target;
  ClusterName cluster;
  ClusterName aggregate;
  /// The segments follow one another without gaps, from the common begin of all rows until
  /// RuntimeStatus::made.
  std::vector<TimelineSegment> segments;
};

/// Returns one row for each cluster that has changes or an active priority. All rows begin at the
/// same time: some time before the oldest change, and at least 10 s ago, but not before the runtime
/// was started.
std::vector<Timeline> timelines(const RuntimeStatus& status);

std::string priorities_page(const RuntimeStatus& status);

}  // namespace signalbox::channel
