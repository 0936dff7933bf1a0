// SPDX-License-Identifier: Apache-2.0
#include "actors/sweeper_actor.hpp"

#include <utility>

#include "actors/workload.hpp"
#include "lb/subchannel/sweep.hpp"
#include "metrics/instruments.hpp"

namespace signalbox::actors {
namespace {

using protocol::SweeperActor;

struct SweeperState {
  SweeperState() = default;  // Must not be an aggregate: see actors/protocol/caf_version.hpp.

  static constexpr const char* name = "signalbox.sweeper";

  using Self = protocol::SelfOf<SweeperActor, SweeperState>;

  template <typename Event>
  void feed(const Event& event) {
    const auto measured = workload.begin(self);
    for (const auto& effect : core.step(SweepEvent{event}, protocol::now_of(self)))
      std::visit([this](const auto& order) { run(order); }, effect);
  }

  void run(const Sweep&) { protocol::send(self, map, SweepAsked{}); }

  void run(const StartTimer& order) {
    protocol::send_after(self, SweeperActor{self}, order.delay, TimerFired{order.timer});
  }

  Self self = nullptr;
  Workload workload;
  protocol::SubchannelMapActor map;
  lb::SweepCore core;
};

protocol::BehaviorOf<SweeperActor> sweeper_behavior(SweeperState::Self self,
                                                    const EnvironmentPtr& environment,
                                                    protocol::SubchannelMapActor map) {
  SweeperState& state = self->state;
  state.self = self;
  state.workload = Workload(environment->instruments->actor_stats("sweeper"));
  state.map = std::move(map);
  return {
      [&state](const IdleTimeoutSet& event) { state.feed(event); },
      [&state](const SweepDone& event) { state.feed(event); },
      [&state](const TimerFired& event) { state.feed(event); },
  };
}

}  // namespace

SweeperActor spawn_sweeper(caf::actor_system& system,
                           EnvironmentPtr environment,
                           protocol::SubchannelMapActor map) {
  return system.spawn(sweeper_behavior, std::move(environment), std::move(map));
}

}  // namespace signalbox::actors
