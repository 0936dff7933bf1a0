// SPDX-License-Identifier: Apache-2.0
//
// LockedFolder — a temporary folder of a running process, removed even after SIGKILL.
//
//   prefix ─▶ [LockedFolder::make] ─▶ $TMPDIR/PREFIXabc123, with a lock (flock) while it is used
//                     └▶ removes the folders of the same prefix and user that no process locks
//
// The kernel releases the lock when its process ends, however it ends. A process that could not
// remove its folder therefore leaves it unlocked, and the next make() removes it.

#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "actors/io/sockets.hpp"

namespace signalbox::tools {

class LockedFolder {
 public:
  /// `prefix`: the beginning of the folder's name. No other program may use the prefix.
  static absl::StatusOr<LockedFolder> make(absl::string_view prefix);

  LockedFolder(LockedFolder&&) = default;
  LockedFolder& operator=(LockedFolder&&) = delete;
  /// Removes the folder and all files in it.
  ~LockedFolder();

  const std::string& path() const { return path_; }

 private:
  LockedFolder(std::string path, actors::Descriptor lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  actors::Descriptor lock_;  // The open folder, which has the lock; -1: moved from.
};

}  // namespace signalbox::tools
