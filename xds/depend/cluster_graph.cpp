// SPDX-License-Identifier: Apache-2.0
#include "xds/depend/cluster_graph.hpp"

#include <utility>

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

  /// Why there are no leaves: what the first of those that are missing says, and how many more are.
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

  ClusterLookup lookup_;
  MissingLeaf missing_;
  std::set<ClusterName> entered_;
  std::vector<ClusterName> leaves_;
  std::string first_missing_;
  std::size_t missed_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<ClusterName>> flatten(const ClusterName& root,
                                                 ClusterLookup lookup,
                                                 MissingLeaf missing) {
  Flattening walk(lookup, missing);
  absl::Status entered = walk.enter(root, 1);
  if (!entered.ok()) return entered;
  std::vector<ClusterName> leaves = walk.take_leaves();
  if (leaves.empty()) {
    return absl::UnavailableError(absl::StrCat(
        "aggregate cluster ", root.str(), " has no usable leaf cluster", walk.what_is_missing()));
  }
  return leaves;
}

// Level by level, so that each cluster is entered once for all roots, and by its shortest way. What
// flatten() looks at is among what has a way that is short enough.
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
