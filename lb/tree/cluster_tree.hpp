// SPDX-License-Identifier: Apache-2.0
//
// cluster_tree — turns one cluster into the configuration of the policies below its cds (gRFC A75).
//
//   ClusterConfig ─▶ [leaf_tree | aggregate_tree] ─▶ configuration of the one child of cds
//
// Sources: gRFC A75 (the tree), A37 (names of priorities, re-resolution), A56; Envoy's aggregate
// cluster (tiered).

#pragma once

#include <cstdint>
#include <vector>

#include "messages/lb_config.hpp"
#include "messages/xds_config.hpp"

namespace signalbox::lb {

/// Names the priorities of one leaf cluster, so that a priority that moves keeps its child. A
/// priority takes the name of an old priority with which it shares a locality, unless a higher
/// priority has taken that name (A37-21).
class PriorityNames {
 public:
  /// Returns a name for each priority of `endpoints`, in their order. Remembers the names and
  /// localities for the next call.
  std::vector<ChildName> assign(const Endpoints& endpoints);

 private:
  struct Named {
    ChildName name;
    std::vector<LocalityName> localities;
  };

  std::vector<Named> last_;
  std::uint64_t next_ = 0;
};

/// Whether calls of the target may belong to a session: the listener has a stateful_session filter.
/// True also if the listener's filter does nothing, because routes can turn it on (A55-12).
bool may_have_sessions(const XdsConfig& xds);

/// The configuration below the cds of a leaf cluster. Precondition: `cluster` is not an aggregate.
/// `lb_policy`: the policy below each priority, which an aggregate may have set. `priorities`: a
/// name for each priority. `tiers`, `aggregate`: see CdsConfig.
LbConfigPtr leaf_tree(const Cluster& cluster,
                      const LbConfigPtr& lb_policy,
                      const std::vector<ChildName>& priorities,
                      bool sessions = false,
                      const TierSetPtr& tiers = nullptr,
                      const ClusterName& aggregate = {});

/// The configuration below the cds of an aggregate. Precondition: `leaves` are the leaves of
/// `cluster`. If the aggregate has a policy of its own, that policy replaces the leaves' policies
/// (A75-8).
LbConfigPtr aggregate_tree(const Cluster& cluster,
                           const AggregateLeaves& leaves,
                           AggregateMode mode = AggregateMode::kPriority);

}  // namespace signalbox::lb
