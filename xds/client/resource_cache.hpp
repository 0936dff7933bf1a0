// SPDX-License-Identifier: Apache-2.0
//
// ResourceCache — what is known of every watched resource, and who watches it.
//
//   client_core ─▶ [ResourceCache]
//
// Invariants
//   C1  There is an entry exactly for what somebody watches.
//   C2  An entry without a value and without an error is one that we wait for.
//   C3  Keys are canonical (resource_name.hpp): spellings of one name share an entry.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "messages/resource.hpp"
#include "messages/resource_dump.hpp"
#include "messages/xds_events.hpp"
#include "xds/client/authority.hpp"

namespace signalbox::xds {

/// One watcher, and how it spells the name.
struct Watcher {
  WatcherId id = 0;
  std::string name;

  friend auto operator<=>(const Watcher&, const Watcher&) = default;
};

struct CacheEntry {
  /// As the dump tells it, but for the server.
  ResourceState state;
  std::set<Watcher> watchers;
  /// Whose servers have it; null: nobody's, by its name.
  Authority* authority = nullptr;
  /// The last good one, and where it came from.
  std::optional<Resource> value;
  ServerId origin = 0;
  /// What is wrong with the resource itself: NACKed, deleted, does not exist. With a value it is
  /// ambient; without one it is all that the watchers have.
  absl::Status data_error;
  /// The servers whose live streams were asked for it.
  std::set<ServerId> asked;
  /// The does-not-exist timer, where it runs.
  std::optional<TimerId> timer;

  bool is_awaited() const { return !value && data_error.ok(); }
};

class ResourceCache {
 public:
  using Entries = std::map<ResourceKey, CacheEntry>;
  using Counts = std::map<std::pair<ResourceType, absl::string_view>, std::uint64_t>;

  /// Nullptr where nobody watches it.
  CacheEntry* find(const ResourceKey& key);

  CacheEntry& insert(const ResourceKey& key) { return entries_[key]; }

  void erase(const ResourceKey& key) { entries_.erase(key); }

  Entries& entries() { return entries_; }

  const Entries& entries() const { return entries_; }

  /// The names of all watched resources of a type that the server is to be asked for.
  std::set<std::string> names_at(ServerId server, ResourceType type) const;

  /// How many resources are in each cache_state.
  Counts count() const;

 private:
  Entries entries_;
};

/// Equal in content: a watcher need not hear of the second after the first.
bool same_content(const Resource& left, const Resource& right);

}  // namespace signalbox::xds
