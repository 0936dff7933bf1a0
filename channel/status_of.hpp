// SPDX-License-Identifier: Apache-2.0
//
// status_of — makes the parts of a RuntimeStatus from the pieces that actors have published
// (actors::TargetPieces).
//
//   TargetPieces, changes, the time ─▶ [status_of] ─▶ TargetStatus, PriorityChange
//
// The configuration gives the structure (which clusters, priorities, endpoints); the pieces give
// the states. The numbers of calls are read from live counters. A piece that belongs to no part of
// the configuration is left out: its actor serves another configuration, or a removed priority that
// is still kept.

#pragma once

#include <string>

#include "actors/status_board.hpp"
#include "messages/counting/caller_stats.hpp"
#include "signalbox/runtime_status.hpp"

namespace signalbox::channel {

/// One moment, as the steady clock and the wall clock show it.
struct Moment {
  Instant steady{};
  WallTime wall{};

  /// The calendar time of an instant.
  WallTime of(Instant instant) const {
    return wall + std::chrono::duration_cast<WallTime::duration>(instant - steady);
  }
};

/// Makes the status of one target. `mode`: the mode of aggregates that name no mode
/// (RuntimeOptions::aggregate_mode).
TargetStatus status_of(const std::string& target,
                       const actors::TargetPieces& pieces,
                       AggregateMode mode,
                       const Moment& now);

/// Adds the numbers of the target's calls that have succeeded and failed.
void add_calls(TargetStatus& status, const CallerStats& callers);

PriorityChange status_of(const actors::ChangeLog::Change& change, const Moment& now);

}  // namespace signalbox::channel
