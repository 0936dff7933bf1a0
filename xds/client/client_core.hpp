// SPDX-License-Identifier: Apache-2.0
//
// ClientCore — one cache for all watchers, whatever they watch, whichever servers have it.
//
//   watchers ─▶ WatchesChanged ─▶ [ClientCore] ─▶ AskServer ─▶ ads_session of that server
//   watchers ◀─ NotifyWatcher                  ◀─ ServerReported
//
// A resource that was good once stays good: neither a NACK nor a deletion nor a lost server takes
// it away; its watchers are told an ambient error beside it (A88). A server's feature
// `fail_on_data_errors` turns the first two into a loss.
//
// A resource's name says whose it is (A47): an authority's, or the bootstrap's own. Each has its
// servers, of which it uses the first; the next one too when the active one has failed and
// something is watched that did not come from anywhere yet (A71). When a better one sends a
// resource, the lower ones are left, and then its response is used. Authorities share servers,
// hence streams.
//
// Invariants
//   K1  However many watch a resource, it is subscribed to once at each server in use (A37-10).
//   K2  A new watcher is told at once what is known: the resource, then what is ambient.
//   K3  The does-not-exist timer of a resource runs only while a live stream of the active server
//       was asked for it and it is not cached (A57). Its absence from a response says nothing of
//       one that this server never sent: the response may answer an earlier request. What the
//       server says of it by name, counts, also if it is heard before SubscriptionSent: no timer
//       runs for what this stream has answered.
//   K4  A valid resource is used whether or not the rest of its response is (A46); an unchanged
//       one is not told again.
//   K5  A step tells each watcher once, and asks for each type once, however much happened.
//   K6  Watchers hear of a server's failure only if no server is left to fall back to, or none is
//       needed (A71).
//
// Source: gRFC A27, A40, A46, A47, A57, A71, A88.

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "messages/resource_dump.hpp"
#include "messages/xds_events.hpp"
#include "xds/client/client_options.hpp"
#include "xds/client/resource_cache.hpp"
#include "xds/client/resource_name.hpp"

namespace signalbox::xds {

class ClientCore {
 public:
  explicit ClientCore(ClientOptions options);

  // Entries point at their authorities.
  ClientCore(const ClientCore&) = delete;
  ClientCore& operator=(const ClientCore&) = delete;

  /// `wall` is what the dump tells; nothing is decided by it.
  ClientEffects step(const ClientEvent& event, Instant now, WallTime wall);

  ResourceDump dump() const;

 private:
  struct Server {
    ServerOptions options;
    absl::Status status;
    std::set<ResourceType> asked;  // For something, by the last AskServer.
    bool in_use = false;           // Since the first AskServer, until LeaveServer.
  };

  // A response, and who sent it.
  struct Response {
    ServerId server;
    const ResourcesReceived& content;
  };

  void on(const WatchesChanged& event);
  void on(const WatcherGone& event);
  void on(const ServerReported& event);
  void on(const TimerFired& event);
  void on_report(ServerId server, const ResourcesReceived& received);
  void on_report(ServerId server, const SubscriptionSent& sent);
  void on_report(ServerId server, const ServerStatusChanged& changed);

  // --- watchers ---
  void watch(const ResourceKey& key, WatcherId watcher);
  void unwatch(const ResourceKey& key, WatcherId watcher);
  CacheEntry& begin(const ResourceKey& key);
  void forget_deserted();

  // --- resources ---
  void accept(const Response& response, const ResourceKey& key, const ReceivedResource& received);
  void refuse(const Response& response, const ResourceKey& key, const ReceivedResource& received);
  void note_error(const Response& response, const ResourceError& error);
  void note_absent(const Response& response, const std::set<std::string>& present);
  void take_away(ServerId server, CacheEntry& entry);
  void note_data_error(CacheEntry& entry,
                       ResourceStatus status,
                       absl::Status error,
                       const std::string& version);
  CacheEntry* find_at(ServerId server, const ResourceKey& key);
  void update_timer(CacheEntry& entry);
  Duration time_for_resources(ServerId server) const;
  void update_timers(const Authority& authority);
  void stop_timer(CacheEntry& entry);

  // --- servers ---
  absl::StatusOr<Authority*> authority_of(const ResourceKey& key);
  bool is_awaiting(const Authority& authority) const;
  void leave_failed(Authority& authority);
  void fall_back(Authority& authority);
  void return_by(const Response& response);
  void return_to(ServerId server, Authority& authority);
  void refresh_error(Authority& authority);
  absl::Status error_of(const Authority& authority) const;
  void ask_all(ServerId server);

  // --- telling ---
  absl::Status ambient_error(const CacheEntry& entry) const;
  void tell(const CacheEntry& entry, const absl::StatusOr<Resource>& resource);
  void tell_ambient(const CacheEntry& entry);
  void ask_servers();
  void count_resources();
  ClientEffects take_effects();

  ClientOptions options_;
  std::vector<Server> servers_;
  std::map<AuthorityName, Authority> authorities_;
  ResourceCache cache_;
  ResourceCache::Counts counted_;
  std::uint64_t timers_ = 0;
  std::map<std::uint64_t, CacheEntry*> waiting_;  // By the generation of their timers.

  // What this step did so far.
  WallTime wall_;
  std::set<ResourceKey> deserted_;  // Some watcher left them; perhaps not the last.
  std::set<std::pair<ServerId, ResourceType>> to_ask_;
  std::map<WatcherId, ResourcesChanged> told_;
  ClientEffects effects_;
};

}  // namespace signalbox::xds
