// SPDX-License-Identifier: Apache-2.0
//
// LogLine — a message for the operator, as a value.
//
//   actors, files, commands ─▶ LogLine ─▶ the program's own sink, or a line on stderr

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace signalbox {

/// In rising order of severity.
enum class LogLevel : std::uint8_t {
  kInfo,     ///< A change that was asked for, or that mends something.
  kNotice,   ///< An event that an operator waits for: a target is served for the first time.
  kWarning,  ///< Something is not as it should be. Most such faults leave calls working.
  kError,    ///< The program or signalbox has a fault, or something asked for is not done.
};

/// `info`, `notice`, `warning` or `error`.
absl::string_view to_string(LogLevel level);

/// The kinds of events. Each kind has a rate limit of its own.
enum class LogKind : std::uint8_t {
  /// Calls of a target follow another configuration from now on, or the target is served for the
  /// first time.
  kConfigApplied,
  kConfigRefused,  ///< A resource, a response, a resource file or an option is not used.
  kControlPlane,   ///< A control plane was lost or is back, or load reports to it have a fault.
  kPriority,       ///< The priority that carries a cluster's calls has changed.
  kEjection,       ///< Outlier detection has ejected endpoints.
  kCertificate,    ///< A certificate or key file is bad.
  kSession,        ///< The key file of session cookies has a fault, or a cookie cannot be used.
  kSecurity,       ///< A setting is less safe than it could be.
  kActor,          ///< A policy's actor died of an exception.
  kCallObserver,   ///< The program's observer of calls threw an exception.
  kEndpointLoad,   ///< An endpoint does not report its load on a stream, as it should.
  kRecording,      ///< A fault of the recording (RuntimeOptions::record), which may have ended.
};
inline constexpr std::size_t kLogKinds = 12;

/// `config_applied` for kConfigApplied, and so on.
absl::string_view to_string(LogKind kind);

struct LogLine {
  LogLevel level = LogLevel::kInfo;
  LogKind kind = LogKind::kConfigApplied;
  std::string text;
  /// The number of lines of this kind that the rate limit has left out since the last line of the
  /// kind that was written.
  std::uint64_t left_out = 0;

  friend bool operator==(const LogLine&, const LogLine&) = default;
};

/// The text, and how many lines were left out before it.
std::string text_of(const LogLine& line);

/// The text as one line that cannot steer a terminal: control characters, and bytes that are no
/// UTF-8, are escaped as in C++ (`\n`, `\x1b`).
std::string one_line(absl::string_view text);

}  // namespace signalbox
