// SPDX-License-Identifier: Apache-2.0
#include "actors/io/seal_key_file.hpp"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include <sys/epoll.h>
#include <sys/stat.h>

#include "lb/pick/snapshot_cell.hpp"

namespace signalbox::actors {
namespace {

constexpr std::chrono::milliseconds kRetry(1000);
constexpr SocketLoop::Id kKeyFile = 1;

absl::Status of_keys(const absl::Status& why) {
  return {why.code(), absl::StrCat("seal keys: ", why.message())};
}

// The permission bits for other users (S_IRWXO). 0 if the file is missing: read_change() reports
// a missing file, so this function need not.
mode_t rights_of_others(const std::string& path) {
  struct stat file{};

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
  auto loop = SocketLoop::make("seal keys");
  if (!loop.ok()) return absl::ResourceExhaustedError("seal keys: no file descriptor is left");
  return std::unique_ptr<SealKeyFile>(new SealKeyFile(
      *std::move(file), *std::move(keys), *std::move(loop), std::move(complain), std::move(warn)));
}

SealKeyFile::SealKeyFile(WatchedFile file,
                         lb::SealKeys keys,
                         std::unique_ptr<SocketLoop> loop,
                         Complain complain,
                         Complain warn)
    : file_(std::move(file)),
      seal_(std::make_shared<lb::CookieSeal>(std::move(keys))),
      complain_(std::move(complain)),
      warn_(std::move(warn)),
      loop_(std::move(loop)) {
  loop_->post([this] {
    warn_of_readers();
    follow();
  });
  loop_->begin(*this);
}

SealKeyFile::~SealKeyFile() {
  loop_->stop();
}

void SealKeyFile::happened(SocketLoop::Id /*file*/) {
  take_change();
  complain_when_due();
  follow();
}

void SealKeyFile::is_due(SocketLoop::Id /*file*/) {
  if (!file_.is_watched()) take_change();
  complain_when_due();
  follow();
}

// Listens to the file again, because read_change() may have replaced the descriptor.
void SealKeyFile::follow() {
  loop_->listen_for(kKeyFile, file_.descriptor(), EPOLLIN);
  const Instant idle = file_.is_watched() ? Instant::max() : SocketLoop::now() + kRetry;
  loop_->set_due(kKeyFile, trouble_.empty() ? idle : settled_at_);
}

void SealKeyFile::complain_when_due() {
  if (!trouble_.empty() && SocketLoop::now() >= settled_at_) complain_(std::exchange(trouble_, {}));
}

void SealKeyFile::take_change() {
  const auto change = file_.read_change();
  const bool is_same = change.ok() && !change->has_value();
  if (is_same && !is_forbidden_) return;
  auto keys = change.ok() ? keys_in(file_) : of_keys(change.status());
  is_forbidden_ = change.ok() && absl::IsPermissionDenied(keys.status());
  if (is_same && is_forbidden_) return;  // The fault is known already.
  if (!keys.ok()) {
    trouble_ = absl::StrCat(keys.status().message(), "; the last good keys stay in use");
    settled_at_ = SocketLoop::now() + kFileSettling;
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
