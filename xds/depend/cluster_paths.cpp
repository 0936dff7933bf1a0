// SPDX-License-Identifier: Apache-2.0
#include "xds/depend/cluster_paths.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace signalbox::xds {

// --- depth-first ----------------------------------------------------------------

// Tarjan's algorithm for strongly connected components ("rings"), with a path in place of
// recursion. A ring is closed at its first entered node, after all nodes that this node leads to
// have been entered. A ring's number is therefore higher than the numbers of the rings that it
// leads to. Numbers begin at 1.
class ClusterPaths::Walk {
 public:
  explicit Walk(ClusterPaths& graph)
      : graph_(graph), turns_(graph.nodes_.size(), kNotEntered), lowest_(graph.nodes_.size()) {
    enter(0);
    while (!path_.empty())
      step();
  }

 private:
  static constexpr std::size_t kNotEntered = static_cast<std::size_t>(-1);

  struct Step {
    Place place;
    std::size_t next_child = 0;
  };

  void enter(Place place) {
    turns_[place] = lowest_[place] = graph_.order_.size();
    graph_.order_.push_back(place);
    open_.push_back(place);
    path_.push_back({place});
  }

  void step() {
    Step& last = path_.back();
    const std::vector<Place>& children = graph_.nodes_[last.place].children;
    if (last.next_child == children.size()) return leave();
    const Place child = children[last.next_child++];
    if (turns_[child] == kNotEntered) return enter(child);
    const bool is_open = graph_.nodes_[child].ring == 0;
    if (is_open) lowest_[last.place] = std::min(lowest_[last.place], turns_[child]);
  }

  void leave() {
    const Place place = path_.back().place;
    path_.pop_back();
    if (lowest_[place] == turns_[place]) close_ring(place);
    if (path_.empty()) return;
    std::size_t& above = lowest_[path_.back().place];
    above = std::min(above, lowest_[place]);
  }

  void close_ring(Place first) {
    ++rings_;
    for (Place place = first + 1; place != first;) {
      place = open_.back();
      open_.pop_back();
      graph_.nodes_[place].ring = rings_;
    }
  }

  ClusterPaths& graph_;
  std::vector<std::size_t> turns_;  ///< For each node: the turn in which it was entered.
  /// For each node: the lowest turn among the open nodes that can be reached from it.
  std::vector<std::size_t> lowest_;
  std::vector<Place> open_;  ///< Nodes that are entered, but in no ring yet.
  std::vector<Step> path_;
  std::size_t rings_ = 0;
};

// --- level by level ---------------------------------------------------------------

ClusterPaths::ClusterPaths(const ClusterName& root, ClusterLookup lookup) {
  place_of(root, 1);
  // expand() appends nodes of the next level to nodes_, so this loop visits them, too.
  for (Place place = 0; place < nodes_.size(); ++place) {
    if (nodes_[place].level <= kMaxClusterDepth) expand(place, lookup);
  }
  order_.reserve(nodes_.size());
  const Walk walk(*this);
  measure();
}

ClusterPaths::Place ClusterPaths::place_of(const ClusterName& name, std::size_t level) {
  const auto [found, is_new] = places_.try_emplace(name, nodes_.size());
  if (is_new) nodes_.push_back({.node = {name, nullptr}, .children = {}, .level = level});
  return found->second;
}

void ClusterPaths::expand(Place place, ClusterLookup lookup) {
  const auto* known = lookup(nodes_[place].node.name);
  nodes_[place].node.known = known;
  if (known == nullptr || !known->ok()) return;
  const auto* aggregate = std::get_if<AggregateDiscovery>(&(**known)->discovery);
  if (aggregate == nullptr) return;
  std::vector<Place> children;
  children.reserve(aggregate->clusters.size());
  for (const ClusterName& child : aggregate->clusters)
    children.push_back(place_of(child, nodes_[place].level + 1));
  nodes_[place].children = std::move(children);
}

// A step that counts (P3) leads to a ring with a lower number, or to a higher level of the same
// ring. Such steps form no loop. In the order of ring and level, a node's depth is therefore final
// when the node is processed.
void ClusterPaths::measure() {
  std::vector<Place> turns(nodes_.size());
  std::iota(turns.begin(), turns.end(), Place{0});
  std::ranges::sort(
      turns, {}, [&](Place place) { return std::pair(~nodes_[place].ring, nodes_[place].level); });
  for (const Place place : turns) {
    const Entry& from = nodes_[place];
    for (const Place child : from.children) {
      Entry& to = nodes_[child];
      const bool counts = to.ring != from.ring || to.level > from.level;
      if (counts) to.depth = std::max(to.depth, from.depth + 1);
    }
  }
}

// An aggregate at the depth kMaxClusterDepth is too deep, because its clusters would be one deeper.
// As in C-core, this holds even if its list leads back to a cluster above it.
const ClusterName* ClusterPaths::too_deep() const {
  for (const Entry& entry : nodes_) {
    if (entry.depth == kMaxClusterDepth && !entry.children.empty())
      return &nodes_[entry.children.front()].node.name;
  }
  return nullptr;
}

}  // namespace signalbox::xds
