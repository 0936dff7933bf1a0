// SPDX-License-Identifier: Apache-2.0
//
// Stage — runs the real actors on one thread, in a random order that the seed decides.
//
//   CAF's test_coordinator ─▶ [Stage]: one message of one ready actor per step
//   actor clock + FakeClock ─▶ time moves from timer to timer, never by itself
//
// Messages of one mailbox stay in order. The stage sees every actor begin and end.

#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <typeinfo>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include "tests/sim/trace.hpp"
#include "tests/support/fake_chance.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/fake_complaints.hpp"
#include "tests/support/fake_faults.hpp"

namespace signalbox::sim {

using testing::FakeChance;
using testing::FakeClock;
using testing::FakeComplaints;
using testing::FakeFaults;

class Stage {
 public:
  Stage(FakeClock& clock,
        FakeChance& chance,
        FakeFaults& faults,
        FakeComplaints& complaints,
        Trace& trace);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  caf::actor_system& system() { return system_; }

  /// Runs one message, or the actions and timers that are due next until `end`. False: no message
  /// can run, and nothing is due until then.
  bool step(Instant end);

  /// Chooses an actor at random. For this long the actor runs only when no other actor can run and
  /// no timer is due, as if it were on a slow thread.
  void starve_somebody(Duration duration, FakeChance& dice);

  /// For this long no actor runs, while time and the fakes go on: as if the process got no CPU
  /// time, or the clock jumped.
  void freeze(Duration duration) { frozen_until_ = clock_.now() + duration; }

  bool idle() const { return coordinator_.jobs.empty(); }

  /// Ends a living actor of this kind as an exception would. False: no actor of the kind lives.
  bool kill(const std::string& kind, FakeChance& dice);

  /// The number of actors of the kind killed so far, by kill() or by a poisoned configuration.
  std::size_t killed(const std::string& kind) const {
    const auto found = killed_.find(kind);
    return found == killed_.end() ? 0 : found->second;
  }

  /// The number of living actors of the kind.
  std::size_t living(const std::string& kind) const;

  std::size_t living() const { return cast_.size(); }

  /// Ends every actor, as the process's end would.
  void clear();

 private:
  struct Player {
    std::string kind;
    caf::weak_actor_ptr actor;
  };

  bool wait_frozen(Instant end);
  bool interrupts();
  void watch_endpoints(const caf::type_erased_tuple& message);
  void watch_sweeps(caf::scheduled_actor& actor, const caf::type_erased_tuple& message);
  void poison(caf::scheduled_actor& actor, const caf::type_erased_tuple& message);
  std::vector<std::size_t> runnable() const;
  void run_message(std::size_t job);
  bool run_due(Instant end);
  std::optional<Instant> next_due();
  void meet(caf::scheduled_actor& actor);
  std::string text_of(const caf::type_erased_tuple& message);
  const std::string& name_of(const std::type_info& type);

  FakeClock& clock_;
  FakeChance& chance_;
  FakeFaults& faults_;
  FakeComplaints& complaints_;
  Trace& trace_;
  Instant frozen_until_;
  caf::actor_id starved_ = 0;
  Instant starved_until_;
  // The living actors, the oldest first. The ids of actors are the same in every run.
  std::map<caf::actor_id, Player> cast_;
  std::map<std::string, std::size_t> killed_;
  // The time of the last sweep of each subchannel map.
  std::map<caf::actor_id, Instant> last_sweep_;
  std::map<const std::type_info*, std::string> names_;
  caf::actor_system_config config_;
  caf::actor_system system_;
  caf::scheduler::test_coordinator& coordinator_;
};

}  // namespace signalbox::sim
