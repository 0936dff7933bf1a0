// SPDX-License-Identifier: Apache-2.0
//
// LogLine — a message for the operator, as a value.
//
//   actors, files, commands ─▶ LogLine ─▶ the program's own sink, or a line on stderr

#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace signalbox {

/// In rising order of weight.
enum class LogLevel : std::uint8_t {
  kInfo,     ///< A change that was asked for, or that mends something.
  kWarning,  ///< Calls still work, though something is not as it should be.
  kError,    ///< Something that was asked for is not done.
};

/// `info`, `warning` or `error`.
absl::string_view to_string(LogLevel level);

/// The text as one line that cannot steer a terminal: control characters, and bytes that are no
/// UTF-8, are escaped as in C++ (`\n`, `\x1b`).
std::string one_line(absl::string_view text);

}  // namespace signalbox
