// SPDX-License-Identifier: Apache-2.0
//
// LeafCalls — where the calls of one leaf below an aggregate are counted (gRFC A75, A89).
//
//   cluster_impl of the leaf ─▶ CallCounters::of_leaf() ─▶ LeafCalls ─▶ PickResult::leaf ─▶ router
//
// A call that is routed to an aggregate is counted by the leaf that takes it. Without an aggregate
// the cluster of the route is the leaf, and no LeafCalls are needed.

#pragma once

#include <memory>
#include <utility>

#include "messages/counting/call_stats.hpp"
#include "messages/counting/tracked.hpp"
#include "messages/ids.hpp"

namespace signalbox {

/// Outlives the policies: a call holds the leaf that took it.
class LeafCalls final : public Tracked {
 public:
  LeafCalls(ClusterName leaf, std::shared_ptr<const CallStats> stats)
      : leaf_(std::move(leaf)), stats_(std::move(stats)) {}

  const ClusterName& leaf() const { return leaf_; }

  const CallStats& stats() const { return *stats_; }

  /// Asks for the cache lines that a call will write.
  void prefetch() const {
    use_counter().prefetch();
    stats_->prefetch();
  }

 private:
  ClusterName leaf_;
  std::shared_ptr<const CallStats> stats_;
};

/// The counters of one target. Asked when a configuration comes, never on the path of calls.
/// Thread-safe.
class CallCounters {
 public:
  virtual ~CallCounters() = default;

  /// The counters of calls that routes send to `aggregate` and that `leaf` takes.
  virtual std::shared_ptr<const CallStats> of_leaf(const ClusterName& aggregate,
                                                   const ClusterName& leaf) = 0;
};

}  // namespace signalbox
