// SPDX-License-Identifier: Apache-2.0
//
// The part of ClientCore that deals with watchers and resources. client_servers.cpp deals with
// servers.
#include "xds/client/client_core.hpp"

#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "messages/overloaded.hpp"
#include "xds/client/resource_text.hpp"

namespace signalbox::xds {
namespace {

// Whether a response of this type has every requested resource that exists. If the server sent a
// resource before, and such a response lacks it, the resource was deleted.
bool is_full_state(ResourceType type) {
  return type == ResourceType::kListener || type == ResourceType::kCluster;
}

bool has_same_content(const CacheEntry& entry, const ReceivedResource& received) {
  return entry.value && same_content(*entry.value, *received.resource);
}

// The error of a resource that the server sent before, and that the server's newest response lacks.
absl::Status deleted(const ResourceKey& key) {
  return absl::NotFoundError(absl::StrCat(describe(key), " was deleted"));
}

std::string did_not_come(const ResourceKey& key, Duration within) {
  return absl::StrCat(
      describe(key), " did not come within ", std::chrono::duration<double>(within).count(), " s");
}

ResourceKey canonical(const ResourceKey& key) {
  if (!absl::StartsWith(key.name, "xdstp:")) return key;
  const auto name = parse_resource_name(key);
  return name.ok() ? ResourceKey{key.type, name->canonical} : key;
}

}  // namespace

ClientEffects ClientCore::step(const ClientEvent& event, Instant /*now*/, WallTime wall) {
  wall_ = wall;
  response_at_.reset();
  std::visit([&](const auto& what) { on(what); }, event);
  forget_deserted();
  return take_effects();
}

// Returns the effects of one step: at most one notification for each watcher, and one request for
// each server and type (K5).
ClientEffects ClientCore::take_effects() {
  ask_servers();
  for (auto& [watcher, what] : std::exchange(pending_, {})) {
    what.response_at = response_at_;
    effects_.emplace_back(NotifyWatcher{watcher, std::move(what)});
  }
  count_resources();
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
  for (auto& [key, entry] : cache_.entries()) {
    const auto is_gone = [&](const Watcher& watcher) { return watcher.id == event.watcher; };
    if (std::erase_if(entry.watchers, is_gone) > 0) deserted_.insert(key);
  }
}

void ClientCore::watch(const ResourceKey& key, WatcherId watcher) {
  CacheEntry* known = cache_.find(canonical(key));
  CacheEntry& entry = known != nullptr ? *known : begin(canonical(key));
  entry.watchers.insert({watcher, key.name});

  const absl::Status error = ambient_error(entry);
  if (entry.value)
    pending_[watcher].changes.emplace_back(ResourceChanged{key, *entry.value, entry.state.version});
  if (error.ok()) return;
  if (entry.value)
    pending_[watcher].changes.emplace_back(AmbientErrorChanged{key, error});
  else
    pending_[watcher].changes.emplace_back(ResourceChanged{key, error});
}

CacheEntry& ClientCore::begin(const ResourceKey& key) {
  const auto authority = authority_of(key);
  CacheEntry& entry = cache_.insert(key, authority.ok() ? *authority : nullptr);
  if (authority.ok()) {
    for (const ServerId server : entry.authority->in_use())
      to_ask_.emplace(server, key.type);
    fall_back(*entry.authority);
  } else {
    const std::string text = with_resource(key, authority.status().message());
    record_data_error(entry, ResourceStatus::kDoesNotExist, {authority.status().code(), text}, "");
  }
  return entry;
}

void ClientCore::unwatch(const ResourceKey& key, WatcherId watcher) {
  CacheEntry* entry = cache_.find(canonical(key));
  if (entry == nullptr || entry->watchers.erase({watcher, key.name}) == 0) return;
  deserted_.insert(entry->state.key);
}

// Removes the resources that have lost their last watcher. An authority that then has no watched
// resource returns to its best server. This runs at the end of a step, because a later change of
// the same step may watch a resource again.
void ClientCore::forget_deserted() {
  if (deserted_.empty()) return;
  for (const ResourceKey& key : std::exchange(deserted_, {})) {
    CacheEntry* entry = cache_.find(key);
    if (!entry->watchers.empty()) continue;
    stop_timer(*entry);
    if (entry->authority != nullptr) {
      for (const ServerId server : entry->authority->in_use())
        to_ask_.emplace(server, key.type);
    }
    cache_.erase(key);
  }
  for (auto& [name, authority] : authorities_) {
    if (cache_.of(authority).empty()) return_to(authority.in_use().front(), authority);
  }
}

// --- resources --------------------------------------------------------------

// The resource's entry; nullptr if the resource is not watched, has no valid authority, or its
// authority does not use this server.
CacheEntry* ClientCore::find_at(ServerId server, const ResourceKey& key) {
  CacheEntry* entry = cache_.find(canonical(key));
  const bool ours =
      entry != nullptr && entry->authority != nullptr && entry->authority->uses(server);
  return ours ? entry : nullptr;
}

void ClientCore::on_report(ServerId server, const ResourcesReceived& received) {
  // A response proves that the server is up. A restarted AdsSession cannot report the recovery,
  // because it does not know the failures that the dead AdsSession reported.
  on_report(server, ServerStatusChanged{absl::OkStatus()});
  response_at_ = received.at;
  const Response response{server, received};
  return_by(response);
  CountUpdates counts{server,
                      received.type,
                      0,
                      received.unnamed_errors.size() + received.more_unnamed,
                      received.rejected};
  std::set<std::string> present;
  for (const ReceivedResource& resource : received.resources) {
    const ResourceKey key = canonical({received.type, resource.name});
    present.insert(key.name);
    if (resource.resource.ok()) {
      ++counts.valid;
      accept(response, key, resource);
    } else {
      ++counts.invalid;
      refuse(response, key, resource);
    }
  }
  for (const ResourceError& error : received.resource_errors) {
    present.insert(canonical({received.type, error.name}).name);
    record_error(response, error);
  }
  // A resource with an unreadable name may be any of the resources that seem absent. So no resource
  // is treated as deleted if the response has such a resource.
  if (is_full_state(received.type) && received.unnamed_errors.empty())
    record_absent(response, present);
  effects_.emplace_back(counts);
}

void ClientCore::accept(const Response& response,
                        const ResourceKey& key,
                        const ReceivedResource& received) {
  CacheEntry* entry = find_at(response.server, key);
  if (entry == nullptr) return;
  entry->answered.insert(response.server);
  stop_timer(*entry);
  const bool had_ambient = entry->value && !ambient_error(*entry).ok();
  const bool unchanged = has_same_content(*entry, received);
  entry->data_error = absl::OkStatus();
  entry->origin = response.server;
  entry->state.status = ResourceStatus::kAcked;
  entry->state.version = response.content.version;
  entry->state.bytes = received.bytes;
  entry->state.failure.reset();
  if (!unchanged) {
    entry->value = *received.resource;
    entry->state.updated = wall_;
    tell(*entry, *entry->value);
  }
  cache_.recount(*entry);
  if (had_ambient) tell_ambient(*entry);
}

void ClientCore::refuse(const Response& response,
                        const ResourceKey& key,
                        const ReceivedResource& received) {
  CacheEntry* entry = find_at(response.server, key);
  if (entry == nullptr) return;
  entry->answered.insert(response.server);
  take_away(response.server, *entry);
  record_data_error(
      *entry,
      ResourceStatus::kNacked,
      absl::UnavailableError(with_resource(key, received.resource.status().message())),
      response.content.version);
}

// An error that the server sends for a resource is an answer, so the does-not-exist timer need not
// run (A88).
void ClientCore::record_error(const Response& response, const ResourceError& error) {
  const ResourceKey key{response.content.type, error.name};
  CacheEntry* entry = find_at(response.server, key);
  if (entry == nullptr) return;
  entry->answered.insert(response.server);
  if (absl::IsNotFound(error.status) || absl::IsPermissionDenied(error.status))
    take_away(response.server, *entry);
  record_data_error(*entry,
                    ResourceStatus::kReceivedError,
                    {error.status.code(), with_resource(key, error.status.message())},
                    "");
}

// K3: a resource can be deleted by its absence only if its value came from this server.
void ClientCore::record_absent(const Response& response, const std::set<std::string>& present) {
  for (auto& [key, entry] : cache_.entries()) {
    if (key.type != response.content.type || !entry.value || entry.origin != response.server)
      continue;
    if (present.contains(key.name) || !entry.authority->uses(response.server)) continue;
    take_away(response.server, entry);
    record_data_error(entry, ResourceStatus::kDoesNotExist, deleted(key), "");
  }
}

// Removes the resource's value, if `server` has `fail_on_data_errors`. Only the server that sent
// the value, or the active server, may remove the value.
void ClientCore::take_away(ServerId server, CacheEntry& entry) {
  const bool may_speak = server == entry.origin || server == entry.authority->active();
  if (!servers_[server].options.fail_on_data_errors || !may_speak || !entry.value) return;
  // Forgets the error that watchers were told beside the value. Otherwise the same error would
  // count as unchanged, and the watchers would not be told that the resource is lost.
  entry.data_error = absl::OkStatus();
  entry.value.reset();
  entry.state.version.clear();
  entry.state.updated.reset();
  entry.state.bytes = nullptr;
}

void ClientCore::record_data_error(CacheEntry& entry,
                                   ResourceStatus status,
                                   absl::Status error,
                                   const std::string& version) {
  stop_timer(entry);
  entry.state.status = status;
  entry.state.failure = ResourceFailure{std::string(error.message()), version, wall_};
  cache_.recount(entry);
  if (entry.data_error == error) return;
  entry.data_error = std::move(error);
  if (entry.value)
    tell_ambient(entry);
  else
    tell(entry, entry.data_error);
}

// --- the does-not-exist timer -----------------------------------------------

// Starts the timer if the resource has no value, and the active server was asked for the resource
// and has not answered; else stops the timer (K3).
void ClientCore::update_timer(CacheEntry& entry) {
  const ServerId active = entry.authority->active();
  const bool is_due = entry.asked.contains(active) && !entry.answered.contains(active);
  if (!is_due || entry.value) return stop_timer(entry);
  if (entry.timer) return;
  const ResourceKey& key = entry.state.key;
  entry.timer = TimerId{absl::StrCat(to_string(key.type), "/", key.name), ++timers_};
  waiting_.emplace(entry.timer->generation, &entry);
  effects_.emplace_back(StartTimer{*entry.timer, time_for_resources(active)});
}

Duration ClientCore::time_for_resources(ServerId server) const {
  const bool twice = servers_[server].options.resource_timer_is_transient_error;
  return options_.resource_timeout * (twice ? 2 : 1);
}

void ClientCore::update_timers(const Authority& authority) {
  for (CacheEntry* entry : cache_.of(authority))
    update_timer(*entry);
}

void ClientCore::stop_timer(CacheEntry& entry) {
  if (!entry.timer) return;
  effects_.emplace_back(CancelTimer{*entry.timer});
  waiting_.erase(entry.timer->generation);
  entry.timer.reset();
}

void ClientCore::on(const TimerFired& event) {
  const auto found = waiting_.find(event.timer.generation);
  if (found == waiting_.end()) return;
  CacheEntry& entry = *found->second;
  waiting_.erase(found);
  entry.timer.reset();
  const ServerId active = entry.authority->active();
  const std::string text = did_not_come(entry.state.key, time_for_resources(active));
  if (servers_[active].options.resource_timer_is_transient_error)
    record_data_error(entry, ResourceStatus::kTimeout, absl::UnavailableError(text), "");
  else
    record_data_error(entry, ResourceStatus::kDoesNotExist, absl::NotFoundError(text), "");
}

// --- telling ----------------------------------------------------------------

// Combines the error of the resource and the error of its servers. For an entry without a value,
// only the error of the resource is returned, if there is one.
absl::Status ClientCore::ambient_error(const CacheEntry& entry) const {
  absl::Status servers = entry.authority != nullptr ? entry.authority->error : absl::OkStatus();
  if (entry.data_error.ok()) return servers;
  if (servers.ok() || !entry.value) return entry.data_error;
  return absl::Status(entry.data_error.code(),
                      absl::StrCat(entry.data_error.message(), "; ", servers.message()));
}

void ClientCore::tell(const CacheEntry& entry, const absl::StatusOr<Resource>& resource) {
  for (const Watcher& watcher : entry.watchers) {
    pending_[watcher.id].changes.emplace_back(
        ResourceChanged{{entry.state.key.type, watcher.name}, resource, entry.state.version});
  }
}

void ClientCore::tell_ambient(const CacheEntry& entry) {
  const absl::Status error = ambient_error(entry);
  for (const Watcher& watcher : entry.watchers) {
    pending_[watcher.id].changes.emplace_back(
        AmbientErrorChanged{{entry.state.key.type, watcher.name}, error});
  }
}

void ClientCore::count_resources() {
  const ResourceCache::Counts& counts = cache_.counts();
  if (counts == counted_) return;
  for (const auto& [what, count] : counted_) {
    if (!counts.contains(what)) effects_.emplace_back(CountResources{what.first, what.second, 0});
  }
  for (const auto& [what, count] : counts) {
    const auto before = counted_.find(what);
    if (before == counted_.end() || before->second != count)
      effects_.emplace_back(CountResources{what.first, what.second, count});
  }
  counted_ = counts;
}

}  // namespace signalbox::xds
