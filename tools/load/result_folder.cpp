// SPDX-License-Identifier: Apache-2.0
#include "tools/load/result_folder.hpp"

#include <chrono>
#include <cstdlib>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace signalbox::tools {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kPrefix = "signalbox-load-";

// A younger folder may belong to a process that has not locked it yet.
constexpr auto kLockedBy = std::chrono::minutes(1);

// The lock, or -1: another process has it, or the folder is another user's or a link.
int lock_own(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return -1;
  struct stat found{};
  if (::fstat(file, &found) == 0 && found.st_uid == ::geteuid() &&
      ::flock(file, LOCK_EX | LOCK_NB) == 0)
    return file;
  ::close(file);
  return -1;
}

bool may_be_new(const fs::path& path) {
  std::error_code error;
  const auto changed = fs::last_write_time(path, error);
  return error || fs::file_time_type::clock::now() - changed < kLockedBy;
}

void remove_leftovers(const fs::path& parent) {
  std::error_code ignored;
  for (fs::directory_iterator at(parent, ignored), end; at != end; at.increment(ignored)) {
    const fs::path& path = at->path();
    if (!absl::StartsWith(path.filename().string(), kPrefix) || may_be_new(path)) continue;
    const int lock = lock_own(path.string());
    if (lock < 0) continue;
    fs::remove_all(path, ignored);
    ::close(lock);
  }
}

}  // namespace

ResultFolder::ResultFolder(const fs::path& parent) {
  remove_leftovers(parent);
  std::string pattern = (parent / absl::StrCat(kPrefix, "XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) return;
  path_ = pattern;
  lock_ = lock_own(path_);
}

ResultFolder::~ResultFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

std::string ResultFolder::file(absl::string_view name) const {
  return absl::StrCat(path_, "/", name);
}

}  // namespace signalbox::tools
