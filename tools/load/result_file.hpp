// SPDX-License-Identifier: Apache-2.0
//
// ResultFile — a file in memory, to which a child process writes its result.
//
//   parent: [ResultFile] ─▶ path() ─▶ child writes ─▶ parent: text()
//
// Whatever ends the parent, no file stays behind.

#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace signalbox::tools {

class ResultFile {
 public:
  /// `name`: the name that /proc shows for the file.
  static absl::StatusOr<ResultFile> make(const std::string& name);

  ResultFile(ResultFile&& other) noexcept;
  ResultFile& operator=(ResultFile&& other) noexcept;
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;
  ~ResultFile();

  /// A path that this process and its children can open while this object lives.
  std::string path() const;

  std::string text() const;

 private:
  explicit ResultFile(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace signalbox::tools
