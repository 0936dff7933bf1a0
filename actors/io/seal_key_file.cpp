// SPDX-License-Identifier: Apache-2.0
#include "actors/io/seal_key_file.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lb/pick/snapshot_cell.hpp"

namespace signalbox::actors {
namespace {

// Who writes a file in place is given time to end.
constexpr std::chrono::milliseconds kSettling(200);
constexpr int kRetryMilliseconds = 1000;

absl::Status of_keys(const absl::Status& why) {
  return {why.code(), absl::StrCat("seal keys: ", why.message())};
}

// The permissions of others; none where the file is gone: reading it says so.
mode_t rights_of_others(const std::string& path) {
  struct stat file {};

  return ::stat(path.c_str(), &file) == 0 ? file.st_mode & S_IRWXO : 0;
}

absl::Status forbidden(const std::string& path) {
  return absl::PermissionDeniedError(
      absl::StrCat(path, ": others can write it, and so could make cookies; chmod o-w it"));
}

absl::StatusOr<lb::SealKeys> keys_in(const WatchedFile& file) {
  if ((rights_of_others(file.path()) & S_IWOTH) != 0) return of_keys(forbidden(file.path()));
  auto keys = lb::read_seal_keys(file.text());
  if (keys.ok()) return keys;
  return of_keys(
      absl::InvalidArgumentError(absl::StrCat(file.path(), ": ", keys.status().message())));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SealKeyFile>> SealKeyFile::start(const std::string& path,
                                                                Complain complain,
                                                                Complain warn) {
  auto file = WatchedFile::open(path);
  if (!file.ok()) return of_keys(file.status());
  auto keys = keys_in(*file);
  if (!keys.ok()) return keys.status();
  const int stop = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stop < 0) return absl::ResourceExhaustedError("seal keys: no file descriptor is left");
  return std::unique_ptr<SealKeyFile>(new SealKeyFile(
      *std::move(file), *std::move(keys), stop, std::move(complain), std::move(warn)));
}

SealKeyFile::SealKeyFile(
    WatchedFile file, lb::SealKeys keys, int stop, Complain complain, Complain warn)
    : file_(std::move(file)),
      seal_(std::make_shared<lb::CookieSeal>(std::move(keys))),
      stop_(stop),
      complain_(std::move(complain)),
      warn_(std::move(warn)),
      thread_([this] { run(); }) {}

SealKeyFile::~SealKeyFile() {
  ::eventfd_write(stop_, 1);
  thread_.join();
  ::close(stop_);
}

void SealKeyFile::run() {
  warn_of_readers();
  for (;;) {
    std::array<pollfd, 2> fds{pollfd{stop_, POLLIN, 0}, pollfd{file_.descriptor(), POLLIN, 0}};
    const int ready = ::poll(fds.data(), fds.size(), patience());
    if (ready < 0) continue;  // A signal.
    if (fds[0].revents != 0) return;
    if (fds[1].revents != 0 || !file_.is_watched()) take_change();
    if (!trouble_.empty() && Clock::now() >= settled_at_) complain_(std::exchange(trouble_, {}));
  }
}

// In milliseconds, rounded up; -1: until something happens.
int SealKeyFile::patience() const {
  if (trouble_.empty()) return file_.is_watched() ? -1 : kRetryMilliseconds;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(settled_at_ - Clock::now());
  return std::max(0, static_cast<int>(left.count()));
}

void SealKeyFile::take_change() {
  const auto change = file_.read_change();
  const bool is_same = change.ok() && !change->has_value();
  if (is_same && !is_forbidden_) return;
  auto keys = change.ok() ? keys_in(file_) : of_keys(change.status());
  is_forbidden_ = change.ok() && absl::IsPermissionDenied(keys.status());
  if (is_same && is_forbidden_) return;  // It has been said.
  if (!keys.ok()) {
    trouble_ = absl::StrCat(keys.status().message(), "; the last good keys stay in use");
    settled_at_ = Clock::now() + kSettling;
    return;
  }
  trouble_.clear();
  const auto old = seal_->exchange(*std::move(keys));
  lb::SnapshotCell::wait_for_readers();
  warn_of_readers();
}

void SealKeyFile::warn_of_readers() {
  const bool had_readers =
      std::exchange(has_readers_, (rights_of_others(file_.path()) & S_IROTH) != 0);
  if (!has_readers_ || had_readers || !warn_) return;
  warn_(absl::StrCat(
      "seal keys: ", file_.path(), ": others can read it, and so can make cookies; chmod o-r it"));
}

}  // namespace signalbox::actors
