// SPDX-License-Identifier: Apache-2.0
//
// The events and effects of an LRS session: the load reports to one server, over all its streams.
//
//   load_reporter: stream, book ─▶ LrsSessionEvent ─▶ xds/lrs/lrs_session ─▶ LrsSessionEffect
//
// Streams have the events and effects of ADS streams (xds_events.hpp).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "messages/load_reporting.hpp"
#include "messages/xds_events.hpp"

namespace signalbox {

/// A cluster with load reports to `server` is in use.
struct LoadReportsWanted {
  ServerId server = 0;
};

/// The counts that ReadLoad has asked for.
struct LoadRead {
  LoadReading reading;
};

using LrsSessionEvent = std::variant<LoadReportsWanted,
                                     AdsStreamOpened,
                                     AdsBytesReceived,
                                     AdsBytesWritten,
                                     AdsStreamClosed,
                                     LoadRead,
                                     TimerFired>;

/// Asks for the counts that were not reported yet. The event LoadRead brings the answer.
struct ReadLoad {
  /// The clusters to read. nullopt: no counts are read; the answer has only LoadReading::is_in_use
  /// and is_owed.
  std::optional<LoadSelection> selection;
};

/// The reading with this number has been reported, or it had nothing to report. The next reading
/// does not contain the counts of this reading again.
struct SettleLoad {
  std::uint64_t number = 0;
};

/// A report has been sent to the server. Only metrics use this effect.
struct LoadReportSent {};

/// A remark for the log, for example that the server asks for the load of a cluster that is unknown
/// here, or that the session failed. The session returns the same text again only after many other
/// texts, or, for the text of a failure, after a response from the server.
struct LoadServerNoted {
  std::string text;
};

using LrsSessionEffect = std::variant<OpenStream,
                                      CloseStream,
                                      SendBytes,
                                      ReadNext,
                                      ReadLoad,
                                      SettleLoad,
                                      LoadReportSent,
                                      LoadServerNoted,
                                      StreamEnded,
                                      StartTimer>;
using LrsSessionEffects = std::vector<LrsSessionEffect>;

}  // namespace signalbox
