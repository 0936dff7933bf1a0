// SPDX-License-Identifier: Apache-2.0
//
// replay_report — what `signalbox replay` prints.
//
//   TimelineEntry each change ─┬▶ [timeline_text]  lines
//                              ├▶ [entries_json] ─▶ --json ─▶ FILE ─▶ --diff FILE
//   RuntimeStatus ─────────────┼▶ [state_text]     a tree        └▶ [first_difference]
//   Replay::unmatched() ───────┴▶ [unmatched_text] how far the lines can be trusted

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include <nlohmann/json.hpp>

#include "channel/status_timeline.hpp"
#include "signalbox/runtime_status.hpp"

namespace signalbox::tools {

/// One line for each entry: the seconds since the beginning, the kind, the subject, the text.
std::string timeline_text(const std::vector<channel::TimelineEntry>& entries);

/// Targets, clusters, priorities and addresses at one moment.
std::string state_text(const RuntimeStatus& status);

/// An array; `at_ns` is a number, all others are texts.
nlohmann::ordered_json entries_json(const std::vector<channel::TimelineEntry>& entries);

/// What it means that the actors asked so often for something that the recording does not have;
/// empty for 0.
std::string unmatched_text(std::uint64_t unmatched);

/// Compares the output of `signalbox replay --json` with that of another build (`other`, of the
/// file `name`). nullopt: the entries, the state, the explanation and `unmatched` are equal.
/// INVALID_ARGUMENT: `other` is no such output, or is of other events, of another time or of
/// another call.
absl::StatusOr<std::optional<std::string>> first_difference(const nlohmann::ordered_json& here,
                                                            absl::string_view other,
                                                            const std::string& name);

}  // namespace signalbox::tools
