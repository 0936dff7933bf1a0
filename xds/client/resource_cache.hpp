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
//   C4  What concerns one authority costs what it has, and counting costs what has changed.

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
  /// The servers that said something of it, by its name, on their live streams.
  std::set<ServerId> answered;
  /// The does-not-exist timer, where it runs.
  std::optional<TimerId> timer;
  /// The cache_state that the cache has counted it in; empty: none yet.
  absl::string_view counted;

  bool is_awaited() const { return !value && data_error.ok(); }
};

class ResourceCache {
 public:
  using Entries = std::map<ResourceKey, CacheEntry>;

  struct ByKey {
    bool operator()(const CacheEntry* left, const CacheEntry* right) const {
      return left->state.key < right->state.key;
    }
  };

  using OfAuthority = std::set<CacheEntry*, ByKey>;
  using Counts = std::map<std::pair<ResourceType, absl::string_view>, std::uint64_t>;

  /// Nullptr where nobody watches it.
  CacheEntry* find(const ResourceKey& key);

  /// Precondition: it is not there yet. The authority may be null, and must outlive the entry.
  CacheEntry& insert(const ResourceKey& key, Authority* authority);

  /// Precondition: it is there.
  void erase(const ResourceKey& key);

  Entries& entries() { return entries_; }

  const Entries& entries() const { return entries_; }

  /// In the order of their keys.
  const OfAuthority& of(const Authority& authority) const;

  /// The names of all watched resources of a type that the server is to be asked for.
  std::set<std::string> names_at(ServerId server, ResourceType type) const;

  /// To be called whenever the state of an entry has changed.
  void recount(CacheEntry& entry);

  /// How many resources are in each cache_state, where there are any.
  const Counts& counts() const { return counts_; }

 private:
  void uncount(const CacheEntry& entry);

  Entries entries_;
  std::map<const Authority*, OfAuthority> of_authority_;
  Counts counts_;
};

/// Equal in content: a watcher need not hear of the second after the first.
bool same_content(const Resource& left, const Resource& right);

}  // namespace signalbox::xds
