// SPDX-License-Identifier: Apache-2.0
//
// ResourceCache — the known state and the watchers of every watched resource.
//
//   client_core ─▶ [ResourceCache]
//
// Invariants
//   C1  Between two steps of the client, the watched resources have an entry, and no others have.
//   C2  A resource without a value and without an error is awaited.
//   C3  Keys are canonical (resource_name.hpp): all spellings of one name share an entry.
//   C4  The time to visit the resources of one authority grows with their number. The time to count
//       resources grows with the number of changes, not with the number of resources.

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

/// One watcher, with its own spelling of the resource name.
struct Watcher {
  WatcherId id = 0;
  std::string name;

  friend auto operator<=>(const Watcher&, const Watcher&) = default;
};

struct CacheEntry {
  /// The state that the dump shows, except ResourceState::server.
  ResourceState state;
  std::set<Watcher> watchers;
  /// The authority that selects the servers; null: the name has no valid authority.
  Authority* authority = nullptr;
  /// The last valid resource, and the server that sent it.
  std::optional<Resource> value;
  ServerId origin = 0;
  /// The error of the resource itself: it was NACKed or deleted, does not exist, did not come in
  /// time, has a name without a valid authority, or the server sent an error for it. If the entry
  /// has a value, the error is ambient. If not, the watchers get the error alone.
  absl::Status data_error;
  /// The servers that were asked for the resource on their live streams.
  std::set<ServerId> asked;
  /// The servers that sent the resource, or an error with its name, on their live streams.
  std::set<ServerId> answered;
  /// The does-not-exist timer, if it runs.
  std::optional<TimerId> timer;
  /// The cache_state() (resource_dump.hpp) under which `counts` has this entry; empty: not counted
  /// yet.
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

  /// The resource's entry; nullptr if the resource is not watched.
  CacheEntry* find(const ResourceKey& key);

  /// Adds the resource. Precondition: there is no entry yet. `authority` may be null, and must
  /// outlive the entry.
  CacheEntry& insert(const ResourceKey& key, Authority* authority);

  /// Removes the resource. Precondition: there is an entry.
  void erase(const ResourceKey& key);

  Entries& entries() { return entries_; }

  const Entries& entries() const { return entries_; }

  /// The entries of the authority, in the order of their keys.
  const OfAuthority& of(const Authority& authority) const;

  /// The names of all watched resources of this type that the server is asked for.
  std::set<std::string> names_at(ServerId server, ResourceType type) const;

  /// Must be called after each change of an entry's state.
  void recount(CacheEntry& entry);

  /// The number of resources in each cache_state. Numbers of zero are left out.
  const Counts& counts() const { return counts_; }

 private:
  void uncount(const CacheEntry& entry);

  Entries entries_;
  std::map<const Authority*, OfAuthority> of_authority_;
  Counts counts_;
};

/// Whether the contents are equal. A watcher that has `left` is then not notified of `right`.
bool same_content(const Resource& left, const Resource& right);

}  // namespace signalbox::xds
