// SPDX-License-Identifier: Apache-2.0
#include "actors/subchannel_actor.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"

#include "actors/heap_trimmer.hpp"
#include "actors/io/connector.hpp"
#include "actors/reclaimer.hpp"
#include "actors/seed.hpp"
#include "actors/workload.hpp"
#include "lb/pick/stream_lanes.hpp"
#include "lb/subchannel/disconnect_reason.hpp"
#include "lb/subchannel/subchannel_core.hpp"
#include "metrics/instruments.hpp"

namespace signalbox::actors {
namespace {

using protocol::SubchannelActor;

struct SubchannelState {
  SubchannelState() = default;  // Must not be an aggregate: see actors/protocol/caf_version.hpp.

  ~SubchannelState() {
    if (!core) return;
    environment->instruments->add_subchannels(state, -1);
    for (std::size_t open = counted; open > 0; --open)
      environment->instruments->observe(
          ConnectionLost{settings().cluster, lb::kSubchannelShutdown});
    count_connections(0);
    if (lanes != nullptr) lanes->close();
    if (environment->trimmer != nullptr) environment->trimmer->record_end();
  }

  static constexpr const char* name = "signalbox.subchannel";

  using Self = protocol::SelfOf<SubchannelActor, SubchannelState>;

  template <typename Event>
  void feed(Event event) {
    const auto measured = workload.begin(self);
    auto effects = core->step(SubchannelEvent{std::move(event)}, protocol::now_of(self));
    // A new connection is counted before a call can use it.
    count_connections(core->connections());
    for (auto& effect : effects)
      std::visit([this](auto& order) { run(order); }, effect);
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
    Peer peer{.address = core->options().address,
              .tls = settings().tls,
              .authority = settings().authority,
              .holder = self->id()};
    if (order.is_alone) peer.sole_user = UserId{self->id(), attempt};
    attempts.emplace_back(attempt,
                          environment->connector->connect(peer, order.timeout, std::move(events)));
  }

  void run(DropConnection& order) { drop(order.attempt); }

  // Destroying a failed attempt saves memory while the endpoint is in back-off.
  void drop(std::uint64_t attempt) {
    const auto dropped = std::ranges::remove_if(
        attempts, [attempt](const auto& held) { return held.first == attempt; });
    attempts.erase(dropped.begin(), dropped.end());
  }

  void run(OfferStreams& order) {
    if (lanes == nullptr) {
      const SubchannelActor me{self};
      lanes = std::make_shared<lb::StreamLanes>(environment->reclaimer,
                                                [me] { protocol::post(me, StreamsWanted{}); });
    }
    lanes->add(order.attempt, std::move(order.connection), order.is_shared);
  }

  void run(WithdrawStreams& order) {
    if (lanes != nullptr) lanes->remove(order.attempt);
  }

  void run(AskForDemand&) {
    if (lanes != nullptr && lanes->has_demand())
      protocol::send(self, SubchannelActor{self}, StreamsWanted{});
  }

  void run(NotifyState& order) {
    ConnectionPtr& connection = order.state.connection;
    if (order.has_lanes && connection != nullptr)
      connection = environment->connector->with_lanes(connection, lanes);
    count_state(order.state.state);
    protocol::send(self, map, std::move(order.state));
  }

  // A delayed message keeps the memory of its receiver until it is due, so the map has the long
  // timers (alarms.hpp). The map has one timer for each address, and a short one may run beside it.
  void run(StartTimer& order) {
    if (order.delay <= lb::SubchannelCore::kSharedPause) {
      protocol::send_after(self, SubchannelActor{self}, order.delay, TimerFired{order.timer});
      return;
    }
    protocol::send(
        self,
        map,
        protocol::SubchannelTimerAsked{core->options().address, order.timer, order.delay});
  }

  void run(CancelTimer&) {}  // CAF cannot cancel a timer; the core drops its TimerFired.

  void run(Observe& order) { environment->instruments->observe(order.observation); }

  // Updates the gauge of live subchannels.
  void count_state(ConnectivityState next) {
    environment->instruments->add_subchannels(state, -1);
    environment->instruments->add_subchannels(next, +1);
    state = next;
  }

  // Updates the gauge of connections.
  void count_connections(std::size_t now) {
    const int change = static_cast<int>(now) - static_cast<int>(std::exchange(counted, now));
    if (change != 0) environment->instruments->add_connections(settings().cluster, change);
  }

  void open(lb::SubchannelOptions options) {
    core.emplace(std::move(options));
    environment->instruments->add_subchannels(state, +1);
  }

  const SubchannelSettings& settings() const { return *core->options().settings; }

  Self self = nullptr;
  EnvironmentPtr environment;
  Workload workload;
  ConnectivityState state = ConnectivityState::kIdle;
  protocol::SubchannelMapActor map;
  std::optional<lb::SubchannelCore> core;
  // The attempts of the core, by number. Those with a connection hold the connection.
  absl::InlinedVector<std::pair<std::uint64_t, std::unique_ptr<Connector::Attempt>>, 1> attempts;
  std::shared_ptr<lb::StreamLanes> lanes;  // Null: streams were never offered.
  std::size_t counted = 0;                 // The connections in the gauge.
};

protocol::BehaviorOf<SubchannelActor> subchannel_behavior(SubchannelState::Self self,
                                                          EnvironmentPtr environment,
                                                          Address address,
                                                          SubchannelSettingsPtr settings,
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
      [&state](const ConnectFailed& event) {
        state.drop(event.attempt);
        state.feed(event);
      },
      [&state](const ConnectionClosed& event) { state.feed(event); },
      [&state](const StreamsWanted& event) { state.feed(event); },
      [&state](const MaxConnectionsChanged& event) { state.feed(event); },
      [&state](const TimerFired& event) { state.feed(event); },
  };
}

}  // namespace

SubchannelActor spawn_subchannel(caf::actor_system& system,
                                 EnvironmentPtr environment,
                                 Address address,
                                 SubchannelSettingsPtr settings,
                                 protocol::SubchannelMapActor map) {
  return system.spawn(subchannel_behavior,
                      std::move(environment),
                      std::move(address),
                      std::move(settings),
                      std::move(map));
}

}  // namespace signalbox::actors
