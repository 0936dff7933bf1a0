// SPDX-License-Identifier: Apache-2.0
//
// WatchedFile — a file, and notifications of its changes by inotify.
//
//   editor, deployment ─▶ file ─▶ [WatchedFile] ─▶ descriptor readable ─▶ read_change(): its text
//
// The folders and links on the path are watched, not the file itself. Editors put a new file in the
// old file's place, and deployments redirect a link or exchange a whole folder. The file, the link
// or the folder may be missing for a moment. After any event on the path, the text decides whether
// the file has changed.
//
// inotify reports only changes made on this machine. After a change by another machine (a network
// file system) there is no event, so only read_again() is sure to find it.

#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "xds/limits.hpp"

namespace signalbox::actors {

/// The whole text of a file. Errors name the file and the reason: PERMISSION_DENIED if reading is
/// forbidden, RESOURCE_EXHAUSTED if the file is longer than `max_bytes`, else NOT_FOUND. `limit`:
/// the name of the limit that `max_bytes` is, for that error; empty: users cannot change it.
absl::StatusOr<std::string> read_file(const std::string& path,
                                      std::size_t max_bytes = xds::kMaxFileBytes,
                                      absl::string_view limit = "");

/// A fault of a new text is reported only after this time, because a file that is written in place
/// is incomplete for a moment.
inline constexpr std::chrono::milliseconds kFileSettling(200);

class WatchedFile {
 public:
  /// Reads the file, and begins to watch it; returns an error if either fails. A relative `path`
  /// starts at the process's working directory at this moment. The file must be a regular file.
  static absl::StatusOr<WatchedFile> open(const std::string& path,
                                          std::size_t max_bytes = xds::kMaxFileBytes);

  WatchedFile(WatchedFile&& other) noexcept;
  WatchedFile& operator=(WatchedFile&&) = delete;
  ~WatchedFile();

  /// The path as it was given to open().
  const std::string& path() const { return path_; }

  /// The text as it was last read.
  const std::string& text() const { return text_; }

  /// The descriptor to poll: it is readable after an event. read_change() and read_again() may
  /// replace it.
  int descriptor() const { return descriptor_; }

  /// False: the file could not be watched, for example because the system had no watches left. The
  /// descriptor may then miss changes, so call read_change() again later.
  bool is_watched() const { return watched_; }

  /// Handles the events. nullopt: the text has not changed, or an earlier error about watching
  /// still holds. An error: the file cannot be read or watched. The first text after an error
  /// counts as a change, whatever it is.
  absl::StatusOr<std::optional<std::string>> read_change();

  /// Reads the file now, also without an event, because inotify reports no change that another
  /// machine made. OK: text() is the file's text, changed or not. An error: the file cannot be
  /// read. If the file can be read but not watched, the result is OK, and is_watched() is false.
  absl::Status read_again();

 private:
  WatchedFile(const std::string& path, std::size_t max_bytes);

  absl::Status watch();
  absl::Status read();
  bool take_events();

  std::string path_;
  std::size_t max_bytes_;
  std::string absolute_;
  std::string text_;
  bool lost_ = false;
  bool watched_ = true;
  int descriptor_ = -1;
  /// The steps of the path, links followed. A step is inotify's watch of a folder, and the name in
  /// that folder where the path goes on. An event concerns the path if it names such a pair.
  std::set<std::pair<int, std::string>> steps_;
};

}  // namespace signalbox::actors
