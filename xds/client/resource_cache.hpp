// SPDX-License-Identifier: Apache-2.0
//
// ResourceCache — what is known of every watched resource, and who watches it.
//
//   client_core ─▶ [ResourceCache]
//
// Invariants
//   C1  There is an entry exactly for what somebody watches.
//   C2  An entry without a value and without an error is one that we wait for.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"

#include "messages/resource.hpp"
#include "messages/xds_events.hpp"

namespace signalbox::xds {

struct CacheEntry {
  std::set<WatcherId> watchers;
  /// The last good one.
  std::optional<Resource> value;
  /// Its serialised form, where that is known.
  std::shared_ptr<const std::string> bytes;
  /// What is wrong with the resource itself: NACKed, deleted, does not exist. With a value it is
  /// ambient; without one it is all that the watchers have.
  absl::Status data_error;
  /// The live stream was asked for it.
  bool asked = false;
  /// The does-not-exist timer, where it runs.
  std::optional<TimerId> timer;
};

class ResourceCache {
 public:
  using Entries = std::map<ResourceKey, CacheEntry>;

  /// Nullptr where nobody watches it.
  CacheEntry* find(const ResourceKey& key);

  CacheEntry& insert(const ResourceKey& key) { return entries_[key]; }

  void erase(const ResourceKey& key) { entries_.erase(key); }

  Entries& entries() { return entries_; }

  /// The names of all watched resources of a type.
  std::set<std::string> names_of(ResourceType type) const;

 private:
  Entries entries_;
};

/// Equal in content: a watcher need not hear of the second after the first.
bool same_content(const Resource& left, const Resource& right);

}  // namespace signalbox::xds
