// SPDX-License-Identifier: Apache-2.0
//
// A file and the news that it changed, by inotify.
//
//   editor, deployment ─▶ file ─▶ [WatchedFile] ─▶ descriptor readable ─▶ read_change(): its text
//
// What is watched is the way to the file, not the file: editors put a new file in the old one's
// place, deployments redirect a link or exchange a whole folder, and either may be gone for a
// while. Whatever happens there, the text decides whether the file changed.
//
// inotify hears only of changes made on this machine: a file of a network file system is read at
// the start, and followed where its changes are made here.

#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "xds/limits.hpp"

namespace signalbox::actors {

/// The whole text of a file. The error says which file and why: PERMISSION_DENIED where it must not
/// be read, RESOURCE_EXHAUSTED where it is longer than `max_bytes` (found before it is read), else
/// NOT_FOUND.
absl::StatusOr<std::string> read_file(const std::string& path,
                                      std::size_t max_bytes = xds::kMaxFileBytes);

class WatchedFile {
 public:
  /// A relative path is of the folder that is the process's own now. Only regular files.
  static absl::StatusOr<WatchedFile> open(const std::string& path,
                                          std::size_t max_bytes = xds::kMaxFileBytes);

  WatchedFile(WatchedFile&& other) noexcept;
  WatchedFile& operator=(WatchedFile&&) = delete;
  ~WatchedFile();

  /// As given.
  const std::string& path() const { return path_; }

  /// As last read.
  const std::string& text() const { return text_; }

  /// To be polled: readable when something happened. Another one after a read_change().
  int descriptor() const { return descriptor_; }

  /// False: the system had nothing left to watch with, and read_change() is to be tried again, some
  /// time later, without being readable.
  bool is_watched() const { return watched_; }

  /// Takes what happened. Nothing where the text is what it was; an error where it cannot be read
  /// or watched. The first text after an error is a change, whatever it is.
  absl::StatusOr<std::optional<std::string>> read_change();

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
  std::set<std::pair<int, std::string>>
      steps_;  ///< Watch of a folder, and what is looked for there.
};

}  // namespace signalbox::actors
