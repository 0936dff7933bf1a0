// SPDX-License-Identifier: Apache-2.0
//
// ClusterTable — from a call's cluster to that cluster's picker, for any number of clusters.
//
//   cluster_manager ─▶ ClusterTable::with(changes) ─▶ cluster_picker(table) ─▶ snapshot
//
//   name ─▶ directory (one per configuration, shared) ─▶ place ─▶ chunk of 32 ─▶ picker
//
// Immutable. Two levels, so that one cluster's new picker copies one chunk and the list of
// chunks (n / 32 pointers), never the n entries; the directory is copied by configurations only.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "messages/pick.hpp"

namespace signalbox::lb {

class ClusterTable {
 public:
  using Changes = std::vector<std::pair<ClusterName, PickerPtr>>;

  ClusterTable();

  /// A table of exactly these clusters.
  explicit ClusterTable(const Changes& entries);

  /// This table with other pickers for some of its clusters; unknown ones are ignored.
  ClusterTable with(const Changes& changes) const;

  /// Null if there is no such cluster.
  const Picker* find(const ClusterName& cluster) const;

 private:
  static constexpr std::size_t kChunk = 32;
  using Directory = absl::flat_hash_map<ClusterName, std::uint32_t>;
  using Chunk = std::array<PickerPtr, kChunk>;

  std::shared_ptr<const Directory> directory_;
  std::vector<std::shared_ptr<const Chunk>> chunks_;
};

/// Asks the picker of the call's cluster. A call for a cluster that is not there, which should be
/// impossible, is dropped with INTERNAL (A31-19).
PickerPtr make_cluster_picker(ClusterTable table);

/// For a cluster that only old calls refer to: what would fail is dropped with UNAVAILABLE, so
/// that no wait_for_ready call holds the cluster for ever (A31-17). Queueing stays only while the
/// cluster tries to connect, which ends.
PickerPtr make_retiring_picker(const ClusterName& cluster, PickerPtr picker, bool may_queue);

}  // namespace signalbox::lb
