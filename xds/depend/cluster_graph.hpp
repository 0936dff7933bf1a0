// SPDX-License-Identifier: Apache-2.0
//
// cluster_graph — resolves an aggregate cluster into one flat list of leaf clusters.
//
//   A ─▶ [B, C], C ─▶ [D, E]      flatten(A) = [B, D, E]      explore(A) = {A, B, C, D, E}
//
// Pure functions over the clusters received so far.
//
// Invariants
//   G1  Leaves are in depth-first order. A leaf that is reached twice keeps its earliest place.
//   G2  Each cluster is looked up once, however many paths lead to it. Every walk therefore ends,
//       even with loops.
//   G3  A path has at most kMaxClusterDepth clusters, root and leaf included. The limit applies to
//       every path, even if a shorter path leads to the same cluster. So the order of clusters in a
//       list does not decide whether the graph is too deep. cluster_paths.hpp says how paths with
//       loops are counted.
//
// Source: gRFC A37 (A37-7 to A37-13, A37-51), A74 (a missing leaf is skipped), A75-9 (flat, not
// nested).

#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "messages/cluster.hpp"
#include "xds/depend/missing_leaf.hpp"

namespace signalbox::xds {

inline constexpr std::size_t kMaxClusterDepth = 16;

using ClusterPtr = std::shared_ptr<const Cluster>;

/// Returns the cluster's resource or its error; nullptr: not answered yet.
using ClusterLookup = absl::FunctionRef<const absl::StatusOr<ClusterPtr>*(const ClusterName& name)>;

/// The leaves of a cluster; a leaf's only leaf is itself. UNAVAILABLE if there is no usable leaf,
/// if the graph is too deep, or if a cluster is missing under MissingLeaf::kFailAggregate.
/// Unanswered clusters count as missing, so call flatten() only after explore() has found no
/// unanswered cluster.
absl::StatusOr<std::vector<ClusterName>> flatten(const ClusterName& root,
                                                 ClusterLookup lookup,
                                                 MissingLeaf missing);

struct ExploredClusters {
  std::set<ClusterName> reached;     ///< All clusters to watch, roots included (G3).
  std::set<ClusterName> unanswered;  ///< Reached clusters without an answer yet.
};

ExploredClusters explore(const std::set<ClusterName>& roots, ClusterLookup lookup);

}  // namespace signalbox::xds
