// SPDX-License-Identifier: Apache-2.0
//
// cluster_paths — every cluster that one cluster leads to: in which order, and how deep.
//
//   A ─▶ [B, C], B ─▶ [D], D ─▶ [C]      nodes A, B, D, C      depths 1, 2, 3, 4
//
// Invariants
//   P1  Nodes come depth-first, as the aggregates list them; each at its earliest place.
//   P2  A node's depth is the number of clusters on the longest path that counts. A path counts by
//       what the graph is, never by the order of a list.
//   P3  A path through a loop could be of any length. Between clusters that reach each other, a
//       step counts only if it leads to a cluster that is farther from the root by the shortest
//       path.
//   P4  Each cluster is looked up once, no cluster farther than kMaxClusterDepth is, and nothing
//       recurses.
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
    const absl::StatusOr<ClusterPtr>* known = nullptr;  ///< As ClusterLookup has it.
  };

  ClusterPaths(const ClusterName& root, ClusterLookup lookup);

  /// A cluster that a path of more than kMaxClusterDepth clusters leads to; null: there is none.
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
    std::size_t depth = 1;  ///< As P2 has it.
    std::size_t ring = 0;   ///< The same for clusters that reach each other; P3.
  };

  class Walk;

  Place place_of(const ClusterName& name, std::size_t level);
  void expand(Place place, ClusterLookup lookup);
  void measure();

  std::vector<Entry> nodes_;  ///< By level; the root is the first.
  absl::flat_hash_map<ClusterName, Place> places_;
  std::vector<Place> order_;  ///< As P1 has it.
};

}  // namespace signalbox::xds
