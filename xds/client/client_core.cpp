// SPDX-License-Identifier: Apache-2.0
#include "xds/client/client_core.hpp"

#include <utility>

#include "absl/strings/str_cat.h"

#include "messages/overloaded.hpp"
#include "xds/client/resource_text.hpp"

namespace signalbox::xds {
namespace {

constexpr ServerId kServer = 0;

// Whether a response names everything that exists of what was asked for: an absent one is gone.
bool is_full_state(ResourceType type) {
  return type == ResourceType::kListener || type == ResourceType::kCluster;
}

bool is_unchanged(const CacheEntry& entry, const ReceivedResource& received) {
  if (!entry.value) return false;
  const bool same_bytes =
      entry.bytes != nullptr && received.bytes != nullptr && *entry.bytes == *received.bytes;
  return same_bytes || same_content(*entry.value, *received.resource);
}

absl::Status does_not_exist(const ResourceKey& key) {
  return absl::NotFoundError(absl::StrCat(describe(key), " does not exist"));
}

}  // namespace

ClientEffects ClientCore::step(const ClientEvent& event, Instant /*now*/) {
  std::visit([&](const auto& what) { on(what); }, event);
  forget_deserted();
  return take_effects();
}

// K5.
ClientEffects ClientCore::take_effects() {
  for (const ResourceType type : std::exchange(resubscribed_, {}))
    effects_.emplace_back(AskServer{kServer, Subscribe{type, cache_.names_of(type)}});
  for (auto& [watcher, what] : std::exchange(told_, {}))
    effects_.emplace_back(NotifyWatcher{watcher, std::move(what)});
  return std::exchange(effects_, {});
}

// --- watchers ---------------------------------------------------------------

void ClientCore::on(const WatchesChanged& event) {
  const Overloaded change{
      [&](const Watch& order) { watch(order.key, event.watcher); },
      [&](const Unwatch& order) { unwatch(order.key, event.watcher); },
  };
  for (const auto& order : event.changes)
    std::visit(change, order);
}

void ClientCore::on(const WatcherGone& event) {
  for (const auto& [key, entry] : cache_.entries())
    unwatch(key, event.watcher);
}

void ClientCore::watch(const ResourceKey& key, WatcherId watcher) {
  if (cache_.find(key) == nullptr) resubscribed_.insert(key.type);
  CacheEntry& entry = cache_.insert(key);
  entry.watchers.insert(watcher);

  const absl::Status error = ambient_error(entry);
  if (entry.value) told_[watcher].changes.emplace_back(ResourceChanged{key, *entry.value});
  if (error.ok()) return;
  if (entry.value)
    told_[watcher].changes.emplace_back(AmbientErrorChanged{key, error});
  else
    told_[watcher].changes.emplace_back(ResourceChanged{key, error});
}

void ClientCore::unwatch(const ResourceKey& key, WatcherId watcher) {
  CacheEntry* entry = cache_.find(key);
  if (entry != nullptr && entry->watchers.erase(watcher) > 0) deserted_.insert(key);
}

// At the end of a step: what one watcher leaves, another may have come for.
void ClientCore::forget_deserted() {
  for (const ResourceKey& key : std::exchange(deserted_, {})) {
    CacheEntry* entry = cache_.find(key);
    if (!entry->watchers.empty()) continue;
    stop_timer(*entry);
    cache_.erase(key);
    resubscribed_.insert(key.type);
  }
}

// --- what the server says ---------------------------------------------------

void ClientCore::on(const ServerReported& event) {
  std::visit([this](const auto& what) { on(what); }, event.what);
}

void ClientCore::on(const ResourcesReceived& event) {
  CountUpdates counts{kServer, event.type, 0, event.unnamed_errors.size(), event.rejected};
  std::set<std::string> present;
  for (const ReceivedResource& received : event.resources) {
    ++(received.resource.ok() ? counts.valid : counts.invalid);
    present.insert(received.name);
    const ResourceKey key{event.type, received.name};
    CacheEntry* entry = cache_.find(key);
    if (entry == nullptr) continue;
    stop_timer(*entry);
    if (received.resource.ok()) {
      accept(key, *entry, received);
    } else {
      reject(key,
             *entry,
             absl::UnavailableError(with_resource(key, received.resource.status().message())));
    }
  }
  for (const ResourceError& error : event.resource_errors) {
    present.insert(error.name);
    note_error(ResourceKey{event.type, error.name}, error.status);
  }
  // One that could not be named may be any of those that are absent.
  if (is_full_state(event.type) && event.unnamed_errors.empty()) note_absent(event.type, present);
  effects_.emplace_back(counts);
}

void ClientCore::accept(const ResourceKey& key,
                        CacheEntry& entry,
                        const ReceivedResource& received) {
  const bool had_ambient = entry.value && !ambient_error(entry).ok();
  const bool unchanged = is_unchanged(entry, received);
  entry.data_error = absl::OkStatus();
  entry.bytes = received.bytes;
  if (!unchanged) {
    entry.value = *received.resource;
    tell_all(entry, ResourceChanged{key, *entry.value});
  }
  if (had_ambient || !server_status_.ok()) tell_ambient(key, entry);
}

void ClientCore::reject(const ResourceKey& key, CacheEntry& entry, absl::Status error) {
  if (options_.fail_on_data_errors) entry.value.reset();
  note_data_error(key, entry, std::move(error));
}

void ClientCore::note_data_error(const ResourceKey& key, CacheEntry& entry, absl::Status error) {
  if (entry.data_error == error) return;
  entry.data_error = std::move(error);
  if (entry.value)
    tell_ambient(key, entry);
  else
    tell_error(key, entry, entry.data_error);
}

// A server that says why something does not come need not be waited for (A88).
void ClientCore::note_error(const ResourceKey& key, const absl::Status& why) {
  CacheEntry* entry = cache_.find(key);
  if (entry == nullptr) return;
  stop_timer(*entry);
  absl::Status error(why.code(), with_resource(key, why.message()));
  if (absl::IsNotFound(why) || absl::IsPermissionDenied(why)) {
    reject(key, *entry, std::move(error));
  } else {
    note_data_error(key, *entry, std::move(error));
  }
}

// K3: only what was seen before can be seen to be gone.
void ClientCore::note_absent(ResourceType type, const std::set<std::string>& present) {
  for (auto& [key, entry] : cache_.entries()) {
    if (key.type != type || !entry.value || present.contains(key.name)) continue;
    reject(key, entry, does_not_exist(key));
  }
}

void ClientCore::on(const SubscriptionSent& event) {
  for (auto& [key, entry] : cache_.entries()) {
    if (key.type != event.type) continue;
    const bool asked = event.names.contains(key.name);
    if (asked == entry.asked) continue;
    entry.asked = asked;
    if (!asked)
      stop_timer(entry);
    else if (!entry.value)
      start_timer(key, entry);
  }
}

void ClientCore::on(const ServerStatusChanged& event) {
  if (server_status_ == event.status) return;
  server_status_ = event.status;
  for (const auto& [key, entry] : cache_.entries()) {
    if (entry.value)
      tell_ambient(key, entry);
    else if (!server_status_.ok() && entry.data_error.ok())
      tell_error(key, entry, server_status_);
  }
}

// --- the does-not-exist timer -----------------------------------------------

void ClientCore::start_timer(const ResourceKey& key, CacheEntry& entry) {
  entry.timer = TimerId{absl::StrCat(to_string(key.type), "/", key.name), ++timers_};
  effects_.emplace_back(StartTimer{*entry.timer, options_.resource_timeout});
}

void ClientCore::stop_timer(CacheEntry& entry) {
  if (!entry.timer) return;
  effects_.emplace_back(CancelTimer{*entry.timer});
  entry.timer.reset();
}

void ClientCore::on(const TimerFired& event) {
  for (auto& [key, entry] : cache_.entries()) {
    if (entry.timer != event.timer) continue;
    entry.timer.reset();
    absl::Status error = does_not_exist(key);
    if (options_.resource_timer_is_transient_error) {
      error = absl::UnavailableError(
          absl::StrCat(describe(key), " was not received from the server in time"));
    }
    reject(key, entry, std::move(error));
    return;
  }
}

// --- telling ----------------------------------------------------------------

// All that is wrong: with the resource, with the server, or both.
absl::Status ClientCore::ambient_error(const CacheEntry& entry) const {
  if (entry.data_error.ok()) return server_status_;
  if (server_status_.ok()) return entry.data_error;
  return absl::Status(entry.data_error.code(),
                      absl::StrCat(entry.data_error.message(), "; ", server_status_.message()));
}

template <typename Change>
void ClientCore::tell_all(const CacheEntry& entry, const Change& change) {
  for (const WatcherId watcher : entry.watchers)
    told_[watcher].changes.emplace_back(change);
}

void ClientCore::tell_error(const ResourceKey& key,
                            const CacheEntry& entry,
                            const absl::Status& error) {
  tell_all(entry, ResourceChanged{key, error});
}

void ClientCore::tell_ambient(const ResourceKey& key, const CacheEntry& entry) {
  tell_all(entry, AmbientErrorChanged{key, ambient_error(entry)});
}

}  // namespace signalbox::xds
