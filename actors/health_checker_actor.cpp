// SPDX-License-Identifier: Apache-2.0
#include "actors/health_checker_actor.hpp"

#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "actors/io/health_prober.hpp"
#include "actors/seed.hpp"
#include "actors/workload.hpp"
#include "lb/subchannel/health_check_core.hpp"
#include "metrics/instruments.hpp"

namespace signalbox::actors {
namespace {

using protocol::HealthCheckerActor;

struct HealthCheckerState {
  HealthCheckerState() = default;  // Must not be an aggregate: see actors/protocol/caf_version.hpp.

  static constexpr const char* name = "signalbox.health_checker";

  using Self = protocol::SelfOf<HealthCheckerActor, HealthCheckerState>;

  template <typename Event>
  void feed(Event event) {
    const auto measured = workload.begin(self);
    for (auto& effect : core->step(HealthCheckEvent{std::move(event)}, protocol::now_of(self)))
      std::visit([this](auto& order) { run(order); }, effect);
  }

  void run(StartProbe& order) {
    const HealthCheckerActor me{self};
    probes.at(order.check)
        ->begin([me, check = order.check, number = order.number](ProbeAnswer answer) {
          protocol::post(
              me, ProbeEnded{check, number, answer.outcome, std::move(answer.why), answer.delayed});
        });
  }

  void run(ReportHealth& order) {
    protocol::send(self, map, HealthChecked{address, std::move(order.status)});
  }

  void run(StartTimer& order) {
    protocol::send_after(self, HealthCheckerActor{self}, order.delay, TimerFired{order.timer});
  }

  void run(Observe& order) { environment->instruments->observe(order.observation); }

  Self self = nullptr;
  EnvironmentPtr environment;
  Workload workload;
  Address address;
  protocol::SubchannelMapActor map;
  /// One probe for each health check of the cluster, with the same index as its check.
  std::vector<std::unique_ptr<HealthProber::Probe>> probes;
  std::optional<lb::HealthCheckCore> core;
};

protocol::BehaviorOf<HealthCheckerActor> health_checker_behavior(HealthCheckerState::Self self,
                                                                 EnvironmentPtr environment,
                                                                 StartHealthChecks order,
                                                                 protocol::SubchannelMapActor map) {
  HealthCheckerState& state = self->state;
  state.self = self;
  state.environment = std::move(environment);
  state.workload = Workload(state.environment->instruments->actor_stats("health_checker"));
  state.address = std::move(order.address);
  state.map = std::move(map);
  HealthProber::Target target;
  target.peer.address = order.probed;
  target.peer.tls = order.tls;
  target.peer.authority = order.authority;
  target.cluster = order.cluster;
  for (const HealthCheck& check : *order.checks)
    state.probes.push_back(state.environment->health_prober->prepare(target, check));
  state.core.emplace(
      lb::HealthCheckOptions{order.cluster,
                             order.checks,
                             seed_of(state.environment->seed, state.address.str(), self->id())});
  state.feed(HealthChecksBegun{});
  return {
      [&state](ProbeEnded& event) { state.feed(std::move(event)); },
      [&state](const TimerFired& event) { state.feed(event); },
  };
}

}  // namespace

HealthCheckerActor spawn_health_checker(caf::actor_system& system,
                                        EnvironmentPtr environment,
                                        StartHealthChecks order,
                                        protocol::SubchannelMapActor map) {
  return system.spawn(
      health_checker_behavior, std::move(environment), std::move(order), std::move(map));
}

}  // namespace signalbox::actors
