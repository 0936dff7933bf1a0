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

#include "messages/recording.hpp"
#include "xds/record/outside_state.hpp"

namespace signalbox::actors {

struct RecorderOptions {
  std::string path;
  std::size_t max_bytes = 0;  ///< Of both segments together.
  /// `started` is set by the recorder, and `segment` counts up.
  RecordingHeader header;
  /// Called at most once, on the recorder's thread: the file takes no more events.
  std::function<void(const std::string& why)> complain;
  /// Called for events that are not in the file.
  std::function<void(std::uint64_t events)> count_dropped;
  /// The most bytes that wait to be written; further events are dropped. Larger than the largest
  /// response by default (Limits::max_message_bytes, 64 MiB).
  std::size_t max_waiting_bytes = std::size_t{128} << 20U;
};

class Recorder {
 public:
  /// Creates the file. Returns an error that names the path if that is not possible.
  static absl::StatusOr<std::shared_ptr<Recorder>> start(RecorderOptions options);

  /// As finish().
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Writes all events that were noted before, and joins the thread. Later events are not recorded.
  /// Must not run on two threads at a time.
  void finish();

  /// Thread-safe. Takes a lock for a moment, and waits for no file.
  void note(OutsideEvent event);

 private:
  explicit Recorder(RecorderOptions options);

  absl::Status open_segment();
  absl::Status rotate();
  absl::Status write(const std::vector<RecordedEvent>& events);
  absl::Status append(const std::string& bytes);
  void run();

  RecorderOptions options_;
  const Instant begin_;
  // Only the thread uses these members, after start().
  int file_ = -1;
  std::size_t segment_bytes_ = 0;
  std::size_t state_bytes_ = 0;  // The bytes of the segment's state and header.
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
