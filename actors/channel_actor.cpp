// SPDX-License-Identifier: Apache-2.0
#include "actors/channel_actor.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "actors/child_policies.hpp"
#include "actors/reclaimer.hpp"
#include "actors/seed.hpp"
#include "actors/status_board.hpp"
#include "actors/watcher_actor.hpp"
#include "actors/workload.hpp"
#include "lb/channel_core.hpp"
#include "lb/connected_text.hpp"
#include "metrics/instruments.hpp"

namespace signalbox::actors {
namespace {

using protocol::ChannelActor;
using protocol::GracePassed;
using protocol::PolicyActor;
using protocol::RestartDue;
using protocol::StopReason;
using protocol::WatcherActor;
using protocol::XdsClientActor;
using protocol::XdsClientReplaced;

const char kWatcherName[] = "xds_watcher";
const char kRootName[] = "root";

/// Makes the counters for the calls of one target to the leaves of its aggregates.
class TargetCalls final : public CallCounters {
 public:
  TargetCalls(std::shared_ptr<metrics::Instruments> instruments, std::string target)
      : instruments_(std::move(instruments)), target_(std::move(target)) {}

  std::shared_ptr<const CallStats> of_leaf(const ClusterName& aggregate,
                                           const ClusterName& leaf) override {
    return instruments_->call_stats(target_, leaf, aggregate);
  }

 private:
  const std::shared_ptr<metrics::Instruments> instruments_;
  const std::string target_;
};

/// Copies the environment for the policies of one target, and adds the counters of that target's
/// calls and its TargetBoard.
EnvironmentPtr environment_of(const Environment& all, const ChannelPort& port) {
  auto own = std::make_shared<Environment>(all);
  own->policy.target = port.target;
  own->policy.call_counters = std::make_shared<TargetCalls>(all.instruments, port.target);
  own->status = port.status;
  return own;
}

struct ChannelState {
  ChannelState() = default;  // Must not be an aggregate: see actors/protocol/caf_version.hpp.

  ~ChannelState() {
    const StopReason reason = orderly ? StopReason::kOrderly : StopReason::kParentDied;
    policies.stop_all(reason);
    if (watcher) protocol::stop(watcher, reason);
  }

  static constexpr const char* name = "signalbox.channel";

  using Self = protocol::SelfOf<ChannelActor, ChannelState>;

  void open(Self me, EnvironmentPtr env, std::shared_ptr<const ChannelPort> its_port);
  void launch_watcher();

  template <typename Event>
  void feed(Event event) {
    const auto measured = workload.begin(self);
    for (auto& effect : core->step(lb::ChannelEvent{std::move(event)}, protocol::now_of(self))) {
      std::visit([this](auto& order) { run(order); }, effect);
    }
  }

  void run(lb::ApplyToRoot& order) {
    port->status->applied(order.update, protocol::now_of(self));
    if (policies.contains(root)) {
      policies.update(root, order.update);
    } else {
      policies.start(root, order.update);
    }
  }

  void run(lb::ExitIdleRoot&) {
    if (auto actor = policies.actor(root)) protocol::send(self, actor, IdleExitRequested{});
  }

  void run(lb::PublishSnapshot& order);
  void record_applied(Generation generation, const lb::ConfigApplied& applied);
  void announce(ConnectivityState state);
  void log_applied(Generation generation);

  void run(lb::ReferToClusters& order) {
    std::erase_if(in_metrics,
                  [&](const auto& held) { return !order.clusters.contains(held.first); });
    for (const ClusterName& cluster : order.clusters) {
      auto& held = in_metrics[cluster];
      if (held == nullptr) held = environment->instruments->hold_cluster(cluster);
    }
    referenced.clusters = std::move(order.clusters);
    if (watcher) protocol::send(self, watcher, referenced);
  }

  void run(RebuildSoon&) { protocol::send(self, ChannelActor{self}, RebuildDue{}); }

  void run(StartTimer& order) {
    protocol::send_after(self, ChannelActor{self}, order.delay, TimerFired{order.timer});
  }

  Self self = nullptr;
  EnvironmentPtr environment;
  Workload workload;
  std::shared_ptr<const ChannelPort> port;
  XdsClientActor client;
  WatcherActor watcher;
  RestartDelay watcher_delay;
  ClustersReferenced referenced;
  std::map<ClusterName, std::shared_ptr<const void>> in_metrics;
  std::optional<lb::ChannelCore> core;
  XdsConfigPtr newest;        ///< The configuration that came last.
  ResourceVersions versions;  ///< The versions of the resources of `newest`.
  bool is_announced = false;  ///< announce() has nothing to log any more.
  Generation shown = 0;       ///< The last generation that the log has named.
  const ChildName root{kRootName};
  ChildPolicies policies;
  protocol::Watches watches;
  bool orderly = false;
};

void ChannelState::open(Self me, EnvironmentPtr env, std::shared_ptr<const ChannelPort> its_port) {
  self = me;
  environment = std::move(env);
  workload = Workload(environment->instruments->actor_stats("channel"));
  port = std::move(its_port);
  const auto make_ref = [this](const ClusterName& cluster) {
    return make_tracked<lb::ClusterRef>(
        environment->reclaimer,
        cluster,
        environment->instruments->call_stats(port->target, cluster));
  };
  const lb::SnapshotCell::Reader last(*port->cell);
  is_announced = last->generation != 0;  // An earlier actor published `last`.
  core.emplace(make_ref, *last, seed_of(environment->seed, port->target), environment->faults);
  if (last->clusters != nullptr) {
    for (const auto& [cluster, ref] : *last->clusters)
      referenced.clusters.insert(cluster);
  }

  const auto died = [this](const ChildName&) { feed(lb::RootDied{}); };
  const auto given_up = [this](const ChildName&) { feed(lb::RootGivenUp{}); };
  policies.open(PolicyPath(port->target),
                policy_hooks<ChannelActor>(
                    self, environment_of(*environment, *port), watches, died, given_up));
}

void ChannelState::launch_watcher() {
  watcher = spawn_watcher(self->home_system(), environment, port, client, ChannelActor{self});
  watches.add(self, watcher, [this](const caf::error& reason) {
    environment->instruments->count_actor_death("xds_watcher", protocol::reason_text(reason));
    watcher = nullptr;
    const Duration delay = watcher_delay.next(protocol::now_of(self));
    protocol::send_after(self, ChannelActor{self}, delay, RestartDue{kWatcherName});
  });
  protocol::send(self, watcher, referenced);
}

// Logs a generation with the first snapshot of it that this actor publishes. Further snapshots of
// the generation, which a changed picker or note causes, are not logged.
void ChannelState::log_applied(Generation generation) {
  if (std::exchange(shown, generation) == generation || !environment->log) return;
  environment->log({LogLevel::kInfo,
                    LogKind::kConfigApplied,
                    absl::StrCat(port->target, ": calls follow configuration ", generation)});
}

void ChannelState::run(lb::PublishSnapshot& order) {
  const std::uint64_t sequence = order.snapshot.sequence;
  const Generation generation = order.snapshot.generation;
  environment->instruments->set_config_generation(port->target, order.snapshot.generation);
  port->status->published(order.snapshot.generation,
                          order.state,
                          order.snapshot.failure,
                          order.snapshot.selector != nullptr,
                          protocol::now_of(self));
  auto old = port->cell->exchange(std::make_unique<const lb::Snapshot>(std::move(order.snapshot)));
  environment->reclaimer->retire(std::move(old), [me = ChannelActor{self}, sequence] {
    protocol::post(me, GracePassed{sequence - 1});
  });
  port->listener->published(sequence, order.state);
  if (order.applied) record_applied(generation, *order.applied);
  log_applied(generation);
  announce(order.state);
}

void ChannelState::record_applied(Generation generation, const lb::ConfigApplied& applied) {
  const WallTime now = std::chrono::system_clock::now();
  environment->instruments->record_applied(
      port->target, applied.application, applied.propagation, now);
  AppliedConfig seen{port->target, generation, applied.origin.versions, std::nullopt, now};
  if (applied.propagation)
    seen.received = now - std::chrono::duration_cast<WallTime::duration>(*applied.propagation);
  port->applied->add(std::move(seen));
}

// Logs once that the target is served: when the channel is READY for the first time. Later changes
// of its state are not logged. If an earlier actor of the channel has published a configuration,
// nothing is logged.
void ChannelState::announce(ConnectivityState state) {
  if (is_announced || state != ConnectivityState::kReady || newest == nullptr) return;
  is_announced = true;
  if (environment->announces_targets && environment->log)
    environment->log({LogLevel::kNotice,
                      LogKind::kConfigApplied,
                      absl::StrCat(port->target, ": ", lb::connected_text(*newest, versions))});
}

protocol::BehaviorOf<ChannelActor> channel_behavior(ChannelState::Self self,
                                                    EnvironmentPtr environment,
                                                    std::shared_ptr<const ChannelPort> port,
                                                    XdsClientActor client) {
  ChannelState& state = self->state;
  protocol::record_orderly_exit(self, state.orderly);
  state.client = std::move(client);
  state.open(self, std::move(environment), std::move(port));
  state.launch_watcher();
  return {
      [&state](EmitConfig& event) {
        if (!protocol::sent_by(state.self, state.watcher)) return;
        state.newest = event.config;
        state.versions = event.origin.versions;
        state.feed(lb::XdsConfigArrived{
            std::move(event.config), std::move(event.notes), std::move(event.origin)});
      },
      [&state](EmitError& event) {
        if (!protocol::sent_by(state.self, state.watcher)) return;
        state.feed(lb::XdsConfigLost{std::move(event.status)});
      },
      [&state](ChildStateChanged& event) {
        if (!protocol::sent_by(state.self, state.policies.actor(state.root))) return;
        // Calls may be routed by the published generation from now on, so a restarted root policy
        // must not get an older configuration.
        state.policies.survived(state.root, event.generation);
        state.feed(lb::RootPublished{event.state, std::move(event.picker), event.generation});
      },
      [&state](const ChildApplied& event) {
        if (!protocol::sent_by(state.self, state.policies.actor(state.root))) return;
        state.policies.survived(state.root, event.generation);
      },
      [&state](const ChildAskedReresolution&) {
        if (state.watcher) protocol::send(state.self, state.watcher, ReresolutionRequested{});
      },
      [&state](const GracePassed& event) { state.feed(lb::SnapshotGracePassed{event.sequence}); },
      [&state](const TimerFired& event) { state.feed(event); },
      [&state](const IdleExitRequested& event) { state.feed(event); },
      [&state](const RebuildDue& event) { state.feed(event); },
      [&state](const RestartDue& event) {
        if (event.what == kRootName) {
          state.policies.restart_due(event);
        } else if (!state.watcher) {
          state.launch_watcher();
        }
      },
      [&state](const XdsClientReplaced& event) {
        state.client = caf::actor_cast<XdsClientActor>(event.client);
        if (state.watcher) protocol::send(state.self, state.watcher, event);
      },
  };
}

}  // namespace

ChannelActor spawn_channel(caf::actor_system& system,
                           EnvironmentPtr environment,
                           std::shared_ptr<const ChannelPort> port,
                           XdsClientActor client) {
  return system.spawn(channel_behavior, std::move(environment), std::move(port), std::move(client));
}

}  // namespace signalbox::actors
