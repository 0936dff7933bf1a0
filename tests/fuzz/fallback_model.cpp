// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fallback_model.hpp"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"

namespace signalbox::fuzz {
namespace {

using Code = absl::StatusCode;

constexpr Duration kPatience = std::chrono::seconds(15);

}  // namespace

// --- which servers are used -------------------------------------------------

ServerId FallbackModel::active(std::size_t authority) const {
  return options_.authorities[authority][places_[authority]];
}

// Rule F1 of the header: an authority uses its servers from the first to the active one.
bool FallbackModel::uses(std::size_t authority, ServerId server) const {
  const auto& servers = options_.authorities[authority];
  const auto end = servers.begin() + static_cast<std::ptrdiff_t>(places_[authority]) + 1;
  return std::find(servers.begin(), end, server) != end;
}

bool FallbackModel::is_used(ServerId server) const {
  return uses(0, server) || uses(1, server);
}

bool FallbackModel::is_asked(ServerId server) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& named) {
    return uses(named.first.authority, server);
  });
}

std::set<FallbackKey> FallbackModel::wanted(ServerId server, ResourceType type) const {
  std::set<FallbackKey> keys;
  for (const auto& [key, entry] : entries_) {
    if (key.type == type && uses(key.authority, server)) keys.insert(key);
  }
  return keys;
}

ServerId FallbackModel::serving(const FallbackKey& key) const {
  const Entry& entry = entries_.at(key);
  return entry.content ? entry.origin : active(key.authority);
}

bool FallbackModel::is_awaiting(std::size_t authority) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& named) {
    return named.first.authority == authority && !named.second.content &&
           named.second.wrong == Code::kOk;
  });
}

void FallbackModel::turn_to(std::size_t authority, std::size_t place) {
  if (places_[authority] == place) return;
  places_[authority] = place;
  for (auto& [key, entry] : entries_) {
    if (key.authority != authority) continue;
    entry.deadline.reset();
    for (ServerId server = 0; server < kServers; ++server) {
      if (uses(authority, server)) continue;
      entry.asked.erase(server);
      entry.answered.erase(server);
    }
    update_deadline(key, entry);
  }
}

// Rules F4 and F2 of the header: moves to a better server, or falls back to the next one.
void FallbackModel::choose(std::size_t authority) {
  const auto& servers = options_.authorities[authority];
  std::size_t& place = places_[authority];
  if (is_well(servers[place])) return;
  for (std::size_t better = 0; better < place; ++better) {
    if (is_well(servers[better])) return turn_to(authority, better);
  }
  while (place + 1 < servers.size() && !is_well(servers[place]) && is_awaiting(authority))
    turn_to(authority, place + 1);
}

// Rule F8 of the header: what happens to authorities and servers without watched resources.
void FallbackModel::begin_anew() {
  for (std::size_t authority = 0; authority < kAuthorities; ++authority) {
    const bool is_watched = std::any_of(entries_.begin(), entries_.end(), [&](const auto& named) {
      return named.first.authority == authority;
    });
    if (!is_watched) turn_to(authority, 0);
  }
  for (ServerId server = 0; server < kServers; ++server) {
    if (!is_asked(server)) failed_.erase(server);
  }
}

// --- watchers ---------------------------------------------------------------

void FallbackModel::watch(WatcherId watcher, const FallbackKey& key) {
  entries_[key].watchers.insert(watcher);
  choose(key.authority);
}

void FallbackModel::unwatch(WatcherId watcher, const FallbackKey& key) {
  leave(key, watcher);
  begin_anew();
}

void FallbackModel::gone(WatcherId watcher) {
  for (const FallbackKey& key : watched())
    leave(key, watcher);
  begin_anew();
}

void FallbackModel::leave(const FallbackKey& key, WatcherId watcher) {
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) return;
  entry->second.watchers.erase(watcher);
  if (entry->second.watchers.empty()) entries_.erase(entry);
}

std::set<FallbackKey> FallbackModel::watched() const {
  std::set<FallbackKey> keys;
  for (const auto& [key, entry] : entries_)
    keys.insert(key);
  return keys;
}

bool FallbackModel::is_watched(WatcherId watcher, const FallbackKey& key) const {
  const auto entry = entries_.find(key);
  return entry != entries_.end() && entry->second.watchers.contains(watcher);
}

// --- servers ----------------------------------------------------------------

void FallbackModel::asked(ServerId server, ResourceType type, const std::set<FallbackKey>& keys) {
  for (auto& [key, entry] : entries_) {
    if (key.type != type || !uses(key.authority, server)) continue;
    const bool is_new = keys.contains(key) && entry.asked.insert(server).second;
    const bool is_over = !keys.contains(key) && entry.asked.erase(server) > 0;
    if (!keys.contains(key)) entry.answered.erase(server);
    if ((is_new || is_over) && server == active(key.authority)) update_deadline(key, entry);
  }
}

// Rule F6 of the header: the time after which a missing resource does not exist.
void FallbackModel::update_deadline(const FallbackKey& key, Entry& entry) {
  const ServerId server = active(key.authority);
  const bool is_due = entry.asked.contains(server) && !entry.answered.contains(server);
  if (!is_due || entry.content) return entry.deadline.reset();
  if (entry.deadline) return;
  entry.deadline = now_ + (options_.servers[server].timer_is_transient_error ? 2 : 1) * kPatience;
}

void FallbackModel::changed(ServerId server, bool well) {
  if (!is_used(server)) return;
  if (well)
    failed_.erase(server);
  else
    failed_.insert(server);
  for (std::size_t authority = 0; authority < kAuthorities; ++authority) {
    if (uses(authority, server)) choose(authority);
  }
  begin_anew();
}

void FallbackModel::answered(ServerId server,
                             ResourceType type,
                             const std::map<FallbackKey, Said>& said) {
  changed(server, true);
  // Rule F3 of the header: a valid resource of a better server makes that server active.
  for (const auto& [key, what] : said) {
    if (!what.content || !entries_.contains(key) || !uses(key.authority, server)) continue;
    const auto& servers = options_.authorities[key.authority];
    const auto place = std::find(servers.begin(), servers.end(), server) - servers.begin();
    turn_to(key.authority, static_cast<std::size_t>(place));
  }
  for (auto& [key, entry] : entries_) {
    if (key.type != type || !uses(key.authority, server)) continue;
    const auto found = said.find(key);
    if (found == said.end()) {
      const bool is_full_state = type == ResourceType::kCluster;
      if (is_full_state && entry.content && entry.origin == server)
        refuse(server, key, Code::kNotFound, true);
    } else if (found->second.content) {
      entry.answered.insert(server);
      entry.content = found->second.content;
      entry.origin = server;
      entry.wrong = Code::kOk;
      entry.deadline.reset();
    } else {
      entry.answered.insert(server);
      refuse(server, key, found->second.wrong, found->second.wrong != Code::kInternal);
    }
  }
  begin_anew();
}

// Rule F7 of the header: the servers that may take a resource's content away.
void FallbackModel::refuse(ServerId server, const FallbackKey& key, Code wrong, bool is_loss) {
  Entry& entry = entries_.at(key);
  const bool may_speak = entry.origin == server || active(key.authority) == server;
  if (is_loss && may_speak && options_.servers[server].fail_on_data_errors) entry.content.reset();
  entry.wrong = wrong;
  entry.deadline.reset();
}

void FallbackModel::advance(Instant now) {
  now_ = now;
  for (auto& [key, entry] : entries_) {
    if (!entry.deadline || *entry.deadline > now) continue;
    entry.deadline.reset();
    const bool passes = options_.servers[active(key.authority)].timer_is_transient_error;
    entry.wrong = passes ? Code::kUnavailable : Code::kNotFound;
  }
}

// --- what watchers have -----------------------------------------------------

bool FallbackModel::is_right(WatcherId watcher, const FallbackKey& key, const Told& told) const {
  if (!is_watched(watcher, key)) return true;
  const Entry& entry = entries_.at(key);
  const bool failed = !is_well(active(key.authority));  // F5.
  return fuzz::is_right(told, entry.content, entry.wrong, failed);
}

std::string FallbackModel::expected(const FallbackKey& key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return "nobody watches it";
  const Entry& entry = found->second;
  return absl::StrCat(content_text(entry.content),
                      ", wrong ",
                      absl::StatusCodeToString(entry.wrong),
                      ", active ",
                      active(key.authority),
                      is_well(active(key.authority)) ? "" : ", which has failed");
}

}  // namespace signalbox::fuzz
