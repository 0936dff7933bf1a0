// SPDX-License-Identifier: Apache-2.0
//
// Faults — the menu of one seed: a random subset of everything that can go wrong (swarm testing),
// and how to bring one of them about.

#pragma once

#include <set>
#include <string>

#include "tests/sim/setting.hpp"
#include "tests/sim/stage.hpp"
#include "tests/sim/topology.hpp"

namespace signalbox::sim {

enum class Fault : std::uint8_t {
  kBackendRefuses,
  kBackendBlackholed,
  kConnectionReset,
  kSlowHandshakes,
  kStreamReset,
  kServerRestart,
  kServerRefuses,
  kServerSilent,
  kServerAnswersOnce,
  kServerSlow,
  kServerLosesStreams,
  kServerPartial,
  kBadResource,
  kNamesFail,
  kActorKilled,
  kMachineBusy,
  kSlowReaders,
};
inline constexpr int kFaults = 17;

class Faults {
 public:
  /// Chooses the menu.
  Faults(Setting& setting, Stage& stage);

  bool has(Fault fault) const { return menu_.contains(fault); }

  /// Brings one of the menu about.
  void strike(const Topology& topology);

  /// Ends an actor of any kind.
  void kill_somebody();

  /// Nothing goes wrong any more, and what went wrong is repaired.
  void end();

 private:
  void strike_backend(Fault fault);
  void strike_server(Fault fault);
  void spoil_resource(const Topology& topology);

  Setting& setting_;
  Stage& stage_;
  std::set<Fault> menu_;
  testing::FakeControlPlane::Mood mood_;
};

}  // namespace signalbox::sim
