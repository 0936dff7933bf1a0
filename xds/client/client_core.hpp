// SPDX-License-Identifier: Apache-2.0
//
// ClientCore — one cache for all watchers, whatever they watch.
//
//   watchers ─▶ WatchesChanged ─▶ [ClientCore] ─▶ AskServer ─▶ ads_session of that server
//   watchers ◀─ NotifyWatcher                  ◀─ ServerReported
//
// A resource that was good once stays good: neither a NACK nor a deletion nor a lost server takes
// it away; its watchers are told an ambient error beside it (A88). `fail_on_data_errors` turns the
// first two into a loss.
//
// Invariants
//   K1  However many watch a resource, it is subscribed to once (A37-10).
//   K2  A new watcher is told at once what is known: the resource, then what is ambient.
//   K3  The does-not-exist timer of a resource runs only while a live stream was asked for it and
//       it is not cached (A57). Its absence from a response says nothing before it was seen once:
//       the response may answer an earlier request. What the server says of it by name, counts.
//   K4  A valid resource is used whether or not the rest of its response is (A46); an unchanged
//       one is not told again.
//   K5  A step tells each watcher once, and asks for each type once, however much happened.
//
// Source: gRFC A27, A46, A57, A88.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "messages/xds_events.hpp"
#include "xds/client/resource_cache.hpp"

namespace signalbox::xds {

struct ClientOptions {
  Duration resource_timeout = std::chrono::seconds(15);
  /// A NACK or a deletion takes a cached resource away (server feature of A88).
  bool fail_on_data_errors = false;
  /// A resource that does not come in time is UNAVAILABLE rather than NOT_FOUND (A88).
  bool resource_timer_is_transient_error = false;
};

class ClientCore {
 public:
  explicit ClientCore(ClientOptions options) : options_(options) {}

  ClientEffects step(const ClientEvent& event, Instant now);

 private:
  void on(const WatchesChanged& event);
  void on(const WatcherGone& event);
  void on(const ServerReported& event);
  void on(const ResourcesReceived& event);
  void on(const SubscriptionSent& event);
  void on(const ServerStatusChanged& event);
  void on(const TimerFired& event);

  void accept(const ResourceKey& key, CacheEntry& entry, const ReceivedResource& received);
  void reject(const ResourceKey& key, CacheEntry& entry, absl::Status error);
  void note_error(const ResourceKey& key, const absl::Status& why);
  void note_data_error(const ResourceKey& key, CacheEntry& entry, absl::Status error);
  void note_absent(ResourceType type, const std::set<std::string>& present);

  void watch(const ResourceKey& key, WatcherId watcher);
  void unwatch(const ResourceKey& key, WatcherId watcher);
  void forget_deserted();
  ClientEffects take_effects();

  void start_timer(const ResourceKey& key, CacheEntry& entry);
  void stop_timer(CacheEntry& entry);

  absl::Status ambient_error(const CacheEntry& entry) const;
  template <typename Change>
  void tell_all(const CacheEntry& entry, const Change& change);
  void tell_error(const ResourceKey& key, const CacheEntry& entry, const absl::Status& error);
  void tell_ambient(const ResourceKey& key, const CacheEntry& entry);

  ClientOptions options_;
  ResourceCache cache_;
  absl::Status server_status_;
  std::uint64_t timers_ = 0;

  // What this step did so far.
  std::set<ResourceKey> deserted_;  // Some watcher left them; perhaps not the last.
  std::set<ResourceType> resubscribed_;
  std::map<WatcherId, ResourcesChanged> told_;
  ClientEffects effects_;
};

}  // namespace signalbox::xds
