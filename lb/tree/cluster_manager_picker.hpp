// SPDX-License-Identifier: Apache-2.0
//
// ClusterTable — maps a call's cluster to that cluster's picker, for any number of clusters.
//
//   cluster_manager ─▶ ClusterTable::with(changes) ─▶ make_cluster_picker(table) ─▶ snapshot
//
//   index of the cluster ─▶ chunk of 32 clusters ─▶ name, picker
//
// Immutable, and sorted by name. A caller that knows the sorted names of all clusters, such as a
// route, knows the cluster's index, and passes it (PickArgs::cluster_place), which saves a search.
// If the index is wrong, a binary search follows.
//
// The table has two levels, so that a new picker for one cluster copies only one chunk and the list
// of chunks (n / 32 pointers), not all n entries.

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

  /// A copy of this table in which the clusters of `changes` have new pickers. Unknown clusters are
  /// ignored.
  ClusterTable with(const Changes& changes) const;

  /// The picker for this cluster; null: there is no such cluster. `place`: the cluster's probable
  /// index.
  [[gnu::hot]] const ChildPicker* find(const ClusterName& cluster, std::size_t place = 0) const;

  /// The session_hint() of the clusters' pickers, when exactly one of them has a hint. Null if none
  /// or several have one, or if there are more than kMostWithHint clusters.
  const SessionHint* session_hint() const;

 private:
  static constexpr std::size_t kChunk = 32;
  /// With more clusters, session_hint() returns null: each publication calls it, and it asks all
  /// pickers.
  static constexpr std::size_t kMostWithHint = 32;
  using Entry = std::pair<ClusterName, ChildPicker>;
  using Chunk = std::array<Entry, kChunk>;

  const Entry& at(std::size_t place) const { return (*chunks_[place / kChunk])[place % kChunk]; }

  /// The index of the cluster; size_ if there is none.
  std::size_t place_of(const ClusterName& cluster) const;

  std::size_t size_ = 0;
  std::vector<std::shared_ptr<const Chunk>> chunks_;
};

/// Asks the picker of the call's cluster. A call for a cluster that the table does not have, which
/// should be impossible, is dropped with INTERNAL (A31-19).
PickerPtr make_cluster_picker(ClusterTable table);

/// The picker of a cluster that only earlier calls refer to. Calls that would fail are dropped with
/// UNAVAILABLE instead. Otherwise a wait_for_ready call would wait, and keep the cluster for ever
/// (A31-17). Calls may wait for an endpoint, because every attempt to connect ends.
PickerPtr make_retiring_picker(const ClusterName& cluster, PickerPtr picker);

}  // namespace signalbox::lb
