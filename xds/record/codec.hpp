// SPDX-License-Identifier: Apache-2.0
//
// codec — recordings as bytes.
//
//   RecordingHeader, RecordedEvent ─▶ [encode] ─▶ file ─▶ [read_recording] ─▶ Recording
//
//   "signalbox-recording 2\n"                      the magic word and the format's number
//   length (4) checksum (4) Frame, …               numbers are little-endian; the first Frame is
//                                                  the header, all others are events
//
// A file that was cut off (its process was killed, or it was copied meanwhile) ends within a frame.
// A frame with a damaged length may look alike, because the checksum is only that of the Frame.
// Every error names the file and the byte.

#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "messages/recording.hpp"

namespace signalbox::xds {

/// The number of the format that this signalbox writes and reads.
inline constexpr int kRecordingFormat = 2;

/// The file of the segment before the one at `path`.
std::string earlier_segment(const std::string& path);

/// The first line of a file.
std::string recording_preamble();

/// One frame, with its length and checksum.
std::string encode(const RecordingHeader& header);
std::string encode(const RecordedEvent& event);

struct ReadRecording {
  Recording recording;
  /// The byte at which the whole frames end, when the file was cut off or a length is damaged;
  /// nullopt: it is whole.
  std::optional<std::size_t> cut_at;
};

/// `source`: the file's name, for errors. A file that was cut off has `cut_at`; it is an error if
/// not even its header is whole. INVALID_ARGUMENT: the bytes are no recording, are of another
/// format, or have an event that this signalbox does not know. DATA_LOSS: the recording is damaged
/// or was cut off within its header.
absl::StatusOr<ReadRecording> read_recording(absl::string_view bytes, absl::string_view source);

}  // namespace signalbox::xds
