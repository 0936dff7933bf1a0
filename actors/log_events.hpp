// SPDX-License-Identifier: Apache-2.0
//
// log_events — turns events that an operator should see into lines of the log.
//
//   Observation, an xDS event ─▶ [log_events] ─▶ LogLine ─▶ Environment::log
//
// Pure functions. Most observations have no line.

#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "messages/load_events.hpp"
#include "messages/log_line.hpp"
#include "messages/observation.hpp"
#include "messages/xds_events.hpp"

namespace signalbox::actors {

std::optional<LogLine> line_of(const Observation& seen);

LogLine server_line(absl::string_view server, const ServerStatusChanged& changed);

/// The line for the refused resources of a response, with their errors. nullopt: no resource was
/// refused.
std::optional<LogLine> refused_line(absl::string_view server, const ResourcesReceived& received);

/// The line for a response that was refused as a whole.
LogLine refused_line(absl::string_view server, const ResponseRefused& refused);

LogLine load_line(absl::string_view server, const LoadServerNoted& noted);

}  // namespace signalbox::actors
