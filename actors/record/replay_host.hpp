// SPDX-License-Identifier: Apache-2.0
//
// ReplayHost — the actors of a recorded runtime, in virtual time and over the recorded outside.
//
//   Recording ─▶ [ReplayHost]: supervisor, all actors, replayed seams ─▶ ports: snapshots, status
//
// The same recording gives the same run each time: one thread runs all actors, in one order, and no
// clock of the system is read. Everything happens inside run_instant(), on the calling thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "actors/channel_port.hpp"
#include "actors/environment.hpp"
#include "messages/recording.hpp"

namespace signalbox::actors {

class ReplayHost {
 public:
  using Ports = std::map<std::string, std::shared_ptr<const ChannelPort>>;
  using MakePort = std::function<std::shared_ptr<ChannelPort>(const std::string& target)>;

  /// `environment`: all but what comes from outside. `servers`: the names of its control planes.
  /// `make_port`: makes the port of a target that the recorded program opened, without its cell;
  /// null: the target is skipped.
  ReplayHost(const Recording& recording,
             Environment environment,
             const std::vector<std::string>& servers,
             MakePort make_port);
  ~ReplayHost();
  ReplayHost(const ReplayHost&) = delete;
  ReplayHost& operator=(const ReplayHost&) = delete;

  /// Runs all that is due at the next instant until `until`, which counts from the beginning of the
  /// recording. False: nothing is due until then; the time is `until`.
  bool run_instant(Duration until);

  /// The ports of the targets that are open now, by name.
  const Ports& ports() const;

  /// The virtual time, and the same from the beginning of the recording.
  Instant now() const;
  Duration elapsed() const;

  /// When the last event of the recording came.
  Duration length() const;

  /// How often actors have asked for something that the recording does not have, until its end.
  std::uint64_t unmatched() const;

 private:
  struct Machinery;
  const std::unique_ptr<Machinery> machinery_;
};

}  // namespace signalbox::actors
