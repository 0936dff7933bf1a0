// SPDX-License-Identifier: Apache-2.0
#include "tools/load/result_file.hpp"

#include <array>
#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include <sys/mman.h>
#include <unistd.h>

namespace signalbox::tools {

absl::StatusOr<ResultFile> ResultFile::make(const std::string& name) {
  const int fd = ::memfd_create(name.c_str(), MFD_CLOEXEC);
  if (fd < 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make a file in memory for ", name));
  return ResultFile(fd);
}

ResultFile::ResultFile(ResultFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

ResultFile& ResultFile::operator=(ResultFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

ResultFile::~ResultFile() {
  if (fd_ >= 0) ::close(fd_);
}

std::string ResultFile::path() const {
  return absl::StrCat("/proc/", ::getpid(), "/fd/", fd_);
}

// Reads the descriptor that it has: path() could not be opened if this process had too many files.
std::string ResultFile::text() const {
  std::string text;
  std::array<char, 65536> part;
  for (;;) {
    const ssize_t got = ::pread(fd_, part.data(), part.size(), static_cast<off_t>(text.size()));
    if (got <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace signalbox::tools
