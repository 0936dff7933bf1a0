// SPDX-License-Identifier: Apache-2.0
#include "actors/subchannel_map_actor.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "actors/alarms.hpp"
#include "actors/health_checker_actor.hpp"
#include "actors/protocol/policy.hpp"
#include "actors/seed.hpp"
#include "actors/status_board.hpp"
#include "actors/subchannel_actor.hpp"
#include "actors/supervision.hpp"
#include "actors/sweeper_actor.hpp"
#include "actors/workload.hpp"
#include "lb/subchannel/subchannel_map_core.hpp"
#include "messages/overloaded.hpp"
#include "metrics/instruments.hpp"

namespace signalbox::actors {
namespace {

using protocol::HealthCheckerActor;
using protocol::RestartDue;
using protocol::StopReason;
using protocol::SubchannelActor;
using protocol::SubchannelMapActor;
using protocol::SubchannelObserver;
using protocol::SubchannelTimerAsked;
using protocol::SweeperActor;

// RestartDue::what says what a RestartDue restarts. An address: the address's subchannel.
// kSweeperName: the sweeper. kCheckerPrefix and an address: the address's health checker.
// kAlarmName restarts nothing, but says that a timer of a subchannel is due. No address equals one
// of these other texts.
const char kSweeperName[] = "sweeper";
const char kCheckerPrefix[] = "health_checker ";
const char kAlarmName[] = "alarm";

struct MapState {
  MapState() = default;  // Must not be an aggregate: see actors/protocol/caf_version.hpp.

  ~MapState() {
    const StopReason reason = orderly ? StopReason::kOrderly : StopReason::kParentDied;
    for (auto& [address, subchannel] : subchannels)
      protocol::stop(subchannel, reason);
    for (auto& [address, checks] : checked) {
      if (checks.actor) protocol::stop(checks.actor, reason);
    }
    if (sweeper) protocol::stop(sweeper, reason);
    for (const auto& [priority, last] : counted) {
      environment->instruments->observe(
          EndpointsCounted{last.cluster, {}, last.by_state, last.priority});
    }
    if (sessions)
      environment->instruments->observe(SessionsHeld{sessions->cluster, 0, sessions->held});
  }

  static constexpr const char* name = "signalbox.subchannel_map";

  using Self = protocol::SelfOf<SubchannelMapActor, MapState>;

  template <typename Event>
  void feed(Event event) {
    const auto measured = workload.begin(self);
    for (auto& effect : core.step(SubchannelMapEvent{std::move(event)}, protocol::now_of(self))) {
      std::visit([this](auto& order) { run(order); }, effect);
    }
    for (const auto& [address, seen] : core.take_changes()) {
      if (table != nullptr) table->set(address, seen);
    }
  }

  void run(SpawnSubchannel& order) {
    max_connections = order.settings->max_connections;
    launch(order.address, order.settings);
  }

  void run(StopSubchannel& order) {
    fallen.erase(order.address);
    alarms.drop(order.address);
    const auto found = subchannels.find(order.address);
    if (found == subchannels.end()) return;
    watches.remove(self, found->second);
    protocol::stop(found->second);
    subchannels.erase(found);
  }

  void run(ConnectSubchannel& order) {
    const auto found = subchannels.find(order.address);
    if (found == subchannels.end()) return;
    protocol::send(self, found->second, ConnectRequested{order.may_hurry});
  }

  void run(LimitConnections& order) {
    max_connections = order.max_connections;
    const auto found = subchannels.find(order.address);
    if (found == subchannels.end()) return;
    protocol::send(self, found->second, MaxConnectionsChanged{order.max_connections});
  }

  void run(NotifyHolder& order) {
    const auto found = holders.find(order.holder);
    if (found != holders.end()) protocol::send(self, found->second, std::move(order.state));
  }

  void run(NotifyGone& order) {
    const auto found = holders.find(order.holder);
    if (found != holders.end())
      protocol::send(self, found->second, SubchannelGone{std::move(order.address)});
  }

  void run(ArmSweeper& order) {
    idle_timeout = order.idle_timeout;
    if (!idle_timeout) {
      stop_sweeper();
    } else if (sweeper) {
      protocol::send(self, sweeper, IdleTimeoutSet{*idle_timeout});
    } else if (!sweeper_awaited) {
      launch_sweeper();
    }
  }

  void run(FinishSweep& order) {
    if (sweeper) protocol::send(self, sweeper, SweepDone{order.next_due});
  }

  void run(StartHealthChecks& order) {
    if (environment->health_prober == nullptr) return;
    stop_checks(order.address);
    Checks& checks = checked[order.address];
    checks.order = std::move(order);
    launch_checker(checks);
  }

  void run(StopHealthChecks& order) {
    stop_checks(order.address);
    checked.erase(order.address);
  }

  void run(Observe& order) {
    if (const auto* now = std::get_if<EndpointsCounted>(&order.observation)) {
      // Keeps the cluster's gauges in the metrics until this map has removed its values.
      if (counted.empty()) in_metrics = environment->instruments->hold_cluster(now->cluster);
      counted[now->priority] = *now;
    }
    if (const auto* now = std::get_if<SessionsHeld>(&order.observation)) sessions = *now;
    environment->instruments->observe(order.observation);
  }

  struct Checks;

  void launch_checker(Checks& checks);
  void stop_checks(const Address& address);
  void checker_restart_due(const Address& address);
  void launch(const Address& address, const SubchannelSettingsPtr& settings);
  void lost(const Address& address, const SubchannelSettingsPtr& settings);
  void restart(const Address& address);
  void meet(const Holder& holder);
  void await_alarm();
  void alarm_due(std::uint64_t number);
  void launch_sweeper();
  void stop_sweeper();
  void sweeper_restart_due();
  void restart_due(const RestartDue& event);

  Self self = nullptr;
  EnvironmentPtr environment;
  Workload workload;
  std::shared_ptr<SubchannelTable> table;  // Null: operators do not see the subchannels.
  lb::SubchannelMapCore core;
  protocol::Watches watches;

  // A subchannel that has died, and the delay of its restarts. Kept until the core stops the
  // subchannel.
  struct Fallen {
    SubchannelSettingsPtr settings;
    RestartDelay delay;
  };

  // The health checks of an address.
  struct Checks {
    StartHealthChecks order;
    HealthCheckerActor actor;  // The health checker; null: it died, and its RestartDue is pending.
    RestartDelay delay;
  };

  std::map<Address, Checks> checked;
  std::map<Address, SubchannelActor> subchannels;
  std::map<Address, Fallen> fallen;
  // That of the last SpawnSubchannel or LimitConnections, for subchannels that restart.
  std::uint32_t max_connections = 1;
  Alarms<Address, TimerId> alarms;  // The timers that subchannels have asked for.
  // When the pending RestartDue for the earliest alarm is due (await_alarm()); nullopt: none is
  // pending.
  std::optional<Instant> awaited;
  std::uint64_t awaited_number = 0;
  std::map<Holder, SubchannelObserver> holders;
  std::shared_ptr<const void> in_metrics;
  // The counts that this subchannel map reported last to the metrics, by priority. Key nullopt: the
  // addresses that no priority has.
  std::map<std::optional<std::uint32_t>, EndpointsCounted> counted;
  std::optional<SessionsHeld> sessions;  // The values that this map last set in the metrics.
  SweeperActor sweeper;                  // Null: no sessions are kept, or the sweeper died.
  // The idle timeout of the last ArmSweeper, for a restarted sweeper.
  std::optional<Duration> idle_timeout;
  RestartDelay sweeper_delay;
  bool sweeper_awaited = false;  // The sweeper died, and its RestartDue is pending.
  bool orderly = false;
};

void MapState::launch(const Address& address, const SubchannelSettingsPtr& settings) {
  auto actor = spawn_subchannel(
      self->home_system(), environment, address, settings, SubchannelMapActor{self});
  watches.add(self, actor, [this, address, settings](const caf::error& reason) {
    environment->instruments->count_actor_death("subchannel", protocol::reason_text(reason));
    lost(address, settings);
  });
  subchannels[address] = std::move(actor);
}

void MapState::lost(const Address& address, const SubchannelSettingsPtr& settings) {
  subchannels.erase(address);
  alarms.drop(address);
  Fallen& entry = fallen[address];
  entry.settings = settings;
  const Duration delay = entry.delay.next(protocol::now_of(self));
  protocol::send_after(self, SubchannelMapActor{self}, delay, RestartDue{address.str()});
  feed(SubchannelDied{address,
                      absl::UnavailableError(absl::StrCat(address.str(), ": its actor died"))});
}

void MapState::restart(const Address& address) {
  const auto found = fallen.find(address);
  if (found == fallen.end() || subchannels.contains(address)) return;
  SubchannelSettings settings = *found->second.settings;
  settings.max_connections = max_connections;
  launch(address, std::make_shared<const SubchannelSettings>(std::move(settings)));
  SubchannelStateChanged fresh;
  fresh.address = address;
  feed(std::move(fresh));
}

// Makes sure that a RestartDue comes for the earliest alarm (timer of a subchannel). If an earlier
// alarm was set meanwhile, orders a new RestartDue; the number of the old one is then outdated.
void MapState::await_alarm() {
  const auto next = alarms.next();
  if (!next || (awaited && *awaited <= *next)) return;
  awaited = next;
  const Duration delay = std::max(Duration::zero(), Duration(*next - protocol::now_of(self)));
  protocol::send_after(
      self, SubchannelMapActor{self}, delay, RestartDue{kAlarmName, ++awaited_number});
}

void MapState::alarm_due(std::uint64_t number) {
  if (number != awaited_number) return;
  awaited.reset();
  for (auto& [address, timer] : alarms.take_due(protocol::now_of(self))) {
    const auto found = subchannels.find(address);
    if (found != subchannels.end())
      protocol::send(self, found->second, TimerFired{std::move(timer)});
  }
  await_alarm();
}

// The last report of a dead health checker stays valid until its successor reports.
void MapState::launch_checker(Checks& checks) {
  const Address& address = checks.order.address;
  checks.actor = spawn_health_checker(
      self->home_system(), environment, checks.order, SubchannelMapActor{self});
  watches.add(self, checks.actor, [this, address](const caf::error& reason) {
    environment->instruments->count_actor_death("health_checker", protocol::reason_text(reason));
    Checks& dead = checked.at(address);
    dead.actor = nullptr;
    const Duration delay = dead.delay.next(protocol::now_of(self));
    protocol::send_after(
        self, SubchannelMapActor{self}, delay, RestartDue{kCheckerPrefix + address.str()});
  });
}

void MapState::stop_checks(const Address& address) {
  const auto found = checked.find(address);
  if (found == checked.end() || !found->second.actor) return;
  watches.remove(self, found->second.actor);
  protocol::stop(found->second.actor);
  found->second.actor = nullptr;
}

// Does nothing if the address is no longer probed, or if a new actor probes it already.
void MapState::checker_restart_due(const Address& address) {
  const auto found = checked.find(address);
  if (found != checked.end() && !found->second.actor) launch_checker(found->second);
}

void MapState::launch_sweeper() {
  sweeper = spawn_sweeper(self->home_system(), environment, SubchannelMapActor{self});
  watches.add(self, sweeper, [this](const caf::error& reason) {
    environment->instruments->count_actor_death("sweeper", protocol::reason_text(reason));
    sweeper = nullptr;
    sweeper_awaited = true;
    const Duration delay = sweeper_delay.next(protocol::now_of(self));
    protocol::send_after(self, SubchannelMapActor{self}, delay, RestartDue{kSweeperName});
  });
  protocol::send(self, sweeper, IdleTimeoutSet{*idle_timeout});
}

void MapState::stop_sweeper() {
  if (!sweeper) return;
  watches.remove(self, sweeper);
  protocol::stop(sweeper);
  sweeper = nullptr;
}

// Does nothing if the map no longer keeps sessions, or has a new sweeper already.
void MapState::sweeper_restart_due() {
  sweeper_awaited = false;
  if (idle_timeout && !sweeper) launch_sweeper();
}

// Monitors the holder, and reports its end to the core. The core keeps the holds of a dead holder
// for its successor.
void MapState::meet(const Holder& holder) {
  if (holders.contains(holder)) return;
  auto actor = caf::actor_cast<SubchannelObserver>(self->current_sender());
  watches.add(self, actor, [this, holder](const caf::error& reason) {
    holders.erase(holder);
    feed(HolderGone{holder, !protocol::ended_orderly(reason)});
  });
  holders.emplace(holder, std::move(actor));
}

void MapState::restart_due(const RestartDue& event) {
  if (event.what == kSweeperName) {
    sweeper_restart_due();
  } else if (event.what == kAlarmName) {
    alarm_due(event.number);
  } else if (absl::StartsWith(event.what, kCheckerPrefix)) {
    checker_restart_due(Address(event.what.substr(sizeof(kCheckerPrefix) - 1)));
  } else {
    restart(Address(event.what));
  }
}

protocol::BehaviorOf<SubchannelMapActor> map_behavior(MapState::Self self,
                                                      EnvironmentPtr environment,
                                                      std::shared_ptr<SubchannelTable> table) {
  MapState& state = self->state;
  state.table = std::move(table);
  protocol::record_orderly_exit(self, state.orderly);
  state.self = self;
  state.environment = std::move(environment);
  state.workload = Workload(state.environment->instruments->actor_stats("subchannel_map"));
  return {
      [&state](const SubchannelAcquired& event) {
        state.meet(event.holder);
        state.feed(event);
      },
      [&state](const SubchannelReleased& event) { state.feed(event); },
      [&state](const SubchannelConnectAsked& event) { state.feed(event); },
      // Policies without endpoints settle, too. The core forgets them when they have ended.
      [&state](const HolderSettled& event) {
        state.meet(event.holder);
        state.feed(event);
      },
      [&state](const MapGenerationStarted& event) { state.feed(event); },
      [&state](const MapGenerationApplied& event) { state.feed(event); },
      [&state](const EndpointHealthChanged& event) { state.feed(event); },
      [&state](const EndpointsTracked& event) { state.feed(event); },
      [&state](const SessionsKept& event) {
        state.meet(event.keeper);
        state.feed(event);
      },
      // Messages of a stopped sweeper may still arrive. They are dropped.
      [&state](const SweepAsked& event) {
        if (protocol::sent_by(state.self, state.sweeper)) state.feed(event);
      },
      // Messages of a stopped health checker may still arrive. They are dropped.
      [&state](const HealthChecked& event) {
        const auto found = state.checked.find(event.address);
        if (found == state.checked.end()) return;
        if (protocol::sent_by(state.self, found->second.actor)) state.feed(event);
      },
      // Messages of a stopped subchannel may still arrive. They are dropped.
      [&state](SubchannelStateChanged& event) {
        const auto found = state.subchannels.find(event.address);
        if (found == state.subchannels.end()) return;
        if (!protocol::sent_by(state.self, found->second)) return;
        state.feed(std::move(event));
      },
      // Timer requests of a stopped subchannel may still arrive. They are dropped.
      [&state](const SubchannelTimerAsked& event) {
        const auto found = state.subchannels.find(event.address);
        if (found == state.subchannels.end()) return;
        if (!protocol::sent_by(state.self, found->second)) return;
        const Instant due = protocol::now_of(state.self) + event.delay;
        state.alarms.set(event.address, due, event.timer);
        state.await_alarm();
      },
      [&state](const RestartDue& event) { state.restart_due(event); },
  };
}

}  // namespace

SubchannelMapActor spawn_subchannel_map(caf::actor_system& system,
                                        EnvironmentPtr environment,
                                        std::shared_ptr<SubchannelTable> table) {
  return system.spawn(map_behavior, std::move(environment), std::move(table));
}

}  // namespace signalbox::actors
