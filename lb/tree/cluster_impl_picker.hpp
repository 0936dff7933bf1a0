// SPDX-License-Identifier: Apache-2.0
//
// cluster_impl's picker — drops a share of the calls. Each other pick that completes gets the gate,
// which limits the calls in flight (gRFC A37, A32, A89).
//
//   pick ─▶ each drop category: a draw of its own ─▶ the child's picker ─▶ complete: gate
//           └▶ Drop, counted                         └▶ queue, fail, drop: as it is
//
// Immutable. Pickers share one CallRules until a rule changes.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "lb/request_limit.hpp"
#include "lb/tree/locality_loads.hpp"
#include "messages/counting/leaf_calls.hpp"
#include "messages/counting/striped.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

/// The rules of one configuration for the cluster's calls. The members that every pick reads are on
/// one cache line.
struct alignas(kCacheLine) CallRules {
  struct Drop {
    std::uint32_t per_million = 0;
    absl::Status status;               ///< The status of dropped calls.
    EventCountPtr count;               ///< Null: drops are not counted.
    std::string category = {};         ///< The category's name, for explanations.
    EventCountPtr reported = nullptr;  ///< For the load reports. Null: drops are not reported.
  };

  std::vector<Drop> drops;
  RequestGatePtr gate;                    ///< Never null.
  std::shared_ptr<const LeafCalls> leaf;  ///< Null: the cluster is below no aggregate.
  std::string cluster;                    ///< The cluster's name, for explanations.
  std::string service;  ///< The EDS service name, for explanations; empty: LOGICAL_DNS.
};

using CallRulesPtr = std::shared_ptr<const CallRules>;

/// `loads` counts the calls by locality; null: they are not counted.
PickerPtr make_cluster_impl_picker(PickerPtr child,
                                   CallRulesPtr rules,
                                   LocalityLoadsPtr loads = nullptr);

}  // namespace signalbox::lb
