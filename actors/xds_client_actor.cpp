// SPDX-License-Identifier: Apache-2.0
#include "actors/xds_client_actor.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "actors/ads_stream_actor.hpp"
#include "actors/dump_reply.hpp"
#include "actors/io/ads_transport.hpp"
#include "actors/log_events.hpp"
#include "actors/protocol/watcher.hpp"
#include "actors/supervision.hpp"
#include "actors/workload.hpp"
#include "metrics/instruments.hpp"
#include "xds/client/client_core.hpp"

namespace signalbox::actors {
namespace {

using protocol::AdsStreamActor;
using protocol::ResourceObserver;
using protocol::RestartDue;
using protocol::StopReason;
using protocol::XdsClientActor;

struct XdsClientState {
  XdsClientState() = default;  // Must not be an aggregate: see actors/protocol/caf_version.hpp.

  ~XdsClientState() {
    const StopReason reason = orderly ? StopReason::kOrderly : StopReason::kParentDied;
    for (auto& [id, server] : servers) {
      if (server.stream) protocol::stop(server.stream, reason);
      environment->instruments->forget_xds_connected(name_of(id));
    }
    for (const auto& [type, cache_state] : shown)
      environment->instruments->set_xds_resources(type, cache_state, 0);
  }

  static constexpr const char* name = "signalbox.xds_client";

  using Self = protocol::SelfOf<XdsClientActor, XdsClientState>;

  // A server that was used at least once.
  struct Server {
    AdsStreamActor stream;
    RestartDelay delay{RestartDelay::kFirstOfStream};
    bool restarting = false;
    // An ads_stream actor that replaces a dead one gets these subscriptions, which all have names.
    std::map<ResourceType, Subscribe> subscriptions;
  };

  template <typename Event>
  void feed(Event event) {
    const auto measured = workload.begin(self);
    const WallTime wall = std::chrono::system_clock::now();
    for (auto& effect : core->step(ClientEvent{std::move(event)}, protocol::now_of(self), wall)) {
      std::visit([this](auto& order) { run(order); }, effect);
    }
  }

  void run(AskServer& order) {
    Server& server = servers[order.server];
    if (order.subscription.names.empty())
      server.subscriptions.erase(order.subscription.type);
    else
      server.subscriptions[order.subscription.type] = order.subscription;
    if (server.stream)
      protocol::send(self, server.stream, std::move(order.subscription));
    else if (!server.restarting)
      launch_stream(order.server);
  }

  void run(LeaveServer& order);

  void run(NotifyWatcher& order) {
    const auto found = watchers.find(order.watcher);
    if (found != watchers.end()) protocol::send(self, found->second, std::move(order.what));
  }

  void run(CountUpdates& order) {
    environment->instruments->count_updates(
        name_of(order.server), order.type, order.valid, order.invalid);
    for (std::size_t i = 0; i < order.rejected.size(); ++i) {
      environment->instruments->count_config_rejected(to_string(static_cast<RejectionReason>(i)),
                                                      order.rejected[i]);
    }
  }

  void run(CountResources& order) {
    environment->instruments->set_xds_resources(order.type, order.cache_state, order.count);
    shown.emplace(order.type, order.cache_state);
  }

  void run(StartTimer& order) {
    protocol::send_after(self, XdsClientActor{self}, order.delay, TimerFired{order.timer});
  }

  void run(CancelTimer&) {}  // CAF cannot cancel a timer; the core drops its TimerFired.

  void launch_stream(ServerId id);
  void lose_stream(ServerId id);
  void launch_later(ServerId id, Duration delay);
  void restart(const std::string& what);
  void meet(WatcherId watcher);

  static std::string restart_name(ServerId id) { return absl::StrCat("ads_stream ", id); }

  const std::string& name_of(ServerId id) { return environment->ads_transports.at(id)->server(); }

  // Passes the report of a server's ads_stream to the core. Drops it if it comes from an ads_stream
  // that was stopped or replaced.
  template <typename Report>
  void report(Report what) {
    const auto from = std::ranges::find_if(servers, [this](const auto& entry) {
      return protocol::sent_by(self, entry.second.stream);
    });
    if (from == servers.end()) return;
    record_connected(from->first, what);
    feed(ServerReported{from->first, std::move(what)});
  }

  // This actor sets the gauge, and not the ads_stream, because this actor drops the reports of a
  // stopped ads_stream. So a late report does not bring back the gauge of a server that is no
  // longer used.
  void record_connected(ServerId id, const ServerStatusChanged& changed) {
    environment->instruments->set_xds_connected(name_of(id), changed.status.ok());
    if (environment->log) environment->log(server_line(name_of(id), changed));
  }

  // An AdsSession reports only changes of the server's status, so a new AdsSession reports nothing
  // about a healthy server. Received resources show that the server is connected.
  void record_connected(ServerId id, const ResourcesReceived& received) {
    environment->instruments->set_xds_connected(name_of(id), true);
    if (!environment->log) return;
    if (auto line = refused_line(name_of(id), received)) environment->log(*std::move(line));
  }

  void record_connected(ServerId /*id*/, const SubscriptionSent& /*sent*/) {}

  Self self = nullptr;
  EnvironmentPtr environment;
  Workload workload;
  std::optional<xds::ClientCore> core;
  std::map<ServerId, Server> servers;
  protocol::Watches watches;
  std::map<WatcherId, ResourceObserver> watchers;
  /// The labels that this client has set in signalbox_xds_resources.
  std::set<std::pair<ResourceType, absl::string_view>> shown;
  bool orderly = false;
};

void XdsClientState::launch_stream(ServerId id) {
  Server& server = servers.at(id);
  server.restarting = false;
  server.stream = spawn_ads_stream(self->home_system(), environment, id, XdsClientActor{self});
  watches.add(self, server.stream, [this, id](const caf::error& reason) {
    environment->instruments->count_actor_death("ads_stream", protocol::reason_text(reason));
    servers.at(id).stream = nullptr;
    lose_stream(id);
    launch_later(id, servers.at(id).delay.next(protocol::now_of(self)));
  });
  // A server counts as connected until it fails (A78).
  environment->instruments->set_xds_connected(name_of(id), true);
  for (const auto& [type, subscription] : server.subscriptions)
    protocol::send(self, server.stream, subscription);
}

void XdsClientState::launch_later(ServerId id, Duration delay) {
  servers.at(id).restarting = true;
  protocol::send_after(self, XdsClientActor{self}, delay, RestartDue{restart_name(id)});
}

void XdsClientState::restart(const std::string& what) {
  for (auto& [id, server] : servers) {
    if (!server.restarting || restart_name(id) != what) continue;
    server.restarting = false;
    if (!server.subscriptions.empty())
      launch_stream(id);
    else
      environment->instruments->forget_xds_connected(name_of(id));
  }
}

// Tells the core what the dead ads_stream cannot report any more: no name is subscribed at the
// server now, so the does-not-exist timers of those names stop (A57).
void XdsClientState::lose_stream(ServerId id) {
  environment->instruments->set_xds_connected(name_of(id), false);
  for (const auto& [type, subscription] : std::map(servers.at(id).subscriptions))
    feed(ServerReported{id, SubscriptionSent{type, {}}});
}

// After an ads_stream was stopped, the next one to the server starts after kFirstOfStream (2 s) at
// the earliest, even if the server is used again at once. So no server sees streams come and go
// quickly.
void XdsClientState::run(LeaveServer& order) {
  Server& server = servers.at(order.server);
  server.subscriptions.clear();
  environment->instruments->forget_xds_connected(name_of(order.server));
  if (!server.stream) return;
  watches.remove(self, server.stream);
  protocol::stop(server.stream);
  server.stream = nullptr;
  launch_later(order.server, RestartDelay::kFirstOfStream);
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
  protocol::record_orderly_exit(self, state.orderly);
  state.self = self;
  state.environment = std::move(environment);
  state.workload = Workload(state.environment->instruments->actor_stats("xds_client"));
  xds::ClientOptions options = state.environment->client;
  for (ServerId id = 0; id < options.servers.size(); ++id)
    options.servers[id].name = state.name_of(id);
  state.core.emplace(std::move(options));
  return {
      [&state](WatchesChanged& event) {
        state.meet(event.watcher);
        state.feed(std::move(event));
      },
      [&state](const WatcherGone& event) {
        state.watchers.erase(event.watcher);
        state.feed(event);
      },
      [&state](ResourcesReceived& event) { state.report(std::move(event)); },
      [&state](SubscriptionSent& event) { state.report(std::move(event)); },
      [&state](ServerStatusChanged& event) { state.report(std::move(event)); },
      [&state](const TimerFired& event) { state.feed(event); },
      [&state](const RestartDue& event) { state.restart(event.what); },
      [&state](const protocol::DumpRequested& order) { order.reply->answer(state.core->dump()); },
  };
}

}  // namespace

XdsClientActor spawn_xds_client(caf::actor_system& system, EnvironmentPtr environment) {
  return system.spawn(xds_client_behavior, std::move(environment));
}

}  // namespace signalbox::actors
