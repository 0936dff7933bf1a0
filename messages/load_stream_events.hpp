// SPDX-License-Identifier: Apache-2.0
//
// The events that the stream of an endpoint's load reports receives, and the effects that it
// returns (A51). They pass between lb/subchannel/load_stream_core and the shell of one connection.

#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "absl/status/status.h"

#include "messages/ids.hpp"

namespace signalbox {

// --- events ---------------------------------------------------------------

/// A LoadListener wants a report each `period`. If there is a LoadListener with this number
/// already, its period changes.
struct LoadWatched {
  std::uint64_t listener = 0;
  Duration period{};
};

struct LoadUnwatched {
  std::uint64_t listener = 0;
};

/// A report came on the stream.
struct LoadReported {
  std::uint64_t stream = 0;
};

/// The stream has ended. The core ignores the end of a stream that it has closed (CloseLoadStream).
struct LoadStreamClosed {
  std::uint64_t stream = 0;
  absl::StatusCode code = absl::StatusCode::kUnknown;
};

/// The timer of StartLoadTimer is over, or was cancelled. The core ignores a cancelled timer.
struct LoadRetryDue {
  std::uint64_t timer = 0;
};

/// The connection is lost. No stream can be opened on it any more.
struct LoadConnectionLost {};

using LoadStreamEvent = std::variant<LoadWatched,
                                     LoadUnwatched,
                                     LoadReported,
                                     LoadStreamClosed,
                                     LoadRetryDue,
                                     LoadConnectionLost>;

// --- effects --------------------------------------------------------------

/// Opens the stream. No other stream is open.
struct OpenLoadStream {
  std::uint64_t stream = 0;
  Duration period{};  ///< 0: as often as the server allows.
};

struct CloseLoadStream {
  std::uint64_t stream = 0;
};

struct StartLoadTimer {
  std::uint64_t timer = 0;
  Duration delay{};
};

struct CancelLoadTimer {
  std::uint64_t timer = 0;
};

/// How a stream ended that signalbox did not close.
enum class LoadStreamEnd : std::uint8_t {
  kEnded,         ///< After a report.
  kNoReport,      ///< Before a report.
  kUnimplemented  ///< The endpoint has no such service: the stream is not opened again.
};
inline constexpr std::size_t kLoadStreamEnds = 3;

struct NoteLoadStreamEnd {
  LoadStreamEnd how = LoadStreamEnd::kEnded;
};

using LoadStreamEffect = std::
    variant<OpenLoadStream, CloseLoadStream, StartLoadTimer, CancelLoadTimer, NoteLoadStreamEnd>;
using LoadStreamEffects = std::vector<LoadStreamEffect>;

}  // namespace signalbox
