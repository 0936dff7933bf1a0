// SPDX-License-Identifier: Apache-2.0
//
// StatusTimeline — what changed from one status of a runtime to the next, as lines.
//
//   RuntimeStatus, RuntimeStatus, … ─┬▶ [StatusTimeline] ─▶ TimelineEntry each change
//   LogLine ─────────────────────────┘
//
// Entries of one instant are in the order of targets, clusters, priorities and addresses; the
// changes of priority come last. Lines of the log come before them.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "messages/ids.hpp"
#include "messages/log_line.hpp"
#include "signalbox/runtime_status.hpp"

namespace signalbox::channel {

struct TimelineEntry {
  Duration at{};       ///< Since the beginning.
  std::string kind;    ///< "target", "cluster", "endpoint", "priority", "log".
  std::string target;  ///< "xds:///orders"; empty for a line of the log.
  std::string
      subject;       ///< A cluster ("shop / primary" below an aggregate), or cluster and address.
  std::string text;  ///< What is true from now on: "READY", "priority 0 to 1 (failed): …".

  friend bool operator==(const TimelineEntry&, const TimelineEntry&) = default;
};

class StatusTimeline {
 public:
  /// Adds the differences between this status and the last one.
  void add(Duration at, const RuntimeStatus& status);

  /// Adds the line, unless a status says the same: a configuration that applies, and a change of
  /// priority.
  void add(Duration at, const LogLine& line);

  const std::vector<TimelineEntry>& entries() const { return entries_; }

 private:
  /// The kind, target and subject of an entry.
  struct Subject {
    std::string kind;
    std::string target;
    std::string name;

    friend auto operator<=>(const Subject&, const Subject&) = default;
  };

  void look_at(const TargetStatus& target);
  void look_at(const std::string& target, const ClusterStatus& cluster);
  void say(Subject subject, std::string text);
  void end_unseen();

  Duration at_{};
  std::uint64_t round_ = 0;

  struct Known {
    std::string text;
    std::uint64_t seen = 0;  ///< The round of add() in which the subject was last there.
  };

  std::map<Subject, Known> known_;
  std::uint64_t last_change_ = 0;
  std::vector<TimelineEntry> entries_;
};

}  // namespace signalbox::channel
