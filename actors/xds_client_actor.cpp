// SPDX-License-Identifier: Apache-2.0
//
// Hosts xds::ClientCore: cache, watchers and does-not-exist timers of one bootstrap. The shell
// knows which actor each watcher is, and restarts the stream.

#include <map>
#include <optional>
#include <utility>

#include "actors/spawn.hpp"
#include "actors/supervision.hpp"
#include "xds/client/client_core.hpp"

namespace signalbox::actors {
namespace {

using protocol::AdsStreamActor;
using protocol::ResourceObserver;
using protocol::RestartDue;
using protocol::StopReason;
using protocol::XdsClientActor;

struct XdsClientState {
  XdsClientState() = default;  // Never an aggregate: see messages/protocol/caf_version.hpp.

  ~XdsClientState() {
    if (stream) {
      protocol::stop(stream, orderly ? StopReason::kOrderly : StopReason::kParentDied);
    }
  }

  static constexpr const char* name = "signalbox.xds_client";

  using Self = protocol::SelfOf<XdsClientActor, XdsClientState>;

  template <typename Event>
  void feed(Event event) {
    handled->add(0, 1);
    for (auto& effect : core->step(ClientEvent{std::move(event)}, protocol::now_of(self))) {
      std::visit([this](auto& order) { run(order); }, effect);
    }
  }

  // Kept, so that a stream that takes a dead one's place can be told all of it.
  void run(Subscribe& order) {
    subscriptions[order.type] = order;
    if (stream) protocol::send(self, stream, std::move(order));
  }

  void run(NotifyWatcher& order) {
    const auto found = watchers.find(order.watcher);
    if (found == watchers.end()) return;
    std::visit([&](auto& what) { protocol::send(self, found->second, std::move(what)); },
               order.what);
  }

  void run(CountUpdates& order) {
    environment->instruments->count_updates(
        environment->ads_transport->server(), order.type, order.valid, order.invalid);
  }

  void run(StartTimer& order) {
    protocol::send_after(self, XdsClientActor{self}, order.delay, TimerFired{order.timer});
  }

  void run(CancelTimer&) {}  // The core knows a late TimerFired by its generation.

  void launch_stream();
  void lose_stream();
  void meet(WatcherId watcher);

  bool from_stream() { return protocol::sent_by(self, stream); }

  Self self = nullptr;
  EnvironmentPtr environment;
  std::shared_ptr<const metrics::MessageCount> handled;
  std::optional<xds::ClientCore> core;
  AdsStreamActor stream;
  RestartDelay stream_delay{RestartDelay::kFirstOfStream};
  protocol::Watches watches;
  std::map<ResourceType, Subscribe> subscriptions;
  std::map<WatcherId, ResourceObserver> watchers;
  bool orderly = false;
};

void XdsClientState::launch_stream() {
  stream = spawn_ads_stream(self->home_system(), environment, XdsClientActor{self});
  watches.add(self, stream, [this](const caf::error& reason) {
    environment->instruments->count_actor_death("ads_stream", protocol::reason_text(reason));
    stream = nullptr;
    lose_stream();
    protocol::send_after(self, XdsClientActor{self}, stream_delay.next(), RestartDue{"ads_stream"});
  });
  for (const auto& [type, subscription] : subscriptions)
    protocol::send(self, stream, subscription);
}

// What the session would have said, had it lived: nothing is asked of the server any more (A57).
void XdsClientState::lose_stream() {
  environment->instruments->set_xds_connected(environment->ads_transport->server(), false);
  for (const auto& [type, subscription] : std::map(subscriptions))
    feed(SubscriptionSent{type, {}});
}

void XdsClientState::meet(WatcherId watcher) {
  if (watchers.contains(watcher)) return;
  auto actor = caf::actor_cast<ResourceObserver>(self->current_sender());
  watches.add(self, actor, [this, watcher](const caf::error&) {
    watchers.erase(watcher);
    feed(WatcherGone{watcher});
  });
  watchers.emplace(watcher, std::move(actor));
}

protocol::BehaviorOf<XdsClientActor> xds_client_behavior(XdsClientState::Self self,
                                                         EnvironmentPtr environment) {
  XdsClientState& state = self->state;
  protocol::note_orderly_exit(self, state.orderly);
  state.self = self;
  state.environment = std::move(environment);
  state.handled = state.environment->instruments->actor_messages("xds_client");
  xds::ClientOptions options;
  options.resource_timeout = state.environment->resource_timeout;
  state.core.emplace(options);
  state.launch_stream();
  return {
      [&state](const WatchStarted& event) {
        state.meet(event.watcher);
        state.feed(event);
      },
      [&state](const WatchEnded& event) { state.feed(event); },
      [&state](const WatcherGone& event) {
        state.watchers.erase(event.watcher);
        state.feed(event);
      },
      [&state](ResourcesReceived& event) {
        if (!state.from_stream()) return;
        state.stream_delay.forget();
        state.feed(std::move(event));
      },
      [&state](SubscriptionSent& event) {
        if (state.from_stream()) state.feed(std::move(event));
      },
      [&state](ServerStatusChanged& event) {
        if (state.from_stream()) state.feed(std::move(event));
      },
      [&state](const TimerFired& event) { state.feed(event); },
      [&state](const RestartDue&) {
        if (!state.stream) state.launch_stream();
      },
  };
}

}  // namespace

XdsClientActor spawn_xds_client(caf::actor_system& system, EnvironmentPtr environment) {
  return system.spawn(xds_client_behavior, std::move(environment));
}

}  // namespace signalbox::actors
