// SPDX-License-Identifier: Apache-2.0
#include "actors/io/watched_file.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include <sys/inotify.h>
#include <unistd.h>

namespace signalbox::actors {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kEvents =
    IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ATTRIB | IN_ONLYDIR;
constexpr absl::string_view kLimit = "max_file_bytes";
constexpr int kMaxLinks = 40;  // The most symbolic links on a path, as in the kernel.

// PERMISSION_DENIED if the system forbids it; NOT_FOUND for all other errors.
absl::Status file_error(absl::string_view what, const std::string& path) {
  const int error = errno;
  const bool is_forbidden = error == EACCES || error == EPERM;
  return {is_forbidden ? absl::StatusCode::kPermissionDenied : absl::StatusCode::kNotFound,
          absl::StrCat(what, " ", path, ": ", std::strerror(error))};
}

// Inserts the elements of the path `way` before `steps`, the path elements that are still to be
// walked.
void go_first(const fs::path& way, std::deque<fs::path>& steps) {
  steps.insert(steps.begin(), way.begin(), way.end());
}

}  // namespace

absl::StatusOr<std::string> read_file(const std::string& path,
                                      std::size_t max_bytes,
                                      absl::string_view limit) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path, ": it is a folder"));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return file_error("cannot read", path);
  const auto too_long = [&](absl::string_view found) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot read ",
                                                     path,
                                                     ": must have at most ",
                                                     max_bytes,
                                                     " bytes, found ",
                                                     found,
                                                     limit.empty() ? "" : " (limit ",
                                                     limit,
                                                     limit.empty() ? "" : ")"));
  };
  const std::uintmax_t size = fs::file_size(path, error);
  if (!error && size > max_bytes) return too_long(absl::StrCat(size));
  // The limit is checked again while reading: a pipe has no size, and a file may grow meanwhile.
  std::string text;
  std::array<char, 65536> part;
  while (file.read(part.data(), part.size()), file.gcount() > 0) {
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > max_bytes) return too_long("more");
  }
  if (file.bad()) return file_error("cannot read", path);
  return text;
}

absl::StatusOr<WatchedFile> WatchedFile::open(const std::string& path, std::size_t max_bytes) {
  WatchedFile file(path, max_bytes);
  // The file is watched before it is read, so that no change is missed in between. If both fail,
  // the error of read() is returned, because its text is better.
  absl::Status watched = file.watch();
  if (absl::Status status = file.read(); !status.ok()) return status;
  if (!watched.ok()) return watched;
  return file;
}

WatchedFile::WatchedFile(const std::string& path, std::size_t max_bytes)
    : path_(path), max_bytes_(max_bytes), absolute_(fs::absolute(path).string()) {}

WatchedFile::WatchedFile(WatchedFile&& other) noexcept
    : path_(std::move(other.path_)),
      max_bytes_(other.max_bytes_),
      absolute_(std::move(other.absolute_)),
      text_(std::move(other.text_)),
      lost_(other.lost_),
      watched_(other.watched_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      steps_(std::move(other.steps_)) {}

WatchedFile::~WatchedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

// Walks to the file as the kernel does. Each folder is watched before its entry is read, so that no
// change is missed in between. A folder without read permission cannot be watched; it is skipped
// unless it is the last one.
absl::Status WatchedFile::watch() {
  const int fresh = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (fresh < 0) return file_error("cannot watch", path_);
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = fresh;
  steps_.clear();

  bool watched = false;
  int links = 0;
  fs::path folder = "/";
  std::deque<fs::path> ahead;
  go_first(absolute_, ahead);
  while (!ahead.empty()) {
    const fs::path step = ahead.front();
    ahead.pop_front();
    if (step.empty() || step == "." || step == "/") continue;
    if (step == "..") {
      folder = folder.parent_path();
      continue;
    }
    const int watch = ::inotify_add_watch(descriptor_, folder.c_str(), kEvents);
    watched = watch >= 0;
    if (watched) steps_.emplace(watch, step.string());

    std::error_code error;
    const fs::file_type type = fs::symlink_status(folder / step, error).type();
    if (type == fs::file_type::symlink && ++links <= kMaxLinks) {
      const fs::path target = fs::read_symlink(folder / step, error);
      if (target.is_absolute()) folder = "/";
      go_first(target, ahead);
    } else if (type == fs::file_type::directory) {
      folder /= step;
    } else {
      break;
    }
  }
  return watched ? absl::OkStatus() : file_error("cannot watch the folder of", path_);
}

absl::Status WatchedFile::read() {
  std::error_code error;
  if (fs::is_other(absolute_, error)) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path_, ": it is no regular file"));
  }
  auto text = read_file(absolute_, max_bytes_, kLimit);
  if (!text.ok()) return text.status();
  text_ = *std::move(text);
  return absl::OkStatus();
}

// Takes all pending events. Returns whether one of them concerns the path to the file.
bool WatchedFile::take_events() {
  bool ours = false;
  alignas(inotify_event) std::array<char, 4096> buffer;
  for (;;) {
    const auto size = ::read(descriptor_, buffer.data(), buffer.size());
    if (size <= 0) return ours;
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      const auto& event = *reinterpret_cast<const inotify_event*>(buffer.data() + at);
      const std::string name = event.len > 0 ? event.name : "";
      constexpr std::uint32_t kLost = IN_IGNORED | IN_Q_OVERFLOW | IN_UNMOUNT;
      ours = ours || (event.mask & kLost) != 0 || steps_.contains({event.wd, name});
      at += sizeof(inotify_event) + event.len;
    }
  }
}

absl::StatusOr<std::optional<std::string>> WatchedFile::read_change() {
  const bool again = !take_events();
  if (again && watched_) return std::nullopt;
  const std::string before = text_;
  absl::Status status = watch();
  watched_ = status.ok();
  if (again && !watched_) return std::nullopt;  // The error has been reported already.
  if (status.ok()) status = read();
  const bool was_lost = std::exchange(lost_, !status.ok());
  if (!status.ok()) return status;
  if (text_ == before && !was_lost) return std::nullopt;
  return text_;
}

absl::Status WatchedFile::read_again() {
  take_events();
  watched_ = watch().ok();
  absl::Status status = read();
  lost_ = !status.ok();
  return status;
}

}  // namespace signalbox::actors
