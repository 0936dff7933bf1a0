// SPDX-License-Identifier: Apache-2.0
//
// LeafCalls — counts the calls of one leaf below an aggregate (gRFC A75, A89).
//
//   cluster_impl of the leaf ─▶ CallCounters::of_leaf() ─▶ LeafCalls ─▶ PickResult::leaf ─▶ router
//
// A call that is routed to an aggregate is counted by the leaf that takes it. Without an aggregate
// the route's cluster is the leaf, and no LeafCalls are needed.

#pragma once

#include <memory>
#include <utility>

#include "messages/counting/call_stats.hpp"
#include "messages/counting/striped.hpp"
#include "messages/counting/tracked.hpp"
#include "messages/ids.hpp"

namespace signalbox {

/// The counters of one leaf. A call holds the LeafCalls of the leaf that took it, so LeafCalls
/// outlive the policies. Each pick of the leaf reads most of it: it is one cache line.
class alignas(kCacheLine) LeafCalls final : public Tracked {
 public:
  LeafCalls(ClusterName leaf, std::shared_ptr<const CallStats> stats)
      : leaf_(std::move(leaf)), stats_(std::move(stats)) {}

  const ClusterName& leaf() const { return leaf_; }

  /// The counters of the leaf's calls; null: these calls are not counted.
  const CallStats* stats() const { return stats_.get(); }

  /// Prefetches the cache lines that a call will write.
  void prefetch() const {
    use_counter().prefetch();
    if (stats_ != nullptr) stats_->prefetch();
  }

 private:
  ClusterName leaf_;
  std::shared_ptr<const CallStats> stats_;
};

static_assert(sizeof(LeafCalls) == kCacheLine);

/// The call counters of one target. Called when a configuration comes, never on the path of calls.
/// Thread-safe.
class CallCounters {
 public:
  virtual ~CallCounters() = default;

  /// The counters of calls that routes send to `aggregate` and that `leaf` takes. Null: they are
  /// not counted.
  virtual std::shared_ptr<const CallStats> of_leaf(const ClusterName& aggregate,
                                                   const ClusterName& leaf) = 0;
};

}  // namespace signalbox
