// SPDX-License-Identifier: Apache-2.0
//
// cluster_paths — the clusters that can be reached from a root cluster, with their order and depth.
//
//   A ─▶ [B, C], B ─▶ [D], D ─▶ [C]      nodes A, B, D, C      depths 1, 2, 3, 4
//
// Invariants
//   P1  Nodes are in depth-first order, as the aggregates list them. Each node has its earliest
//       place.
//   P2  A node's depth is the number of clusters on the longest path that counts (P3). The depth
//       depends on the graph alone, never on the order of a list.
//   P3  A path through a loop could have any length. So a step between two clusters that reach each
//       other counts only if it leads away from the root: the shortest path from the root to the
//       second cluster is longer than to the first.
//   P4  Each cluster is looked up once. No cluster farther from the root than kMaxClusterDepth is
//       looked up. Nothing recurses.
//
// Source: gRFC A37 (A37-7 to A37-12, A37-51).

#pragma once

#include <cstddef>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "xds/depend/cluster_graph.hpp"

namespace signalbox::xds {

class ClusterPaths {
 public:
  struct Node {
    ClusterName name;
    const absl::StatusOr<ClusterPtr>* known = nullptr;  ///< Null: no answer, or not looked up (P4).
  };

  ClusterPaths(const ClusterName& root, ClusterLookup lookup);

  /// A cluster at the end of a path of more than kMaxClusterDepth clusters; null: there is none.
  const ClusterName* too_deep() const;

  std::size_t size() const { return order_.size(); }

  /// The node that a depth-first walk enters as number `turn`, from 0.
  const Node& node(std::size_t turn) const { return nodes_[order_[turn]].node; }

 private:
  using Place = std::size_t;

  struct Entry {
    Node node;
    std::vector<Place> children;
    std::size_t level;      ///< The number of clusters on the shortest path.
    std::size_t depth = 1;  ///< The number of clusters on the longest path that counts (P2).
    std::size_t ring = 0;   ///< Equal for clusters that reach each other; see P3.
  };

  class Walk;

  Place place_of(const ClusterName& name, std::size_t level);
  void expand(Place place, ClusterLookup lookup);
  void measure();

  std::vector<Entry> nodes_;  ///< The nodes, ordered by level; the root is the first.
  absl::flat_hash_map<ClusterName, Place> places_;
  std::vector<Place> order_;  ///< The places of the nodes in depth-first order (P1).
};

}  // namespace signalbox::xds
