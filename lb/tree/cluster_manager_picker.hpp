// SPDX-License-Identifier: Apache-2.0
//
// ClusterTable — from a call's cluster to that cluster's picker, for any number of clusters.
//
//   cluster_manager ─▶ ClusterTable::with(changes) ─▶ cluster_picker(table) ─▶ snapshot
//
//   place of the name ─▶ chunk of 32 ─▶ name, picker
//
// Immutable, and sorted by name. A caller that has all the names in order knows a cluster's place
// without a search (PickArgs::cluster_place). A wrong place costs a binary search.
//
// The table has two levels. So a new picker of one cluster copies one chunk and the list of chunks
// (n / 32 pointers), never all n entries.

#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "lb/trace.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

class ClusterTable {
 public:
  using Changes = std::vector<std::pair<ClusterName, PickerPtr>>;

  ClusterTable() = default;

  /// A table of exactly these clusters.
  explicit ClusterTable(Changes entries);

  /// This table with other pickers for some of its clusters; unknown ones are ignored.
  ClusterTable with(const Changes& changes) const;

  /// Null if there is no such cluster. `place`: the cluster's probable place.
  [[gnu::hot]] const ChildPicker* find(const ClusterName& cluster, std::size_t place = 0) const;

  /// The hint of the only cluster that has one. Null if no cluster has a hint, if several have, or
  /// if there are more than kMostWithHint clusters.
  const SessionHint* session_hint() const;

 private:
  static constexpr std::size_t kChunk = 32;
  /// With more clusters there is no hint, because each publication asks all clusters for theirs.
  static constexpr std::size_t kMostWithHint = 32;
  using Entry = std::pair<ClusterName, ChildPicker>;
  using Chunk = std::array<Entry, kChunk>;

  const Entry& at(std::size_t place) const { return (*chunks_[place / kChunk])[place % kChunk]; }

  /// The place of the cluster; size_ if there is none.
  std::size_t place_of(const ClusterName& cluster) const;

  std::size_t size_ = 0;
  std::vector<std::shared_ptr<const Chunk>> chunks_;
};

/// Asks the picker of the call's cluster. A call for a cluster that is not there, which should be
/// impossible, is dropped with INTERNAL (A31-19).
PickerPtr make_cluster_picker(ClusterTable table);

/// The picker of a cluster that only earlier calls refer to. Calls that would fail are dropped with
/// UNAVAILABLE, so that no wait_for_ready call holds the cluster for ever (A31-17). `may_queue`:
/// true while the cluster is IDLE or CONNECTING; calls may wait then, because every attempt to
/// connect ends. False: calls that would queue are dropped, too.
PickerPtr make_retiring_picker(const ClusterName& cluster, PickerPtr picker, bool may_queue);

}  // namespace signalbox::lb
