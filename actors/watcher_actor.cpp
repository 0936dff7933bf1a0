// SPDX-License-Identifier: Apache-2.0
#include "actors/watcher_actor.hpp"

#include <map>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "actors/dns_actor.hpp"
#include "actors/seed.hpp"
#include "actors/workload.hpp"
#include "metrics/instruments.hpp"
#include "xds/client/resource_name.hpp"
#include "xds/depend/dependency_manager.hpp"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::actors {
namespace {

using protocol::DnsActor;
using protocol::StopReason;
using protocol::WatcherActor;
using protocol::XdsClientActor;
using protocol::XdsClientReplaced;

struct WatcherState {
  WatcherState() = default;  // Must not be an aggregate: see actors/protocol/caf_version.hpp.

  ~WatcherState() {
    const StopReason reason = orderly ? StopReason::kOrderly : StopReason::kParentDied;
    for (auto& [dns_name, actor] : lookups)
      protocol::stop(actor, reason);
  }

  static constexpr const char* name = "signalbox.xds_watcher";

  using Self = protocol::SelfOf<WatcherActor, WatcherState>;

  template <typename Event>
  void feed(Event event) {
    const auto measured = workload.begin(self);
    run(core->step(DependencyEvent{std::move(event)}, protocol::now_of(self)));
    publish_awaited();
  }

  void publish_awaited();

  void run(DependencyEffects effects) {
    WatchesChanged changed{self->id(), {}};
    for (DependencyEffect& effect : effects)
      std::visit([&](auto& order) { run(order, changed); }, effect);
    if (!changed.changes.empty()) protocol::send(self, client, std::move(changed));
  }

  // All watches that one step adds or drops go to the client in one message.
  template <typename Order>
  void run(Order& order, WatchesChanged& changed) {
    if constexpr (std::is_same_v<Order, Watch>) {
      watched.insert(order.key);
      changed.changes.emplace_back(std::move(order));
    } else if constexpr (std::is_same_v<Order, Unwatch>) {
      watched.erase(order.key);
      changed.changes.emplace_back(std::move(order));
    } else {
      run(order);
    }
  }

  void run(ResolveName& order);
  void answered(NameResolved& event);

  void run(EmitConfig& order) { protocol::send(self, listener, std::move(order)); }

  void run(EmitError& order) { protocol::send(self, listener, std::move(order)); }

  void run(StartTimer& order) {
    protocol::send_after(self, WatcherActor{self}, order.delay, TimerFired{order.timer});
  }

  void run(CancelTimer&) {}  // CAF cannot cancel a timer; the core drops its TimerFired.

  Self self = nullptr;
  EnvironmentPtr environment;
  Workload workload;
  XdsClientActor client;
  protocol::ConfigListener listener;
  std::shared_ptr<const ChannelPort> port;
  std::optional<xds::DependencyManager> core;
  /// The resource or DNS name that `port->awaited` names; nullopt: nothing is awaited.
  std::optional<xds::Awaited> awaited;
  std::set<ResourceKey> watched;
  std::map<DnsName, DnsActor> lookups;
  protocol::Watches watches;
  bool orderly = false;
};

// Each look-up has an actor of its own, so that threads live only while they block. An actor that
// dies counts as a failed look-up. If a name is wanted again while its look-up is pending, no
// second look-up begins.
void WatcherState::run(ResolveName& order) {
  if (lookups.contains(order.name)) return;
  const DnsActor lookup = spawn_dns(self->home_system(), environment, WatcherActor{self});
  watches.add(self, lookup, [this, dns_name = order.name](const caf::error& reason) {
    environment->instruments->count_actor_death("dns", protocol::reason_text(reason));
    lookups.erase(dns_name);
    feed(NameResolved{dns_name, absl::InternalError("the look-up ended without an answer")});
  });
  lookups.emplace(order.name, lookup);
  protocol::send(self, lookup, std::move(order));
}

void WatcherState::answered(NameResolved& event) {
  const auto lookup = lookups.find(event.name);
  if (lookup == lookups.end() || !protocol::sent_by(self, lookup->second)) return;
  watches.remove(self, lookup->second);
  lookups.erase(lookup);
  feed(std::move(event));
}

std::string awaited_text(const ResourceKey& key, const xds::ClientOptions& client) {
  const std::string resource =
      absl::StrCat(to_string(key.type), " ", xds::in_quotes(key.name), ", which ");
  const auto name = xds::parse_resource_name(key);
  if (!name.ok()) return absl::StrCat(resource, "is no valid name");
  const std::vector<ServerId>* servers = &client.default_servers;
  if (name->authority) {
    const auto found = client.authorities.find(*name->authority);
    if (found == client.authorities.end()) return absl::StrCat(resource, "has no xDS server");
    servers = &found->second;
  }
  const auto add_name = [&](std::string* out, ServerId server) {
    absl::StrAppend(out, client.servers.at(server).name);
  };
  const std::string names = absl::StrJoin(*servers, ", ", add_name);
  return servers->size() == 1
             ? absl::StrCat(resource, "xDS server ", names, " has not sent")
             : absl::StrCat(resource, "none of the xDS servers ", names, " has sent");
}

std::string awaited_text(const DnsName& name, const xds::ClientOptions& /*client*/) {
  return absl::StrCat("the addresses of ", name.str(), ", which DNS has not answered");
}

void WatcherState::publish_awaited() {
  const auto now = core->awaited();
  if (now == awaited) return;
  awaited = now;
  port->awaited->set(
      now ? std::visit([&](const auto& what) { return awaited_text(what, environment->client); },
                       *now)
          : std::string("a configuration"));
}

protocol::BehaviorOf<WatcherActor> watcher_behavior(WatcherState::Self self,
                                                    EnvironmentPtr environment,
                                                    std::shared_ptr<const ChannelPort> port,
                                                    XdsClientActor client,
                                                    protocol::ConfigListener listener) {
  WatcherState& state = self->state;
  protocol::record_orderly_exit(self, state.orderly);
  state.self = self;
  state.environment = std::move(environment);
  state.workload = Workload(state.environment->instruments->actor_stats("xds_watcher"));
  state.client = std::move(client);
  state.listener = std::move(listener);
  xds::DependencyOptions options;
  options.target = port->target;
  options.listener = port->listener_resource;
  options.authority = port->authority;
  options.node_id = state.environment->node_id;
  options.seed = seed_of(state.environment->seed, port->target, self->id());
  options.missing_leaf = state.environment->missing_leaf;
  state.port = std::move(port);
  state.core.emplace(std::move(options));
  state.run(state.core->start());
  state.publish_awaited();
  return {
      [&state](ResourcesChanged& event) {
        if (protocol::sent_by(state.self, state.client)) state.feed(std::move(event));
      },
      [&state](NameResolved& event) { state.answered(event); },
      [&state](ClustersReferenced& event) { state.feed(std::move(event)); },
      [&state](const ReresolutionRequested& event) { state.feed(event); },
      [&state](const TimerFired& event) { state.feed(event); },
      [&state](const XdsClientReplaced& event) {
        state.client = caf::actor_cast<XdsClientActor>(event.client);
        state.feed(ClientReplaced{});
        WatchesChanged again{state.self->id(), {}};
        for (const ResourceKey& key : state.watched)
          again.changes.emplace_back(Watch{key});
        protocol::send(state.self, state.client, std::move(again));
      },
  };
}

}  // namespace

WatcherActor spawn_watcher(caf::actor_system& system,
                           EnvironmentPtr environment,
                           std::shared_ptr<const ChannelPort> port,
                           XdsClientActor client,
                           protocol::ConfigListener listener) {
  return system.spawn(watcher_behavior,
                      std::move(environment),
                      std::move(port),
                      std::move(client),
                      std::move(listener));
}

}  // namespace signalbox::actors
