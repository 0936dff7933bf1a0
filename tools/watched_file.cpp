// SPDX-License-Identifier: Apache-2.0
#include "tools/watched_file.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include <sys/inotify.h>
#include <unistd.h>

namespace signalbox::tools {
namespace {

absl::Status file_error(absl::string_view what, const std::string& path) {
  return absl::NotFoundError(absl::StrCat(what, " ", path, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::string> read_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path, ": it is a folder"));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return file_error("cannot read", path);
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) return file_error("cannot read", path);
  return std::move(text).str();
}

absl::StatusOr<WatchedFile> WatchedFile::open(const std::string& path) {
  const int descriptor = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (descriptor < 0) return file_error("cannot watch", path);
  WatchedFile file(path, {}, descriptor);
  const std::string folder = std::filesystem::absolute(path).parent_path().string();
  constexpr auto kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_MOVED_FROM;
  // Watched before it is read: no change falls in between. What cannot be read says why itself.
  const bool watched = ::inotify_add_watch(descriptor, folder.c_str(), kEvents) >= 0;
  const absl::Status why = watched ? absl::OkStatus() : file_error("cannot watch", path);
  auto text = read_file(path);
  if (!text.ok()) return text.status();
  if (!why.ok()) return why;
  file.text_ = *std::move(text);
  return file;
}

WatchedFile::WatchedFile(std::string path, std::string text, int descriptor)
    : path_(std::move(path)), text_(std::move(text)), descriptor_(descriptor) {}

WatchedFile::WatchedFile(WatchedFile&& other) noexcept
    : path_(std::move(other.path_)),
      text_(std::move(other.text_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

WatchedFile::~WatchedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

absl::StatusOr<std::optional<std::string>> WatchedFile::read_change() {
  std::array<char, 4096> events;
  while (::read(descriptor_, events.data(), events.size()) > 0) {
  }
  auto text = read_file(path_);
  if (!text.ok()) return text.status();
  if (*text == text_) return std::nullopt;
  text_ = *std::move(text);
  return text_;
}

}  // namespace signalbox::tools
