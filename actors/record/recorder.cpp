// SPDX-License-Identifier: Apache-2.0
#include "actors/record/recorder.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
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
  std::size_t size = kEventBytes;
  if (const auto* received = std::get_if<StreamReceived>(&event)) size += received->bytes.size();
  const auto* const asked = std::get_if<StreamAsked>(&event);
  if (asked == nullptr || !asked->names) return size;
  for (const std::string& name : *asked->names)
    size += sizeof(std::string) + name.size();
  return size;
}

absl::Status failed(const std::string& path, const std::string& what) {
  return absl::UnavailableError(
      absl::StrCat("recording ", path, ": cannot ", what, ": ", std::strerror(errno)));
}

std::string lock_of(const std::string& path) {
  return path + ".lock";
}

// Without the marks of dropped events, which are counted already.
std::uint64_t noted_in(const std::vector<RecordedEvent>& events) {
  return static_cast<std::uint64_t>(std::ranges::count_if(events, [](const RecordedEvent& event) {
    return !std::holds_alternative<EventsDropped>(event.what);
  }));
}

// The descriptor holds the path's lock until it is closed.
absl::StatusOr<Descriptor> lock_path(const std::string& path) {
  const std::string name = lock_of(path);
  const int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
  Descriptor lock(::open(name.c_str(), flags, S_IRUSR | S_IWUSR));
  if (*lock < 0) return failed(path, "open the file " + name);
  const bool is_taken = ::flock(*lock, LOCK_EX | LOCK_NB) != 0;
  if (is_taken && errno != EWOULDBLOCK) return failed(path, "lock the file " + name);
  struct stat found{};
  if (::fstat(*lock, &found) != 0) return failed(path, "look at the file " + name);
  // A file without a name was that of a recorder which ended between open() and flock().
  if (is_taken || found.st_nlink == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "recording ", path, ": another runtime records to this path; give each a path of its own"));
  }
  return lock;
}

absl::Status write_to(const Descriptor& file, const std::string& path, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const auto written = ::write(*file, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed(path, "write");
    done += static_cast<std::size_t>(written);
  }
  return absl::OkStatus();
}

// The file of the next segment, beside the recording. It is removed unless it takes the recording's
// place.
class NextFile {
 public:
  explicit NextFile(const std::string& path) : path_(path), next_(path + ".new") {}

  ~NextFile() { ::unlink(next_.c_str()); }

  NextFile(const NextFile&) = delete;
  NextFile& operator=(const NextFile&) = delete;

  absl::Status open() {
    ::unlink(next_.c_str());  // A process that was killed may have left it.
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    file_ = Descriptor(::open(next_.c_str(), flags, S_IRUSR | S_IWUSR));
    if (*file_ < 0) return failed(path_, "open the file");
    if (::fchmod(*file_, S_IRUSR | S_IWUSR) != 0) return failed(path_, "set its mode");
    return absl::OkStatus();
  }

  absl::Status write(const std::string& bytes) { return write_to(file_, path_, bytes); }

  // The recording that is there becomes the old one. It stays the old one if the next one cannot
  // take its place, and an attempt after that finds no file to rename.
  absl::StatusOr<Descriptor> take_place() {
    struct stat found{};
    const bool has_bytes = ::stat(path_.c_str(), &found) == 0 && found.st_size > 0;
    if (has_bytes && std::rename(path_.c_str(), xds::earlier_segment(path_).c_str()) != 0)
      return failed(path_, "rename the earlier file");
    if (std::rename(next_.c_str(), path_.c_str()) != 0)
      return failed(path_, "rename the next file");
    return std::move(file_);
  }

 private:
  const std::string path_;
  const std::string next_;
  Descriptor file_;
};

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
  }
  auto lock = lock_path(path);
  if (!lock.ok()) return lock.status();
  recorder->lock_ = *std::move(lock);
  if (auto status = recorder->begin_segment(0); !status.ok()) return status;
  recorder->thread_ = std::thread([raw = recorder.get()] { raw->run(); });
  return recorder;
}

Recorder::~Recorder() {
  finish();
}

void Recorder::finish() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
  if (*lock_ < 0) return;
  ::unlink(lock_of(options_.path).c_str());  // While it is locked: later it may be another's.
  lock_ = Descriptor();
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
    if (waiting_.empty() && is_stopping_) break;
    std::vector<RecordedEvent> events;
    events.swap(waiting_);
    waiting_bytes_ = 0;
    lock.unlock();
    const absl::StatusOr<std::uint64_t> without_room = write(events);
    if (!without_room.ok())
      options_.complain(absl::StrCat(without_room.status().message(), "; recording has ended"));
    lock.lock();
    if (without_room.ok()) {
      if (*without_room > 0) options_.count_dropped(*without_room);
      continue;
    }
    has_failed_ = true;
    options_.count_dropped(noted_in(events) + noted_in(waiting_));
    waiting_.clear();
    return;
  }
  const std::uint64_t missing = dropped_ + left_out_;
  lock.unlock();
  if (missing == 0) return;
  if (auto status = append(xds::encode({now() - begin_, false, EventsDropped{missing}}));
      !status.ok())
    options_.complain(std::string(status.message()));
}

// Begins a file with the state of the outside. After an error the present file goes on.
absl::Status Recorder::begin_segment(std::uint64_t number) {
  NextFile next(options_.path);
  if (auto status = next.open(); !status.ok()) return status;
  RecordingHeader header = options_.header;
  header.segment = number;
  std::string bytes = absl::StrCat(xds::recording_preamble(), xds::encode(header));
  for (OutsideEvent& event : state_.events())
    absl::StrAppend(&bytes, xds::encode(RecordedEvent{last_, true, std::move(event)}));
  if (auto status = next.write(bytes); !status.ok()) return status;
  auto file = next.take_place();
  if (!file.ok()) return file.status();
  options_.header.segment = number;
  file_ = *std::move(file);
  segment_bytes_ = state_bytes_ = bytes.size();
  return absl::OkStatus();
}

// Returns whether the next segment has begun.
bool Recorder::rotate() {
  const absl::Status status = begin_segment(options_.header.segment + 1);
  const bool was_late = std::exchange(is_late_, !status.ok());
  if (status.ok()) return true;
  options_.count_late();
  if (!was_late) {
    options_.complain(absl::StrCat(status.message(),
                                   ": the next segment of the recording cannot begin; the file "
                                   "goes on, and signalbox tries again"));
  }
  return false;
}

// The size beyond which a segment ends.
std::size_t Recorder::full_size() const {
  return std::max(options_.max_bytes / 2, 2 * state_bytes_);
}

// Returns how many of the events have no room in the file.
absl::StatusOr<std::uint64_t> Recorder::write(const std::vector<RecordedEvent>& events) {
  std::string bytes;
  std::uint64_t without_room = 0;
  bool may_rotate = true;  // An attempt that fails is the last one for these events.
  for (const RecordedEvent& event : events) {
    std::string frame = xds::encode(event);
    const auto size = [&] { return segment_bytes_ + bytes.size() + frame.size(); };
    if (may_rotate && size() > full_size()) {
      if (auto status = append(std::exchange(bytes, {})); !status.ok()) return status;
      may_rotate = rotate();
    }
    state_.apply(event.what);
    last_ = event.at;
    if (is_late_ && (left_out_ > 0 || size() > 2 * full_size())) {
      // A mark stands for events that were counted when they were dropped.
      const auto* const mark = std::get_if<EventsDropped>(&event.what);
      left_out_ += mark == nullptr ? 1 : mark->count;
      if (mark == nullptr) ++without_room;
      continue;
    }
    if (left_out_ > 0) {
      const EventsDropped dropped{std::exchange(left_out_, 0)};
      bytes += xds::encode(RecordedEvent{event.at, false, dropped});
    }
    bytes += frame;
  }
  if (auto status = append(bytes); !status.ok()) return status;
  return without_room;
}

absl::Status Recorder::append(const std::string& bytes) {
  segment_bytes_ += bytes.size();
  return write_to(file_, options_.path, bytes);
}

}  // namespace signalbox::actors
