// SPDX-License-Identifier: Apache-2.0
#include "xds/depend/cluster_graph.hpp"

#include "absl/strings/str_cat.h"

namespace signalbox::xds {
namespace {

// One depth-first walk from one root. Stops at the first reason that fails the root as a whole.
class Flattening {
 public:
  Flattening(ClusterLookup lookup, MissingLeaf missing) : lookup_(lookup), missing_(missing) {}

  absl::Status enter(const ClusterName& name, std::size_t depth) {
    if (entered_.contains(name)) return absl::OkStatus();
    if (depth > kMaxClusterDepth) {
      return absl::UnavailableError(absl::StrCat(
          "aggregate cluster graph is deeper than ", kMaxClusterDepth, " at cluster ", name.str()));
    }
    entered_.insert(name);
    const auto* known = lookup_(name);
    if (known == nullptr || !known->ok()) return pass_missing(name, known);
    const auto* aggregate = std::get_if<AggregateDiscovery>(&(**known)->discovery);
    if (aggregate == nullptr) {
      leaves_.push_back(name);
      return absl::OkStatus();
    }
    for (const ClusterName& child : aggregate->clusters) {
      absl::Status entered = enter(child, depth + 1);
      if (!entered.ok()) return entered;
    }
    return absl::OkStatus();
  }

  std::vector<ClusterName> take_leaves() { return std::move(leaves_); }

 private:
  absl::Status pass_missing(const ClusterName& name, const absl::StatusOr<ClusterPtr>* known) {
    if (missing_ == MissingLeaf::kSkip) return absl::OkStatus();
    const absl::string_view reason =
        known == nullptr ? "not received yet" : known->status().message();
    return absl::UnavailableError(
        absl::StrCat("underlying cluster ", name.str(), " is missing: ", reason));
  }

  ClusterLookup lookup_;
  MissingLeaf missing_;
  std::set<ClusterName> entered_;
  std::vector<ClusterName> leaves_;
};

// Notes the cluster; its children where it is an aggregate.
const AggregateDiscovery* visit(const ClusterName& name,
                                ClusterLookup lookup,
                                ExploredClusters& found) {
  found.reached.insert(name);
  const auto* known = lookup(name);
  if (known == nullptr) {
    found.unanswered.insert(name);
    return nullptr;
  }
  return known->ok() ? std::get_if<AggregateDiscovery>(&(**known)->discovery) : nullptr;
}

void explore_below(const AggregateDiscovery& aggregate,
                   ClusterLookup lookup,
                   std::size_t depth,
                   std::set<ClusterName>& entered,
                   ExploredClusters& found) {
  if (depth == kMaxClusterDepth) return;
  for (const ClusterName& child : aggregate.clusters) {
    if (!entered.insert(child).second) continue;
    if (const auto* nested = visit(child, lookup, found))
      explore_below(*nested, lookup, depth + 1, entered, found);
  }
}

}  // namespace

absl::StatusOr<std::vector<ClusterName>> flatten(const ClusterName& root,
                                                 ClusterLookup lookup,
                                                 MissingLeaf missing) {
  Flattening walk(lookup, missing);
  absl::Status entered = walk.enter(root, 1);
  if (!entered.ok()) return entered;
  std::vector<ClusterName> leaves = walk.take_leaves();
  if (leaves.empty()) {
    return absl::UnavailableError(
        absl::StrCat("aggregate cluster ", root.str(), " has no usable leaf cluster"));
  }
  return leaves;
}

ExploredClusters explore(const std::set<ClusterName>& roots, ClusterLookup lookup) {
  ExploredClusters found;
  // Each root walks afresh, exactly as flatten() does: what one root reaches too deep may be
  // near to another, and then has to be watched.
  for (const ClusterName& root : roots) {
    const AggregateDiscovery* aggregate = visit(root, lookup, found);
    if (aggregate == nullptr) continue;
    std::set<ClusterName> entered{root};
    explore_below(*aggregate, lookup, 1, entered, found);
  }
  return found;
}

}  // namespace signalbox::xds
