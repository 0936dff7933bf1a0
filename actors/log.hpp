// SPDX-License-Identifier: Apache-2.0
//
// Log — the lines for the operator: drops lines below a level or beyond a rate, escapes control
// characters and newlines.
//
//   actors, files ─▶ LogLine ─▶ [Log] ─▶ the sink: the program's own, or stderr
//
// Thread-safe. The sink is called by the thread that writes, without a lock held, so two lines may
// reach it at once.

#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "messages/ids.hpp"
#include "messages/log_line.hpp"

namespace signalbox::actors {

/// The rate limit of one runtime's log: kBurst lines of a kind at once, then one every kEvery. A
/// plain value: its owner passes the time to it.
class LogLimit {
 public:
  static constexpr std::uint32_t kBurst = 20;
  static constexpr Duration kEvery = std::chrono::seconds(3);

  /// Admits or drops a line of this kind. Returns how many lines of the kind were dropped since the
  /// last admitted one; nullopt: this line is dropped.
  std::optional<std::uint64_t> admit(LogKind kind, Instant now);

 private:
  struct Kind {
    Duration used{};  ///< An admitted line adds kEvery, time lowers it; at most kBurst * kEvery.
    Instant at{};
    std::uint64_t left_out = 0;
  };

  std::array<Kind, kLogKinds> kinds_{};
};

class Log {
 public:
  using Sink = std::function<void(const LogLine& line)>;
  using Clock = std::function<Instant()>;

  /// Lines below `level` are dropped and not counted.
  Log(LogLevel level, Sink sink, Clock now = std::chrono::steady_clock::now);

  /// Passes the line to the sink, unless level or rate limit drop it. Sets `line.left_out` to the
  /// number of dropped lines of the kind (LogLimit::admit()).
  void write(LogLine line);

 private:
  const LogLevel level_;
  const Sink sink_;
  const Clock now_;
  std::mutex mutex_;
  LogLimit limit_;  ///< Guarded by mutex_.
};

}  // namespace signalbox::actors
