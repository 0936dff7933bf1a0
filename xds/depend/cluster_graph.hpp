// SPDX-License-Identifier: Apache-2.0
//
// cluster_graph — aggregate clusters as what they stand for: one flat list of leaves.
//
//   A ─▶ [B, C], C ─▶ [D, E]      flatten(A) = [B, D, E]      explore(A) = {A, B, C, D, E}
//
// Pure functions over whatever is known of the clusters so far.
//
// Invariants
//   G1  Leaves come depth-first; one that is reached twice stands at its earliest place.
//   G2  Every walk ends, whatever loops there are, and however many ways lead to a cluster: it is
//       looked up once.
//   G3  A path has at most kMaxClusterDepth clusters, root and leaf included. Every path counts,
//       whatever other paths lead to its clusters, so the order of a list decides nothing. Loops:
//       cluster_paths.
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

namespace signalbox::xds {

inline constexpr std::size_t kMaxClusterDepth = 16;

using ClusterPtr = std::shared_ptr<const Cluster>;

/// What is known of a cluster: the resource, why there is none, or nullptr: not answered yet.
using ClusterLookup = absl::FunctionRef<const absl::StatusOr<ClusterPtr>*(const ClusterName& name)>;

enum class MissingLeaf : std::uint8_t {
  kSkip,           ///< A74: the others serve.
  kFailAggregate,  ///< A37-13 to the letter: one that is missing fails the whole aggregate.
};

/// The leaves that a cluster stands for; a leaf stands for itself. UNAVAILABLE where there are
/// none to use or the graph is too deep. Unanswered clusters count as missing: call it once
/// explore() says that the graph is complete.
absl::StatusOr<std::vector<ClusterName>> flatten(const ClusterName& root,
                                                 ClusterLookup lookup,
                                                 MissingLeaf missing);

struct ExploredClusters {
  std::set<ClusterName> reached;     ///< All that have to be watched, the roots included.
  std::set<ClusterName> unanswered;  ///< Those of them of which nothing is known yet.
};

ExploredClusters explore(const std::set<ClusterName>& roots, ClusterLookup lookup);

}  // namespace signalbox::xds
