// SPDX-License-Identifier: Apache-2.0
//
// ResultFolder — a folder for the results of the sides' processes.
//
//   [ResultFolder] ─▶ TMPDIR/signalbox-load-XXXXXX, locked as long as its process lives
//
// The folder goes with its object. A process that was killed leaves its folder behind, without the
// lock; the next ResultFolder removes it. The lock holds between containers that share TMPDIR,
// where a process id would say nothing.

#pragma once

#include <filesystem>
#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::tools {

class ResultFolder {
 public:
  explicit ResultFolder(const std::filesystem::path& parent);
  ~ResultFolder();
  ResultFolder(const ResultFolder&) = delete;
  ResultFolder& operator=(const ResultFolder&) = delete;

  /// Empty: it could not be made, and no result can be written.
  const std::string& path() const { return path_; }

  std::string file(absl::string_view name) const;

 private:
  std::string path_;
  int lock_ = -1;
};

}  // namespace signalbox::tools
