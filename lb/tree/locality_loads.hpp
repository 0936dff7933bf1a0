// SPDX-License-Identifier: Apache-2.0
//
// LocalityLoads — counts calls by locality, for the load reports to the control plane.
//
//   cluster_impl: endpoints, LoadReporting ─▶ [LocalityLoads] ─▶ picker: complete ─▶ tracker of the
//                                                    │             endpoint's locality
//                    LoadBook ◀─ ClusterCounts ◀─────┘                └▶ LocalityCounts
//
// Immutable. A cluster without lrs_server has no LocalityLoads, so its calls are not counted here.
//
// Pickers of the previous endpoints may still complete picks. The previous endpoints' localities
// are therefore kept until the next change, if counts and metrics stay the same. A call to any
// other locality counts in a locality without a name.
//
// Source: gRFC A27, A64, A85.

#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "messages/counting/call_tracker.hpp"
#include "messages/counting/load_book.hpp"
#include "messages/counting/tracked.hpp"
#include "messages/endpoints.hpp"
#include "messages/load_reporting.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

class LocalityLoads {
 public:
  /// `endpoints`: null counts as no endpoints. `before`: the LocalityLoads that this one replaces;
  /// null: none. Its trackers are used again if it has the same counts and metrics.
  LocalityLoads(ClusterCountsPtr counts,
                const LoadMetricChoice& metrics,
                const EndpointsPtr& endpoints,
                const std::shared_ptr<Retirement>& retirement,
                const LocalityLoads* before);

  /// Lock-free, allocates nothing.
  const CallTracker& of(const Complete& complete) const;

 private:
  void add(const LocalityPtr& locality,
           const std::shared_ptr<Retirement>& retirement,
           const LocalityLoads* before);

  ClusterCountsPtr counts_;
  std::shared_ptr<const LoadMetricChoice> metrics_;
  /// The trackers by locality object, for a fast search: most picks have a locality of the present
  /// endpoints, and a cluster has few localities.
  std::vector<std::pair<LocalityPtr, CallTrackerPtr>> by_pointer_;
  absl::flat_hash_map<LocalityName, CallTrackerPtr> by_name_;
  std::vector<LocalityName> own_;  ///< The present endpoints' localities, not the previous ones.
  CallTrackerPtr others_;
};

using LocalityLoadsPtr = std::shared_ptr<const LocalityLoads>;

}  // namespace signalbox::lb
