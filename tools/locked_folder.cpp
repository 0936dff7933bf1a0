// SPDX-License-Identifier: Apache-2.0
#include "tools/locked_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace signalbox::tools {
namespace {

constexpr absl::string_view kRandom = "XXXXXX";  // The part of the name that mkdtemp() replaces.
constexpr int kAttempts = 100;

actors::Descriptor open_folder(const std::string& path) {
  return actors::Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool is_of_this_user(int folder) {
  struct stat facts{};

  return ::fstat(folder, &facts) == 0 && facts.st_uid == ::geteuid();
}

// Whether the open folder still has this path: another process may have removed it.
bool is_at(int folder, const std::string& path) {
  struct stat open{};
  struct stat named{};

  return ::fstat(folder, &open) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

void remove_if_abandoned(const std::string& path) {
  const actors::Descriptor folder = open_folder(path);
  if (*folder < 0) return;
  std::error_code ignored;  // Then the folder stays until the next time.
  if (is_of_this_user(*folder) && ::flock(*folder, LOCK_EX | LOCK_NB) == 0)
    std::filesystem::remove_all(path, ignored);
}

void remove_abandoned(const std::filesystem::path& where, absl::string_view prefix) {
  std::error_code ignored;
  for (auto entry = std::filesystem::directory_iterator(where, ignored);
       !ignored && entry != std::filesystem::directory_iterator();
       entry.increment(ignored)) {
    const std::string name = entry->path().filename();
    if (absl::StartsWith(name, prefix) && name.size() == prefix.size() + kRandom.size())
      remove_if_abandoned(entry->path());
  }
}

}  // namespace

absl::StatusOr<LockedFolder> LockedFolder::make(absl::string_view prefix) {
  std::error_code error;
  const std::filesystem::path where = std::filesystem::temp_directory_path(error);
  if (error)
    return absl::UnavailableError(
        absl::StrCat("there is no folder for temporary files: ", error.message()));
  remove_abandoned(where, prefix);
  // Another process may take the new folder for an abandoned one before the lock is set. Then a
  // further folder is made.
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string path = where / absl::StrCat(prefix, kRandom);
    if (::mkdtemp(path.data()) == nullptr)
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot make a folder in ", where.string()));
    actors::Descriptor folder = open_folder(path);
    if (*folder < 0) continue;
    // A file system without locks gives another error. make() removes no folder there.
    const bool is_taken = ::flock(*folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!is_taken && is_at(*folder, path)) return LockedFolder(std::move(path), std::move(folder));
  }
  return absl::UnavailableError(
      absl::StrCat("other processes removed ", kAttempts, " new folders in ", where.string()));
}

LockedFolder::~LockedFolder() {
  if (*lock_ < 0) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace signalbox::tools
