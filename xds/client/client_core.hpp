// SPDX-License-Identifier: Apache-2.0
//
// ClientCore — one resource cache for all watchers, all resources and all servers.
//
//   watchers ─▶ WatchesChanged ─▶ [ClientCore] ─▶ AskServer ─▶ ads_session of that server
//   watchers ◀─ NotifyWatcher                  ◀─ ServerReported
//
// A valid resource stays in use after a NACK, a deletion, a resource error or the loss of its
// server (K6). Its watchers are told an ambient error (A88): an error beside the resource. With the
// server feature `fail_on_data_errors` (ServerOptions), a NACK, a deletion, or a resource error
// NOT_FOUND or PERMISSION_DENIED removes the resource. Only the active server, and the server that
// sent the resource, can remove it.
//
// The name of a resource selects its authority (A47). All names without an authority belong to one
// unnamed authority, which has the bootstrap's own servers. An authority uses its first server. It
// uses the next server too if the active server has failed and a watched resource has neither a
// value nor an error yet (A71). The client returns to a better server when that server sends a
// valid resource, when the active server has failed and the better server is reachable, or when no
// resource of the authority is watched any more. The client then leaves the servers after the
// better one. Authorities with the same server share its stream.
//
// A server that has failed is also left as soon as nothing is asked of it. Otherwise its old error
// and its back-off would meet the next watcher.
//
// Invariants
//   K1  A resource is subscribed to once at each server that its authority uses, however many
//       watchers it has (A37-10).
//   K2  A new watcher is told the known state at once: the resource, then its ambient error; or the
//       error alone if there is no resource.
//   K3  The does-not-exist timer of a resource runs only while the resource is not cached, the
//       active server was asked for it on a live stream, and that server has not answered (A57). A
//       resource or an error that the server sends by name is an answer, even before
//       SubscriptionSent. A response that lacks the resource is no answer if this server never sent
//       the resource, because the response may answer an earlier request.
//   K4  A valid resource is used even if other resources of its response are invalid (A46).
//       Watchers are not told an unchanged resource again.
//   K5  A step notifies each watcher at most once, and asks each server for each type at most once,
//       however many changes it makes.
//   K6  Watchers are told a server's failure only if the authority does not fall back: it has no
//       further server, or every watched resource has a value or an error (A71).
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

  // Not copyable: cache entries point at their authorities.
  ClientCore(const ClientCore&) = delete;
  ClientCore& operator=(const ClientCore&) = delete;

  /// `wall` is only shown in the dump; no decision depends on it.
  ClientEffects step(const ClientEvent& event, Instant now, WallTime wall);

  ResourceDump dump() const;

 private:
  struct Server {
    ServerOptions options;
    absl::Status status;
    std::set<ResourceType> asked;  // The types for which the last AskServer had names.
    bool in_use = false;           // True from the first AskServer until LeaveServer.
  };

  // A response and the server that sent it.
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
  void record_error(const Response& response, const ResourceError& error);
  void record_absent(const Response& response, const std::set<std::string>& present);
  void take_away(ServerId server, CacheEntry& entry);
  void record_data_error(CacheEntry& entry,
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
  void leave(ServerId server);

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
  // The entries with a running does-not-exist timer. Keys: TimerId::generation of the timer.
  std::map<std::uint64_t, CacheEntry*> waiting_;

  // The members from here on belong to one step: its time, its input and its results so far.
  WallTime wall_;
  // When the response of this step came; nullopt: the step's event is no response.
  std::optional<Instant> response_at_;
  // Resources that lost a watcher in this step; other watchers may remain.
  std::set<ResourceKey> deserted_;
  std::set<std::pair<ServerId, ResourceType>> to_ask_;
  std::map<WatcherId, ResourcesChanged> pending_;
  ClientEffects effects_;
};

}  // namespace signalbox::xds
