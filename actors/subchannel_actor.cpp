// SPDX-License-Identifier: Apache-2.0
#include "actors/subchannel_actor.hpp"

#include <optional>
#include <utility>

#include "actors/heap_trimmer.hpp"
#include "actors/io/connector.hpp"
#include "actors/seed.hpp"
#include "actors/workload.hpp"
#include "lb/subchannel/disconnect_reason.hpp"
#include "lb/subchannel/subchannel_core.hpp"
#include "metrics/instruments.hpp"

namespace signalbox::actors {
namespace {

using protocol::SubchannelActor;

struct SubchannelState {
  SubchannelState() = default;  // Must not be an aggregate: see actors/protocol/caf_version.hpp.

  ~SubchannelState() {
    if (!environment) return;
    environment->instruments->add_subchannels(state, -1);
    if (state == ConnectivityState::kReady) {
      environment->instruments->add_connections(cluster, -1);
      environment->instruments->observe(ConnectionLost{cluster, lb::kSubchannelShutdown});
    }
    if (environment->trimmer != nullptr) environment->trimmer->record_end();
  }

  static constexpr const char* name = "signalbox.subchannel";

  using Self = protocol::SelfOf<SubchannelActor, SubchannelState>;

  template <typename Event>
  void feed(Event event) {
    const auto measured = workload.begin(self);
    for (auto& effect : core->step(SubchannelEvent{std::move(event)}, protocol::now_of(self))) {
      std::visit([this](auto& order) { run(order); }, effect);
    }
  }

  void run(OpenConnection& order) {
    const SubchannelActor me{self};
    const std::uint64_t attempt = order.attempt;
    Connector::Events events;
    events.connected = [me, attempt](ConnectionPtr made) {
      protocol::post(me, Connected{attempt, std::move(made)});
    };
    events.failed = [me, attempt](absl::Status why) {
      protocol::post(me, ConnectFailed{attempt, std::move(why)});
    };
    events.closed = [me, attempt](absl::Status why) {
      protocol::post(me, ConnectionClosed{attempt, std::move(why)});
    };
    connection = environment->connector->connect(peer, order.timeout, std::move(events));
  }

  void run(DropConnection&) { connection.reset(); }

  void run(NotifyState& order) {
    // A failed attempt holds no connection. Destroying the attempt saves memory while the endpoint
    // is in back-off.
    if (order.state.state == ConnectivityState::kTransientFailure) connection.reset();
    count_state(order.state.state);
    protocol::send(self, map, std::move(order.state));
  }

  void run(StartTimer& order) {
    protocol::send(
        self, map, protocol::SubchannelTimerAsked{peer.address, order.timer, order.delay});
  }

  void run(CancelTimer&) {}  // CAF cannot cancel a timer; the core drops its TimerFired.

  void run(Observe& order) { environment->instruments->observe(order.observation); }

  // Updates the gauges of live subchannels and connections.
  void count_state(ConnectivityState next) {
    metrics::Instruments& counted = *environment->instruments;
    counted.add_subchannels(state, -1);
    counted.add_subchannels(next, +1);
    if (state == ConnectivityState::kReady) counted.add_connections(cluster, -1);
    if (next == ConnectivityState::kReady) counted.add_connections(cluster, +1);
    state = next;
  }

  void open(lb::SubchannelOptions options) {
    peer = {options.address, options.settings.tls, options.settings.authority};
    cluster = options.settings.cluster;
    environment->instruments->add_subchannels(state, +1);
    core.emplace(std::move(options));
  }

  Self self = nullptr;
  EnvironmentPtr environment;
  Workload workload;
  Peer peer;
  ClusterName cluster;
  ConnectivityState state = ConnectivityState::kIdle;
  protocol::SubchannelMapActor map;
  std::optional<lb::SubchannelCore> core;
  std::unique_ptr<Connector::Attempt> connection;
};

protocol::BehaviorOf<SubchannelActor> subchannel_behavior(SubchannelState::Self self,
                                                          EnvironmentPtr environment,
                                                          Address address,
                                                          SubchannelSettings settings,
                                                          protocol::SubchannelMapActor map) {
  SubchannelState& state = self->state;
  state.self = self;
  state.environment = std::move(environment);
  state.workload = Workload(state.environment->instruments->actor_stats("subchannel"));
  state.map = std::move(map);
  lb::SubchannelOptions options = state.environment->subchannel;
  options.address = std::move(address);
  options.settings = std::move(settings);
  options.seed = seed_of(state.environment->seed, options.address.str(), self->id());
  state.open(std::move(options));
  return {
      [&state](const ConnectRequested& event) { state.feed(event); },
      [&state](Connected& event) { state.feed(std::move(event)); },
      [&state](const ConnectFailed& event) { state.feed(event); },
      [&state](const ConnectionClosed& event) { state.feed(event); },
      [&state](const TimerFired& event) { state.feed(event); },
  };
}

}  // namespace

SubchannelActor spawn_subchannel(caf::actor_system& system,
                                 EnvironmentPtr environment,
                                 Address address,
                                 SubchannelSettings settings,
                                 protocol::SubchannelMapActor map) {
  return system.spawn(subchannel_behavior,
                      std::move(environment),
                      std::move(address),
                      std::move(settings),
                      std::move(map));
}

}  // namespace signalbox::actors
