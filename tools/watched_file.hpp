// SPDX-License-Identifier: Apache-2.0
//
// A file and the news that it changed, by inotify.
//
//   editor, deployment ─▶ file ─▶ [WatchedFile] ─▶ descriptor readable ─▶ read_change(): its text
//
// The folder is watched, not the file: editors and deployments put a new file in the old one's
// place, and links may be redirected. Whatever happens there, the text decides whether it changed.

#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace signalbox::tools {

/// The whole text of a file; the error says which file and why.
absl::StatusOr<std::string> read_file(const std::string& path);

class WatchedFile {
 public:
  static absl::StatusOr<WatchedFile> open(const std::string& path);

  WatchedFile(WatchedFile&& other) noexcept;
  WatchedFile& operator=(WatchedFile&&) = delete;
  ~WatchedFile();

  const std::string& path() const { return path_; }

  const std::string& text() const { return text_; }

  /// To be polled: readable when something happened in the folder.
  int descriptor() const { return descriptor_; }

  /// Takes what happened. Nothing where the text is what it was; an error where it cannot be read.
  absl::StatusOr<std::optional<std::string>> read_change();

 private:
  WatchedFile(std::string path, std::string text, int descriptor);

  std::string path_;
  std::string text_;  // As last read.
  int descriptor_ = -1;
};

}  // namespace signalbox::tools
