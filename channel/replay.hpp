// SPDX-License-Identifier: Apache-2.0
//
// Replay — a recording (RuntimeOptions::record), run again by the real actors in virtual time.
//
//   Recording ─▶ [Replay] ─┬▶ run() ─▶ RuntimeStatus after each instant
//                          └▶ explain_json() ─▶ where a call would go now
//
// Two runs of one recording are equal. A replay opens no connection, reads no clock and starts no
// thread of actors. What it cannot know is listed in docs/operate.md, "Replaying an outage": calls,
// so the ejections of outlier detection; load reports of endpoints; the program's own policies and
// filters.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "actors/record/replay_host.hpp"
#include "actors/status_board.hpp"
#include "channel/admin/explain_page.hpp"
#include "channel/environment_parts.hpp"
#include "messages/log_line.hpp"
#include "messages/recording.hpp"
#include "signalbox/runtime_status.hpp"
#include "xds/bootstrap.hpp"

namespace signalbox::channel {

class Replay {
 public:
  using Log = std::function<void(const LogLine&)>;
  /// Called after an instant at which something in the status has changed, apart from its times.
  using Seen = std::function<void(Duration at, const RuntimeStatus& status)>;

  /// `log`: gets notes about the recording, and the lines of the actors. DATA_LOSS or
  /// INVALID_ARGUMENT: the recording's bootstrap or options are invalid.
  static absl::StatusOr<std::unique_ptr<Replay>> start(Recording recording, Log log);

  ~Replay() = default;
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// Runs until `until` (since the beginning), which may be longer than the recording. `seen` may
  /// be null. The cost of a status grows with the number of endpoints, so `seen` gets one only when
  /// something has changed.
  void run(Duration until, const Seen& seen);

  /// Runs what is due at the next instant until `until`. False: nothing is due until then.
  bool run_instant(Duration until) { return host_->run_instant(until); }

  RuntimeStatus status() const;

  /// As Runtime::explain_json, at this moment. With an empty target: the only one.
  absl::StatusOr<std::string> explain_json(const ExplainQuestion& question) const;

  Duration elapsed() const { return host_->elapsed(); }

  Duration length() const { return host_->length(); }

  /// See ReplayHost::unmatched().
  std::uint64_t unmatched() const { return host_->unmatched(); }

 private:
  Replay(Recording recording, RuntimeOptions options, xds::Bootstrap bootstrap, Log log);

  /// What status() depends on.
  struct Revisions {
    std::vector<std::pair<std::shared_ptr<const actors::TargetBoard>, std::uint64_t>> boards;
    std::uint64_t changes = 0;

    friend bool operator==(const Revisions&, const Revisions&) = default;
  };

  Revisions revisions() const;
  actors::Environment make_environment() const;
  std::shared_ptr<actors::ChannelPort> make_port(const std::string& target) const;

  const Recording recording_;
  const RuntimeOptions options_;
  const xds::Bootstrap bootstrap_;
  const Log log_;
  const std::shared_ptr<metrics::Instruments> instruments_;
  const std::shared_ptr<actors::ChangeLog> changes_ = std::make_shared<actors::ChangeLog>();
  Revisions seen_;  ///< Those of the last status that run() has made.
  const std::unique_ptr<actors::ReplayHost> host_;
};

}  // namespace signalbox::channel
