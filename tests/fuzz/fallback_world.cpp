// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fallback_world.hpp"

#include <algorithm>
#include <chrono>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "messages/overloaded.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace signalbox::fuzz {
namespace {

constexpr absl::string_view kEast = "xdstp://east/envoy.config.";

// Resources of authority 1 have xdstp names (A47) with the authority "east". Names of authority 0
// are plain numbers.
ResourceKey resource_key(const FallbackKey& key) {
  const bool is_cluster = key.type == ResourceType::kCluster;
  const absl::string_view type =
      is_cluster ? "cluster.v3.Cluster/" : "endpoint.v3.ClusterLoadAssignment/";
  const std::string prefix = key.authority == 0 ? "" : absl::StrCat(kEast, type);
  return {key.type, absl::StrCat(prefix, key.id)};
}

FallbackKey model_key(const ResourceKey& key) {
  const std::size_t authority = absl::StartsWith(key.name, kEast) ? 1 : 0;
  return {authority, key.type, static_cast<std::size_t>(key.name.back() - '0')};
}

std::set<FallbackKey> model_keys(ResourceType type, const std::set<std::string>& names) {
  std::set<FallbackKey> keys;
  for (const std::string& name : names)
    keys.insert(model_key({type, name}));
  return keys;
}

xds::ClientOptions client_options(const FallbackOptions& options) {
  xds::ClientOptions client;
  client.servers.clear();
  for (const ServerRules& rules : options.servers) {
    client.servers.push_back({absl::StrCat("s", client.servers.size()),
                              rules.fail_on_data_errors,
                              rules.timer_is_transient_error});
  }
  client.default_servers = options.authorities[0];
  client.authorities = {{"east", options.authorities[1]}};
  return client;
}

Resource resource_of(const FallbackKey& key, int content) {
  const std::string name = resource_key(key).name;
  if (key.type == ResourceType::kCluster) {
    auto cluster = std::make_shared<Cluster>();
    cluster->name = ClusterName(name);
    cluster->connect_timeout = std::chrono::seconds(1 + content);
    return std::shared_ptr<const Cluster>(std::move(cluster));
  }
  auto endpoints = std::make_shared<Endpoints>();
  endpoints->overprovisioning_percent = static_cast<std::uint32_t>(100 + content);
  return EndpointsPtr(std::move(endpoints));
}

std::string text(ServerId server, const std::set<FallbackKey>& keys) {
  std::string text = absl::StrCat("server ", server, " [");
  for (const FallbackKey& key : keys)
    absl::StrAppend(&text, " ", resource_key(key).name);
  return text + " ]";
}

constexpr ResourceType kTypes[] = {ResourceType::kCluster, ResourceType::kEndpoints};

}  // namespace

FallbackWorld::FallbackWorld(const FallbackOptions& options)
    : model_(options), client_(client_options(options)) {}

// --- actions ----------------------------------------------------------------

void FallbackWorld::watch(WatcherId watcher, const FallbackKey& key) {
  if (model_.is_watched(watcher, key)) return;
  told_[{watcher, key}] = Told{};
  model_.watch(watcher, key);
  tell(WatchesChanged{watcher, {Watch{resource_key(key)}}});
  check();
}

void FallbackWorld::unwatch(WatcherId watcher, const FallbackKey& key) {
  model_.unwatch(watcher, key);
  tell(WatchesChanged{watcher, {Unwatch{resource_key(key)}}});
  check();
}

void FallbackWorld::watcher_gone(WatcherId watcher) {
  model_.gone(watcher);
  tell(WatcherGone{watcher});
  check();
}

void FallbackWorld::connect(ServerId server) {
  if (!sessions_[server]) return;
  sessions_[server]->live = true;
  for (const ResourceType type : kTypes)
    report_asked(server, type);
  check();
}

void FallbackWorld::fail(ServerId server) {
  if (!sessions_[server]) return;
  sessions_[server]->live = false;
  for (const ResourceType type : kTypes)
    report_asked(server, type);
  model_.changed(server, false);
  tell(ServerReported{server, ServerStatusChanged{absl::UnavailableError("lost")}});
  check();
}

void FallbackWorld::recover(ServerId server) {
  if (!sessions_[server]) return;
  model_.changed(server, true);
  tell(ServerReported{server, ServerStatusChanged{absl::OkStatus()}});
  check();
}

void FallbackWorld::answer(ServerId server, ResourceType type, const Answer& answer) {
  if (!sessions_[server]) return;
  ResourcesReceived received{type, "v", {}, {}};
  for (const auto& [key, said] : answer) {
    const std::string name = resource_key(key).name;
    if (said.content)
      received.resources.push_back({name, resource_of(key, *said.content)});
    else if (said.wrong == absl::StatusCode::kUnavailable)
      received.resources.push_back({name, absl::InvalidArgumentError("refused")});
    else
      received.resource_errors.push_back({name, absl::Status(said.wrong, "so says the server")});
  }
  model_.answered(server, type, {answer.begin(), answer.end()});
  tell(ServerReported{server, std::move(received)});
  check();
}

void FallbackWorld::advance(Duration duration) {
  const Instant end = now_ + duration;
  while (true) {
    const auto next = std::min_element(
        timers_.begin(), timers_.end(), [](auto& a, auto& b) { return a.second < b.second; });
    if (next == timers_.end() || next->second > end) break;
    now_ = next->second;
    const TimerId timer = next->first;
    timers_.erase(next);
    model_.advance(now_);
    tell(TimerFired{timer});
  }
  now_ = end;
  model_.advance(now_);
  check();
}

void FallbackWorld::disturb() {
  tell(TimerFired{last_cancelled_});
  for (ServerId server = 0; server < kServers; ++server) {
    if (sessions_[server]) continue;
    tell(ServerReported{server, ServerStatusChanged{absl::UnavailableError("late")}});
    tell(ServerReported{server, SubscriptionSent{ResourceType::kCluster, {"0"}}});
  }
  check();
}

void FallbackWorld::end() {
  advance(std::chrono::seconds(60));
  for (const WatcherId watcher : {1, 2})
    watcher_gone(watcher);
  SIGNALBOX_FUZZ_EXPECT(timers_.empty(), "nothing is waited for", timers_.begin()->first.name);
  SIGNALBOX_FUZZ_EXPECT(client_.dump().resources.empty(), "nothing is kept", "something");
}

// --- the client -------------------------------------------------------------

void FallbackWorld::tell(const ClientEvent& event) {
  for (const ClientEffect& effect : client_.step(event, now_, WallTime()))
    run(effect);
  // Requests on a live stream reach the server at once.
  for (const auto& [server, type] : std::exchange(to_report_, {}))
    report_asked(server, type);
}

void FallbackWorld::run(const ClientEffect& effect) {
  std::visit(Overloaded{
                 [&](const AskServer& order) {
                   const auto& [type, names] = order.subscription;
                   auto& session = sessions_[order.server];
                   if (!session) session = Session();
                   session->wanted[type] = model_keys(type, names);
                   if (session->live) to_report_.emplace(order.server, type);
                 },
                 [&](const LeaveServer& order) {
                   SIGNALBOX_FUZZ_EXPECT(sessions_[order.server].has_value(),
                                         "F1: who is left was used",
                                         std::to_string(order.server));
                   sessions_[order.server].reset();
                 },
                 [&](const NotifyWatcher& order) { note(order.watcher, order.what); },
                 [&](const StartTimer& order) { timers_[order.timer] = now_ + order.delay; },
                 [&](const CancelTimer& order) {
                   timers_.erase(order.timer);
                   last_cancelled_ = order.timer;
                 },
                 [](const auto& /*counted*/) {},
             },
             effect);
}

void FallbackWorld::report_asked(ServerId server, ResourceType type) {
  const auto& session = sessions_[server];
  if (!session || !session->wanted.contains(type)) return;
  const std::set<FallbackKey> keys =
      session->live ? session->wanted.at(type) : std::set<FallbackKey>{};
  SubscriptionSent sent{type, {}};
  for (const FallbackKey& key : keys)
    sent.names.insert(resource_key(key).name);
  model_.asked(server, type, keys);
  tell(ServerReported{server, std::move(sent)});
}

void FallbackWorld::note(WatcherId watcher, const ResourcesChanged& what) {
  for (const auto& change : what.changes) {
    std::visit(
        [&](const auto& changed) {
          const FallbackKey key = model_key(changed.key);
          SIGNALBOX_FUZZ_EXPECT(
              model_.is_watched(watcher, key), "only watchers are told", changed.key.name);
          fuzz::note(told_[{watcher, key}], changed);
        },
        change);
  }
}

// --- after each action ------------------------------------------------------

void FallbackWorld::check() const {
  for (ServerId server = 0; server < kServers; ++server) {
    const auto& session = sessions_[server];
    SIGNALBOX_FUZZ_EXPECT(!session || model_.is_used(server), "F1: left", std::to_string(server));
    for (const ResourceType type : kTypes) {
      std::set<FallbackKey> keys;
      if (session && session->wanted.contains(type)) keys = session->wanted.at(type);
      SIGNALBOX_FUZZ_EXPECT(
          keys == model_.wanted(server, type),
          "F1: what is watched is asked for",
          absl::StrCat(
              text(server, keys), "; expected ", text(server, model_.wanted(server, type))));
    }
  }
  for (const auto& [which, told] : told_) {
    const auto& [watcher, key] = which;
    SIGNALBOX_FUZZ_EXPECT(
        model_.is_right(watcher, key, told),
        "F5, F6, F7: what a watcher has",
        absl::StrCat(
            resource_key(key).name, ": ", text_of(told), "; expected ", model_.expected(key)));
  }
  check_dump();
}

void FallbackWorld::check_dump() const {
  const ResourceDump dump = client_.dump();
  SIGNALBOX_FUZZ_EXPECT(dump.resources.size() == model_.watched().size(),
                        "what is watched is told",
                        std::to_string(dump.resources.size()));
  for (const ResourceState& state : dump.resources) {
    const FallbackKey key = model_key(state.key);
    SIGNALBOX_FUZZ_EXPECT(
        state.server == absl::StrCat("s", model_.serving(key)),
        "F2, F3, F4: which server serves",
        absl::StrCat(state.key.name, ": ", state.server, "; expected s", model_.serving(key)));
  }
  for (ServerId server = 0; server < kServers; ++server) {
    SIGNALBOX_FUZZ_EXPECT(dump.servers[server].error.empty() == model_.is_well(server),
                          "F8: whether a server is well",
                          absl::StrCat("s", server, ": ", dump.servers[server].error));
  }
}

}  // namespace signalbox::fuzz
