// SPDX-License-Identifier: Apache-2.0
//
// DropCounters — counts dropped calls for operators.
//
//   cluster_impl ─▶ drops(), breaker_drops() ─▶ EventCount, kept by its picker ─▶ add()
//                                               └──────────▶ metrics/exporter ─▶ Prometheus
//
// The fault filter (lb/route/fault) counts its delays and aborts in a FaultCount.
//
// The functions of DropCounters are called when a configuration comes, never on the path of calls.
// Thread-safe.

#pragma once

#include <memory>

#include "absl/strings/string_view.h"

#include "messages/counting/striped.hpp"
#include "messages/ids.hpp"

namespace signalbox {

/// Counts events of one kind: add(0, 1) for each event.
using EventCount = StripedCounters<1>;
using EventCountPtr = std::shared_ptr<const EventCount>;

/// Counts the faults that fault filters inject on purpose (A33): add(kDelayFault, 1) for each
/// delay, add(kAbortFault, 1) for each abort.
using FaultCount = StripedCounters<2>;
using FaultCountPtr = std::shared_ptr<const FaultCount>;
inline constexpr std::size_t kDelayFault = 0;
inline constexpr std::size_t kAbortFault = 1;

class DropCounters {
 public:
  virtual ~DropCounters() = default;

  /// The counter of calls that were dropped on the control plane's order (EDS drop_overloads).
  /// Repeated calls return the same object as long as it is held.
  virtual EventCountPtr drops(const ClusterName& cluster, absl::string_view category) = 0;

  /// The counter of calls beyond the cluster's limit of concurrent calls. Repeated calls return the
  /// same object as long as it is held.
  virtual EventCountPtr breaker_drops(const ClusterName& cluster) = 0;
};

}  // namespace signalbox
