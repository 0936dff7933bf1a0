// SPDX-License-Identifier: Apache-2.0
//
// World — runs one seed: real actors, fakes around them, a random history, and checks.
//
//   turmoil: configurations change, calls come and go, faults of the seed's menu strike
//   calm:    faults end, all resources are changed a little and sent again, time passes
//   day:     hours of sessions: hosts move, drain, leave, fail; actors die; then all is quiet again
//   drains:  under load, hosts of sessions are drained and removed; then hosts that answer badly
//            are ejected
//   encore:  actors die while no fault is active; the configuration changes about when they restart
//   end:     the supervisor is stopped; nothing may be left
//
// One seed decides everything: order of actors, delays, history, faults.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"

#include "actors/supervisor_actor.hpp"
#include "lb/request_limit.hpp"
#include "messages/counting/load_book.hpp"
#include "metrics/instruments.hpp"
#include "tests/sim/calls.hpp"
#include "tests/sim/faults.hpp"
#include "tests/sim/history.hpp"
#include "tests/sim/invariants.hpp"
#include "tests/sim/promises.hpp"
#include "tests/sim/sessions.hpp"
#include "tests/sim/setting.hpp"
#include "tests/sim/stage.hpp"
#include "tests/sim/topology.hpp"

namespace signalbox::sim {

/// The result of running one seed.
struct Outcome {
  std::uint64_t hash = 0;
  std::uint64_t steps = 0;
  std::uint64_t calls = 0;
  std::uint64_t drains = 0;
  testing::Menu menu;                    ///< The faults that could fire.
  std::map<Fault, std::uint64_t> fired;  ///< The faults that fired, and how often.
  std::vector<std::string> broken;       ///< The broken invariants; empty: all held.
  std::string story;  ///< The last lines of the trace, if an invariant was broken.
};

/// The paths of calls. Every route of a topology matches one of them.
inline constexpr const char* kPaths[] = {"/a/x", "/b/x", "/c/x"};
/// The number of clients that keep their cookies, for each channel.
inline constexpr std::size_t kClients = 6;

class World {
 public:
  /// `menu`: the faults that may fire; nullopt: those that the seed draws. `out`: each line of the
  /// trace is written to it at once; null: no output.
  World(std::uint64_t seed, const absl::optional<testing::Menu>& menu, std::ostream* out);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Outcome run();

 private:
  class Listener;

  /// One target: its data plane (simulated calls), and the numbers of its newest published
  /// snapshot.
  struct Channel {
    std::shared_ptr<lb::SnapshotCell> cell;
    std::unique_ptr<Calls> calls;
    std::shared_ptr<const actors::ChannelPort> port;
    LastPublished last;
  };

  void open();
  void open_channel(const TargetModel& target);
  void turmoil();
  void calm();
  void stop();

  // The next functions are in world_sessions.cpp.
  void day();
  void day_hour();
  void call_as_anybody(Duration duration, Duration between);
  void ask_all_clients();
  void trouble_somebody();
  void drains();
  void drain_somebody(std::size_t at, const std::string& path);
  bool loses_its_sessions(Channel& channel, const TargetModel& target, const Suspect& suspect);

  /// Lets time pass; false as soon as an invariant is broken.
  bool pass(Duration duration);
  bool settle(Duration duration);
  bool eject_somebody(Channel& channel, const TargetModel& target);
  void check();
  void check_publication(Channel& channel);
  void check_calls();
  void check_limits();
  void check_books();
  bool report_all();
  void forget_endings();

  void change_soon();
  void call_soon();
  void change(FakeChance& dice);
  void encore();
  void serve(const std::set<std::string>& touched);
  void serve_all();
  void note_limits();
  void start_call(Channel& channel);
  void probe_routes();

  std::uint64_t seed_;
  Setting setting_;
  Stage stage_;
  Topology topology_;
  Faults faults_;
  bool in_turmoil_ = true;
  std::vector<Channel> channels_;  ///< In the order of the topology's targets.
  Needs needs_;
  std::uint64_t drains_ = 0;
  /// For each cluster: the highest limit of concurrent calls under which a running call may have
  /// begun.
  std::map<std::string, unsigned> limits_;
  std::uint64_t moves_ = 0;  ///< Calls::moves() at the last check of the limits.
  std::shared_ptr<lb::RequestLimits> request_limits_ = std::make_shared<lb::RequestLimits>();
  std::shared_ptr<LoadBook> load_book_ = std::make_shared<LoadBook>(std::set<ServerId>{0});
  std::shared_ptr<metrics::Instruments> instruments_ = std::make_shared<metrics::Instruments>();
  protocol::SupervisorActor supervisor_;
  std::vector<std::weak_ptr<const Picker>> published_;
};

}  // namespace signalbox::sim
