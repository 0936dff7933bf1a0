// SPDX-License-Identifier: Apache-2.0
#include "xds/depend/cluster_graph.hpp"

#include <utility>

#include "absl/strings/str_cat.h"

#include "xds/depend/cluster_paths.hpp"

namespace signalbox::xds {
namespace {

// Collects the leaves one by one. Returns an error for a cluster that makes the whole root
// unusable.
class Flattening {
 public:
  explicit Flattening(MissingLeaf missing) : missing_(missing) {}

  absl::Status take(const ClusterPaths::Node& node) {
    if (node.known == nullptr || !node.known->ok()) return pass_missing(node.name, node.known);
    const bool is_leaf = !std::holds_alternative<AggregateDiscovery>((**node.known)->discovery);
    if (is_leaf) leaves_.push_back(node.name);
    return absl::OkStatus();
  }

  std::vector<ClusterName> take_leaves() { return std::move(leaves_); }

  /// Returns why there are no leaves: the error of the first missing cluster, and the number of
  /// further missing ones; or that all clusters are aggregates.
  std::string what_is_missing() const {
    if (missed_ == 0) return ": all that it leads to are aggregates";
    const std::string others = missed_ == 1 ? "" : absl::StrCat(", and ", missed_ - 1, " more");
    return absl::StrCat(": ", first_missing_, others);
  }

 private:
  absl::Status pass_missing(const ClusterName& name, const absl::StatusOr<ClusterPtr>* known) {
    const absl::string_view reason =
        known == nullptr ? "not received yet" : known->status().message();
    std::string text = absl::StrCat("underlying cluster ", name.str(), " is missing: ", reason);
    if (missing_ == MissingLeaf::kFailAggregate) return absl::UnavailableError(text);
    if (++missed_ == 1) first_missing_ = std::move(text);
    return absl::OkStatus();
  }

  MissingLeaf missing_;
  std::vector<ClusterName> leaves_;
  std::string first_missing_;
  std::size_t missed_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<ClusterName>> flatten(const ClusterName& root,
                                                 ClusterLookup lookup,
                                                 MissingLeaf missing) {
  const ClusterPaths paths(root, lookup);
  if (const ClusterName* deepest = paths.too_deep()) {
    return absl::UnavailableError(absl::StrCat("aggregate cluster graph is deeper than ",
                                               kMaxClusterDepth,
                                               " at cluster ",
                                               deepest->str()));
  }
  Flattening flat(missing);
  for (std::size_t turn = 0; turn < paths.size(); ++turn) {
    absl::Status taken = flat.take(paths.node(turn));
    if (!taken.ok()) return taken;
  }
  std::vector<ClusterName> leaves = flat.take_leaves();
  if (leaves.empty()) {
    return absl::UnavailableError(absl::StrCat(
        "aggregate cluster ", root.str(), " has no usable leaf cluster", flat.what_is_missing()));
  }
  return leaves;
}

// Breadth-first, so that each cluster is entered once for all roots, on its shortest path. All
// clusters that flatten() looks up are reached, because they have a path of at most
// kMaxClusterDepth clusters.
ExploredClusters explore(const std::set<ClusterName>& roots, ClusterLookup lookup) {
  ExploredClusters found;
  std::vector<const ClusterName*> level;
  for (const ClusterName& root : roots)
    level.push_back(&root);
  for (std::size_t depth = 1; depth <= kMaxClusterDepth && !level.empty(); ++depth) {
    std::vector<const ClusterName*> next;
    for (const ClusterName* name : level) {
      if (!found.reached.insert(*name).second) continue;
      const auto* known = lookup(*name);
      if (known == nullptr) found.unanswered.insert(*name);
      if (known == nullptr || !known->ok()) continue;
      const auto* aggregate = std::get_if<AggregateDiscovery>(&(**known)->discovery);
      if (aggregate == nullptr) continue;
      for (const ClusterName& child : aggregate->clusters)
        next.push_back(&child);
    }
    level = std::move(next);
  }
  return found;
}

}  // namespace signalbox::xds
