// SPDX-License-Identifier: Apache-2.0
//
// The part of ClientCore that deals with servers (A47, A71): it keeps each server's status, sends
// each server its subscriptions, and decides which servers an authority uses. client_core.cpp has
// the rest.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "xds/client/client_core.hpp"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {
namespace {

constexpr std::array kTypes{ResourceType::kListener,
                            ResourceType::kRouteConfig,
                            ResourceType::kCluster,
                            ResourceType::kEndpoints};

}  // namespace

ClientCore::ClientCore(ClientOptions options) : options_(std::move(options)) {
  for (const ServerOptions& server : options_.servers)
    servers_.push_back({server, absl::OkStatus(), {}, false});
  authorities_.emplace(std::nullopt, Authority(options_.default_servers));
  for (const auto& [name, servers] : options_.authorities)
    authorities_.emplace(name, Authority(servers));
}

absl::StatusOr<Authority*> ClientCore::authority_of(const ResourceKey& key) {
  const auto name = parse_resource_name(key);
  if (!name.ok()) return name.status();
  const auto found = authorities_.find(name->authority);
  if (found != authorities_.end()) return &found->second;
  return absl::FailedPreconditionError(
      absl::StrCat("the bootstrap has no authority ", in_quotes(*name->authority)));
}

// --- reports of the servers -------------------------------------------------

void ClientCore::on(const ServerReported& event) {
  std::visit([&](const auto& what) { on_report(event.server, what); }, event.what);
}

void ClientCore::on_report(ServerId server, const SubscriptionSent& sent) {
  for (auto& [key, entry] : cache_.entries()) {
    if (key.type != sent.type || entry.authority == nullptr || !entry.authority->uses(server))
      continue;
    const bool is_asked = sent.names.contains(key.name);
    if (!is_asked) entry.answered.erase(server);
    const bool changed =
        is_asked ? entry.asked.insert(server).second : entry.asked.erase(server) > 0;
    if (changed && server == entry.authority->active()) update_timer(entry);
  }
}

void ClientCore::on_report(ServerId server, const ServerStatusChanged& changed) {
  if (!servers_[server].in_use) return;  // A late report of a server that is no longer in use.
  if (std::exchange(servers_[server].status, changed.status) == changed.status) return;
  for (auto& [name, authority] : authorities_) {
    if (!authority.uses(server)) continue;
    leave_failed(authority);
    fall_back(authority);
  }
}

// --- fallback ---------------------------------------------------------------

bool ClientCore::is_awaiting(const Authority& authority) const {
  return std::ranges::any_of(cache_.of(authority),
                             [](const CacheEntry* entry) { return entry->is_awaited(); });
}

// If the active server has failed: returns to the best server that has not failed. Such a server is
// better than a failed one, even if it has sent no resource yet.
void ClientCore::leave_failed(Authority& authority) {
  if (servers_[authority.active()].status.ok()) return;
  for (const ServerId server : authority.in_use()) {
    if (servers_[server].status.ok()) return return_to(server, authority);
  }
}

// A71: only a resource that has neither a value nor an error causes a fallback. The new server is
// then asked for all watched resources.
void ClientCore::fall_back(Authority& authority) {
  while (authority.has_next() && !servers_[authority.active()].status.ok() &&
         is_awaiting(authority)) {
    ask_all(authority.fall_back());
    update_timers(authority);
  }
  refresh_error(authority);
}

// A71: a valid watched resource from a better server makes that server active. This is done before
// any resource of the response is used, so each valid one comes from its authority's active server.
void ClientCore::return_by(const Response& response) {
  const auto is_better = [&](const auto& named) {
    return named.second.uses(response.server) && named.second.active() != response.server;
  };
  if (std::ranges::none_of(authorities_, is_better)) return;
  for (const ReceivedResource& received : response.content.resources) {
    if (!received.resource.ok()) continue;
    const CacheEntry* entry = find_at(response.server, {response.content.type, received.name});
    if (entry != nullptr) return_to(response.server, *entry->authority);
  }
}

// Makes `server` the active server, and leaves all servers after it.
void ClientCore::return_to(ServerId server, Authority& authority) {
  if (authority.active() == server) return;
  for (const ServerId left : authority.return_to(server)) {
    ask_all(left);
    for (CacheEntry* entry : cache_.of(authority)) {
      entry->asked.erase(left);
      entry->answered.erase(left);
    }
  }
  for (CacheEntry* entry : cache_.of(authority))
    stop_timer(*entry);
  update_timers(authority);
}

// The error of the active server, with the errors of the servers before it (K6 of client_core.hpp).
absl::Status ClientCore::error_of(const Authority& authority) const {
  if (servers_[authority.active()].status.ok()) return absl::OkStatus();
  std::string text;
  for (const ServerId server : authority.in_use()) {
    const absl::Status& status = servers_[server].status;
    if (!status.ok()) absl::StrAppend(&text, text.empty() ? "" : "; ", status.message());
  }
  return absl::UnavailableError(text);
}

void ClientCore::refresh_error(Authority& authority) {
  absl::Status error = error_of(authority);
  if (authority.error == error) return;
  authority.error = std::move(error);
  for (const CacheEntry* entry : cache_.of(authority)) {
    if (entry->value)
      tell_ambient(*entry);
    else if (entry->is_awaited() && !authority.error.ok())
      tell(*entry, authority.error);
  }
}

// --- asking -----------------------------------------------------------------

void ClientCore::ask_all(ServerId server) {
  for (const ResourceType type : kTypes)
    to_ask_.emplace(server, type);
}

// Sends the subscriptions that are due (to_ask_). A server that no authority uses any more gets
// LeaveServer instead, and so does a failed server that is asked for nothing. A type without names
// is left out if the server's last subscription to the type had no names either.
void ClientCore::ask_servers() {
  for (const auto& [id, type] : std::exchange(to_ask_, {})) {
    Server& server = servers_[id];
    const bool used =
        std::ranges::any_of(authorities_, [id = id](const auto& a) { return a.second.uses(id); });
    if (!used) {
      leave(id);
      continue;
    }
    Subscribe subscription{type, cache_.names_at(id, type)};
    if (subscription.names.empty() && server.asked.erase(type) == 0) continue;
    if (!subscription.names.empty()) server.asked.insert(type);
    server.in_use = true;
    effects_.emplace_back(AskServer{id, std::move(subscription)});
  }
  for (ServerId id = 0; id < servers_.size(); ++id) {
    if (servers_[id].asked.empty() && !servers_[id].status.ok()) leave(id);
  }
}

void ClientCore::leave(ServerId id) {
  Server& server = servers_[id];
  if (std::exchange(server.in_use, false)) effects_.emplace_back(LeaveServer{id});
  server.asked.clear();
  server.status = absl::OkStatus();
}

// --- the dump ---------------------------------------------------------------

ResourceDump ClientCore::dump() const {
  ResourceDump dump;
  dump.node_id = options_.node_id;
  for (const Server& server : servers_) {
    dump.servers.push_back({server.options.name,
                            server.in_use && server.status.ok(),
                            std::string(server.status.message())});
  }
  for (const auto& [key, entry] : cache_.entries()) {
    ResourceState& state = dump.resources.emplace_back(entry.state);
    if (entry.authority == nullptr) continue;
    const ServerId server = entry.value ? entry.origin : entry.authority->active();
    state.server = servers_[server].options.name;
  }
  return dump;
}

}  // namespace signalbox::xds
