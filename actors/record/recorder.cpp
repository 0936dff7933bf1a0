// SPDX-License-Identifier: Apache-2.0
#include "actors/record/recorder.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xds/record/codec.hpp"

namespace signalbox::actors {
namespace {

// Events are written together after this time, so that the thread wakes up rarely. A process that
// is killed loses the events of this time.
constexpr auto kGathering = std::chrono::milliseconds(20);
constexpr std::size_t kEventBytes = 128;  // The estimated memory of a waiting event without bytes.

Instant now() {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
}

std::size_t size_of(const OutsideEvent& event) {
  const auto* const received = std::get_if<StreamReceived>(&event);
  return kEventBytes + (received == nullptr ? 0 : received->bytes.size());
}

absl::Status failed(const std::string& path, const char* what) {
  return absl::UnavailableError(
      absl::StrCat("recording ", path, ": cannot ", what, ": ", std::strerror(errno)));
}

std::string old_of(const std::string& path) {
  return path + ".old";
}

}  // namespace

Recorder::Recorder(RecorderOptions options) : options_(std::move(options)), begin_(now()) {
  options_.header.started = std::chrono::system_clock::now();
}

absl::StatusOr<std::shared_ptr<Recorder>> Recorder::start(RecorderOptions options) {
  std::shared_ptr<Recorder> recorder(new Recorder(std::move(options)));
  const std::string& path = recorder->options_.path;
  struct stat found{};
  if (::stat(path.c_str(), &found) == 0) {
    if (!S_ISREG(found.st_mode))
      return absl::InvalidArgumentError(absl::StrCat("recording ", path, ": is no regular file"));
    if (found.st_size > 0 && std::rename(path.c_str(), old_of(path).c_str()) != 0)
      return failed(path, "rename the earlier file");
  }
  if (auto status = recorder->open_segment(); !status.ok()) return status;
  recorder->thread_ = std::thread([raw = recorder.get()] { raw->run(); });
  return recorder;
}

Recorder::~Recorder() {
  finish();
  if (file_ >= 0) ::close(file_);
}

void Recorder::finish() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Recorder::note(OutsideEvent event) {
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    if (is_stopping_) return;
    const std::size_t size = size_of(event);
    if (has_failed_ || waiting_bytes_ + size > options_.max_waiting_bytes) {
      ++dropped_;
      options_.count_dropped(1);
      return;
    }
    is_first = waiting_.empty();
    // The time is read under the lock, so times never fall.
    const Duration at = now() - begin_;
    if (dropped_ > 0) waiting_.push_back({at, false, EventsDropped{std::exchange(dropped_, 0)}});
    waiting_.push_back({at, false, std::move(event)});
    waiting_bytes_ += size;
  }
  if (is_first) changed_.notify_one();
}

void Recorder::run() {
  // A write beyond the limit of a file's size is an error then, not the end of the program.
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGXFSZ);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_stopping_ || !waiting_.empty(); });
    changed_.wait_for(lock, kGathering, [this] { return is_stopping_; });
    if (waiting_.empty() && is_stopping_) return;
    std::vector<RecordedEvent> events;
    events.swap(waiting_);
    waiting_bytes_ = 0;
    lock.unlock();
    const absl::Status status = write(events);
    if (!status.ok()) options_.complain(absl::StrCat(status.message(), "; recording has ended"));
    lock.lock();
    if (status.ok()) continue;
    has_failed_ = true;
    options_.count_dropped(waiting_.size());
    waiting_.clear();
    return;
  }
}

// Begins a file with the state of the outside.
absl::Status Recorder::open_segment() {
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  file_ = ::open(options_.path.c_str(), flags, S_IRUSR | S_IWUSR);
  if (file_ < 0) return failed(options_.path, "open the file");
  if (::fchmod(file_, S_IRUSR | S_IWUSR) != 0) return failed(options_.path, "set its mode");
  std::string bytes = absl::StrCat(xds::recording_preamble(), xds::encode(options_.header));
  for (OutsideEvent& event : state_.events())
    absl::StrAppend(&bytes, xds::encode(RecordedEvent{last_, true, std::move(event)}));
  segment_bytes_ = 0;
  state_bytes_ = bytes.size();
  return append(bytes);
}

absl::Status Recorder::rotate() {
  ::close(std::exchange(file_, -1));
  if (std::rename(options_.path.c_str(), old_of(options_.path).c_str()) != 0)
    return failed(options_.path, "rename the file");
  ++options_.header.segment;
  return open_segment();
}

absl::Status Recorder::write(const std::vector<RecordedEvent>& events) {
  std::string bytes;
  for (const RecordedEvent& event : events) {
    const std::string frame = xds::encode(event);
    const std::size_t full = segment_bytes_ + bytes.size() + frame.size();
    if (full > options_.max_bytes / 2 && full > 2 * state_bytes_) {
      absl::Status status = append(std::exchange(bytes, {}));
      if (status.ok()) status = rotate();
      if (!status.ok()) return status;
    }
    bytes += frame;
    state_.apply(event.what);
    last_ = event.at;
  }
  return append(bytes);
}

absl::Status Recorder::append(const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const auto written = ::write(file_, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed(options_.path, "write");
    done += static_cast<std::size_t>(written);
  }
  segment_bytes_ += bytes.size();
  return absl::OkStatus();
}

}  // namespace signalbox::actors
