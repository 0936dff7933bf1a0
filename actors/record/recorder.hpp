// SPDX-License-Identifier: Apache-2.0
//
// Recorder — writes what came from outside into a file, on a thread of its own.
//
//   seams, any thread ─▶ note(event) ─▶ [queue] ─▶ thread ─▶ FILE
//                                                      └ half of max_bytes: FILE becomes FILE.old
//
// A ring of two segments: FILE and FILE.old. Each begins with the state of the outside
// (xds/record/outside_state), so either can be replayed without the other. A recording that is
// found at FILE when the recorder starts becomes FILE.old, too. Both have the mode 0600, because
// resources may have secrets of the control plane.
//
// A segment is never closed before it has as many bytes of events as of state. So with a state of
// more than a quarter of max_bytes, the files take up to four times the state.
//
// The next segment is made beside FILE, as FILE.new, and then takes the place of FILE. If that
// fails, for example because the process has no descriptor left, FILE goes on. The recorder tries
// again with the next events. Meanwhile FILE may become twice as long as a segment; then events are
// dropped until a next segment begins.
//
// The path belongs to one recorder: it holds a lock (flock) on FILE.lock, and removes that file in
// the end. The lock ends with the process, so the FILE.lock of a killed process stops no other.

#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "actors/io/sockets.hpp"
#include "messages/recording.hpp"
#include "xds/record/outside_state.hpp"

namespace signalbox::actors {

struct RecorderOptions {
  std::string path;
  std::size_t max_bytes = 0;  ///< Of both segments together.
  /// `started` is set by the recorder, and `segment` counts up.
  RecordingHeader header;
  /// Called on the recorder's thread: when a next segment cannot begin, but not again before one
  /// could; and when the file takes no more events, which ends the recording.
  std::function<void(const std::string& why)> complain;
  /// Called for events that are not in the file. When a write fails, all events of that write
  /// count, though the file may have the first of them.
  std::function<void(std::uint64_t events)> count_dropped;
  /// Called on the recorder's thread for each attempt to begin a next segment that has failed.
  std::function<void()> count_late;
  /// The most bytes that wait to be written; further events are dropped. Larger than the largest
  /// response by default (Limits::max_message_bytes, 64 MiB).
  std::size_t max_waiting_bytes = std::size_t{128} << 20U;
};

class Recorder {
 public:
  /// Creates the file. Returns an error that names the path if that is not possible, or if another
  /// recorder has the path. All functions of `options` must be set.
  static absl::StatusOr<std::shared_ptr<Recorder>> start(RecorderOptions options);

  /// As finish().
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Writes all events that were noted before, and a mark if events after them were dropped. Then
  /// it joins the thread, and leaves the path to other recorders. Later events are not recorded.
  /// Must not run on two threads at a time.
  void finish();

  /// Thread-safe. Takes a lock for a moment, and waits for no file.
  void note(OutsideEvent event);

 private:
  explicit Recorder(RecorderOptions options);

  absl::Status begin_segment(std::uint64_t number);
  bool rotate();
  absl::StatusOr<std::uint64_t> write(const std::vector<RecordedEvent>& events);
  absl::Status append(const std::string& bytes);
  std::size_t full_size() const;
  void run();

  RecorderOptions options_;
  const Instant begin_;
  Descriptor lock_;  // Of FILE.lock; negative: the path is not this recorder's.
  // Only the thread uses these members, after start().
  Descriptor file_;
  std::size_t segment_bytes_ = 0;
  std::size_t state_bytes_ = 0;  // The bytes of the segment's state and header.
  bool is_late_ = false;         // The last attempt to begin a next segment has failed.
  std::uint64_t left_out_ = 0;   // The events after the file's last one. It has no room for them.
  xds::OutsideState state_;
  Duration last_{};
  std::mutex mutex_;  // Guards the members below.
  std::condition_variable changed_;
  bool is_stopping_ = false;
  bool has_failed_ = false;
  std::size_t waiting_bytes_ = 0;
  std::uint64_t dropped_ = 0;  // Since the last event that was taken.
  std::vector<RecordedEvent> waiting_;
  std::thread thread_;
};

}  // namespace signalbox::actors
