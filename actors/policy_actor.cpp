// SPDX-License-Identifier: Apache-2.0
//
// The actor around any lb::Policy. The actor adds only a mailbox, a clock, children that are
// actors, and the execution of effects. All load balancing is in lb/.

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

#include "actors/ask_relay.hpp"
#include "actors/child_policies.hpp"
#include "actors/load_watches.hpp"
#include "actors/log_events.hpp"
#include "actors/policy_birth.hpp"
#include "actors/reclaimer.hpp"
#include "actors/seed.hpp"
#include "actors/status_board.hpp"
#include "actors/subchannel_map_actor.hpp"
#include "actors/workload.hpp"
#include "lb/pick/pickers.hpp"
#include "lb/policy_registry.hpp"
#include "messages/invariant.hpp"
#include "messages/overloaded.hpp"
#include "metrics/instruments.hpp"

namespace signalbox::actors {
namespace {

using protocol::PolicyActor;
using protocol::RestartDue;
using protocol::StopReason;
using protocol::SubchannelMapActor;

const char kMapName[] = "subchannel map";

// Sends a picker's asks to the actor that built the picker, from any thread.
class PostAsks final : public AskTarget {
 public:
  explicit PostAsks(PolicyActor policy) : policy_(std::move(policy)) {}

  void tell(const PickAsk& ask) const override { protocol::post(policy_, PickAsked{ask}); }

 private:
  PolicyActor policy_;
};

struct PolicyState {
  PolicyState() = default;  // Must not be an aggregate: see actors/protocol/caf_version.hpp.

  ~PolicyState() {
    const StopReason reason = orderly ? StopReason::kOrderly : StopReason::kParentDied;
    children.stop_all(reason);
    if (map) protocol::stop(map, reason);
    if (active) environment->instruments->forget_priority(active->cluster, active->priority);
    if (environment) environment->instruments->add_policies(name_of_policy, -1);
  }

  static constexpr const char* name = "signalbox.policy";

  using Self = protocol::SelfOf<PolicyActor, PolicyState>;

  void open(Self me, EnvironmentPtr env, PolicyBirth born);

  template <typename Event>
  void feed(Event event) {
    const auto measured = workload.begin(self);
    const Instant began = protocol::now_of(self);
    LbEffects effects = core->step(LbEvent{std::move(event)}, began);
    measure_build(effects, began);
    run(std::move(effects));
  }

  // Stores the duration of a step that has built a picker. A step that publishes the same picker as
  // before has built none, so its duration is not stored.
  void measure_build(const LbEffects& effects, Instant began) {
    for (const LbEffect& effect : effects) {
      const auto* publish = std::get_if<Publish>(&effect);
      if (publish == nullptr || publish->picker.get() == last_picker) continue;
      last_picker = publish->picker.get();
      build_cost = protocol::now_of(self) - began;
    }
  }

  void fail_child(const ChildName& child);
  void settle_holds();
  void begin_map();
  void map_restart_due();
  void spawn_map();

  // The log is the program's, and may block. So it is called when all messages are sent.
  void run(LbEffects effects) {
    for (LbEffect& effect : effects)
      std::visit([this](auto& order) { run(order); }, effect);
    if (!environment->log) return;
    for (const LbEffect& effect : effects) {
      const auto* seen = std::get_if<Observe>(&effect);
      if (seen == nullptr) continue;
      if (auto line = line_of(seen->observation)) environment->log(*std::move(line));
    }
  }

  void run(StartChild& order) { children.start(order.child, order.update); }

  void run(UpdateChild& order) { children.update(order.child, order.update); }

  void run(StopChild& order) { children.stop(order.child, StopReason::kOrderly); }

  void run(ExitIdleChild& order) {
    if (auto child = children.actor(order.child)) protocol::send(self, child, IdleExitRequested{});
  }

  void run(StartTimer& order) {
    protocol::send_after(self, PolicyActor{self}, order.delay, TimerFired{order.timer});
  }

  void run(CancelTimer&) {}  // CAF cannot cancel a timer; the core drops its TimerFired.

  void run(Publish& order) {
    protocol::send(self,
                   birth.parent,
                   ChildStateChanged{birth.name,
                                     order.state,
                                     order.status,
                                     std::move(order.picker),
                                     order.generation,
                                     std::move(order.hosts)});
  }

  void run(ReportApplied& order) {
    protocol::send(self, birth.parent, ChildApplied{birth.name, order.generation});
  }

  void run(RebuildSoon&) { protocol::send(self, PolicyActor{self}, RebuildDue{}); }

  void run(ServeSubchannels& order);

  void run(SettleSubchannels& order) {
    settled = order.generation;
    if (map) protocol::send(self, map, MapGenerationApplied{order.generation});
  }

  void run(CloseSubchannels&);

  void run(AcquireSubchannel& order) {
    protocol::send(self, birth.subchannels, SubchannelAcquired{holder(), order.address});
  }

  void run(ReleaseSubchannel& order) {
    protocol::send(self, birth.subchannels, SubchannelReleased{holder(), order.address});
  }

  void run(Connect& order) {
    protocol::send(self, birth.subchannels, SubchannelConnectAsked{order.address});
  }

  void run(SetEndpointHealth& order) {
    protocol::send(self, birth.subchannels, EndpointHealthChanged{order.judge, order.unhealthy});
  }

  void run(TrackEndpoints& order) {
    protocol::send(self, birth.subchannels, EndpointsTracked{order.trackers});
  }

  void run(KeepSessions& order) {
    protocol::send(self,
                   birth.subchannels,
                   SessionsKept{holder(), order.idle_timeout, std::move(order.marks)});
  }

  void run(WatchLoad& order) { load_watches.set(environment->load_streams.get(), order); }

  void run(RequestReresolution&) {
    protocol::send(self, birth.parent, ChildAskedReresolution{birth.name});
  }

  void run(Observe& order) {
    if (auto* now = std::get_if<PriorityActive>(&order.observation)) {
      // Keeps the cluster's gauges in the metrics until this policy has removed its values.
      if (!active) observed = environment->instruments->hold_cluster(now->cluster);
      if (active) now->before = active->priority;
      active = *now;
    }
    if (const auto* load = std::get_if<TierLoad>(&order.observation)) hold(*load);
    if (environment->status != nullptr) show(order.observation);
    environment->instruments->observe(order.observation);
  }

  void show(const Observation& observation) {
    if (const auto* seen = std::get_if<PrioritiesSeen>(&observation)) {
      shown_priorities = environment->status->show(*seen);
    } else if (const auto* moved = std::get_if<PriorityMoved>(&observation)) {
      environment->status->moved(*moved);
    } else if (const auto* load = std::get_if<TierLoad>(&observation)) {
      const std::pair place(load->leaf, load->priority);
      if (load->percent) {
        shown_loads[place] = environment->status->show(*load);
      } else {
        shown_loads.erase(place);
      }
    }
  }

  // Keeps the gauge of a priority of a leaf (tiered mode) in the metrics while this policy reports
  // that priority's load.
  void hold(const TierLoad& load) {
    const std::pair place(load.leaf, load.priority);
    if (load.percent) {
      tiers[place] = environment->instruments->hold_load(load);
    } else {
      tiers.erase(place);
    }
  }

  Holder holder() const { return Holder{birth.path, incarnation}; }

  bool serves() const { return in_metrics != nullptr; }

  Self self = nullptr;
  EnvironmentPtr environment;
  Workload workload;
  PolicyBirth birth;
  // This actor as a holder. Its number is its actor's id: later children of a parent have greater
  // ids.
  Incarnation incarnation;
  std::string name_of_policy;
  std::unique_ptr<lb::Policy> core;
  ChildPolicies children;
  protocol::Watches watches;
  LoadWatches load_watches;
  // This policy's own subchannel map; null unless this policy is the root of a leaf cluster.
  SubchannelMapActor map;
  MapGenerationStarted map_config;
  // The last generation that all policies below have applied (SettleSubchannels). A restarted
  // subchannel map gets this generation again.
  Generation settled = 0;
  RestartDelay map_delay;
  // The duration of the last step that published another picker, for the core's next RebuildDue.
  Duration build_cost{};
  const Picker* last_picker = nullptr;  // Only compared: the picker may be destroyed.
  bool map_awaited = false;             // The map died; its RestartDue is pending.
  // Keeps the cluster's gauges in the metrics while this policy has to have a subchannel map.
  std::shared_ptr<const void> in_metrics;
  std::shared_ptr<const void> observed;
  std::optional<PriorityActive> active;  // The values that this policy last set in the metrics.
  // Holds the gauge of each load that this policy reports (tiered mode). Keys: leaf and priority.
  std::map<std::pair<ClusterName, std::size_t>, std::shared_ptr<const void>> tiers;
  // Keep this policy's pieces on the TargetBoard while the policy lives (status_board.hpp).
  std::shared_ptr<const void> shown_priorities;
  std::map<std::pair<ClusterName, std::size_t>, std::shared_ptr<const void>> shown_loads;
  bool orderly = false;
};

void PolicyState::open(Self me, EnvironmentPtr env, PolicyBirth born) {
  self = me;
  environment = std::move(env);
  workload = Workload(environment->instruments->actor_stats("policy"));
  birth = std::move(born);
  incarnation = birth.parent_incarnation;
  incarnation.push_back(self->id());
  name_of_policy = std::string(policy_name(*birth.config));
  environment->instruments->add_policies(name_of_policy, +1);
  lb::PolicyContext context;
  context.path = birth.path;
  context.cluster = birth.cluster;
  context.seed = seed_of(environment->seed, birth.path.str(), birth.launch);
  context.asks = std::make_shared<const PostAsks>(PolicyActor{self});
  if (environment->ask_relay != nullptr) {
    context.asks = environment->ask_relay->relay(
        environment->policy.target, birth.path, std::move(context.asks));
  }
  context.options = environment->policy;
  context.retirement = environment->reclaimer;
  core = lb::make_policy(*birth.config, std::move(context));
  SIGNALBOX_INVARIANT(core != nullptr, absl::StrCat("policy ", name_of_policy, " is registered"));

  const auto died = [this](const ChildName& child) { feed(ChildDied{child}); };
  const auto given_up = [this](const ChildName& child) { fail_child(child); };
  children.open(birth.path, policy_hooks<PolicyActor>(self, environment, watches, died, given_up));
  if (birth.subchannels) children.serve(birth.subchannels, birth.cluster, incarnation);
}

// The dead child has never published a picker. Calls to it fail until another configuration comes;
// without this picker the calls would wait for that configuration.
void PolicyState::fail_child(const ChildName& child) {
  const absl::Status why =
      absl::UnavailableError(absl::StrCat("policy ", child.str(), " died of its configuration"));
  feed(ChildStateChanged{
      child, ConnectivityState::kTransientFailure, why, lb::make_fail_picker(why), 0});
  // Without this event the core would wait for the dead child before it fails over.
  feed(ChildDied{child});
}

void PolicyState::run(ServeSubchannels& order) {
  map_config = MapGenerationStarted{order.settings, order.generation, order.endpoints};
  if (!serves()) {
    in_metrics = environment->instruments->hold_cluster(order.settings.cluster);
  }
  if (map) {
    protocol::send(self, map, map_config);
  } else if (map_awaited) {
    children.hold_back();
  } else {
    begin_map();
  }
}

void PolicyState::spawn_map() {
  std::shared_ptr<SubchannelTable> table;
  if (const auto* cds = std::get_if<CdsConfig>(birth.config.get());
      cds != nullptr && environment->status != nullptr)
    table = environment->status->open_table({cds->cluster, cds->aggregate});
  map = spawn_subchannel_map(self->home_system(), environment, std::move(table));
  children.serve(map, map_config.settings.cluster);
  watches.add(self, map, [this](const caf::error& reason) {
    environment->instruments->count_actor_death("subchannel_map", protocol::reason_text(reason));
    map = nullptr;
    map_awaited = true;
    children.suspend_all();
    const Duration delay = map_delay.next(protocol::now_of(self));
    protocol::send_after(self, PolicyActor{self}, delay, RestartDue{kMapName});
  });
}

// Starts the subchannel map, then the children, which acquire their subchannels anew. The death of
// an earlier map ended all holds, and suspended all children.
void PolicyState::begin_map() {
  spawn_map();
  protocol::send(self, map, map_config);
  // If all policies have applied the map's generation already, the core does not report that again.
  // Without the report the map would keep released subchannels.
  if (settled >= map_config.generation) protocol::send(self, map, MapGenerationApplied{settled});
  children.resume_all();
}

// The restart delay of the subchannel map is over. Starts no map if a configuration that came
// meanwhile needs none.
void PolicyState::map_restart_due() {
  map_awaited = false;
  if (serves() && !map) begin_map();
}

void PolicyState::run(CloseSubchannels&) {
  in_metrics.reset();
  children.serve(SubchannelMapActor(), {});
  if (!map) return;
  watches.remove(self, map);
  protocol::stop(map);
  map = nullptr;
}

// Makes the map release subchannels that a dead predecessor of this actor held and that this actor
// has not acquired again.
void PolicyState::settle_holds() {
  if (birth.subchannels) protocol::send(self, birth.subchannels, HolderSettled{holder()});
}

std::string described(const PolicyBirth& birth) {
  return absl::StrCat("policy ", policy_name(*birth.config), " (", birth.path.str(), ")");
}

protocol::BehaviorOf<PolicyActor> policy_behavior(PolicyState::Self self,
                                                  EnvironmentPtr environment,
                                                  PolicyBirth birth) {
  PolicyState& state = self->state;
  protocol::record_orderly_exit(self, state.orderly);
  protocol::report_exception(
      self, [log = environment->log, who = described(birth)](const std::string& what) {
        if (log) log({LogLevel::kError, LogKind::kActor, absl::StrCat(who, " died: ", what)});
      });
  state.open(self, std::move(environment), std::move(birth));
  return {
      [&state](ConfigUpdated& event) {
        state.birth.config = event.config;
        state.feed(std::move(event));
        state.settle_holds();
      },
      // ChildStateChanged and ChildApplied of a replaced child may still arrive. They are dropped.
      [&state](ChildStateChanged& event) {
        if (!protocol::sent_by(state.self, state.children.actor(event.child))) return;
        // A new picker proves that the child survived this generation, even if the child's own
        // children died of it.
        state.children.survived(event.child, event.generation);
        state.feed(std::move(event));
      },
      [&state](const ChildApplied& event) {
        if (!protocol::sent_by(state.self, state.children.actor(event.child))) return;
        state.children.survived(event.child, event.generation);
        state.feed(event);
      },
      [&state](const ChildAskedReresolution& event) { state.feed(event); },
      [&state](SubchannelStateChanged& event) { state.feed(std::move(event)); },
      [&state](const SubchannelGone& event) { state.feed(event); },
      [&state](const TimerFired& event) { state.feed(event); },
      [&state](const PickAsked& event) { state.feed(event); },
      [&state](const IdleExitRequested& event) { state.feed(event); },
      [&state](const RebuildDue&) { state.feed(RebuildDue{state.build_cost}); },
      [&state](const RestartDue& event) {
        if (event.what == kMapName) {
          state.map_restart_due();
        } else {
          state.children.restart_due(event);
        }
      },
  };
}

}  // namespace

protocol::PolicyActor spawn_policy(caf::actor_system& system,
                                   EnvironmentPtr environment,
                                   PolicyBirth birth) {
  return system.spawn(policy_behavior, std::move(environment), std::move(birth));
}

}  // namespace signalbox::actors
