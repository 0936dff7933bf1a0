// SPDX-License-Identifier: Apache-2.0
//
// DropCounters — where dropped calls are counted for operators.
//
//   cluster_impl ─▶ drops(), breaker_drops() ─▶ EventCount, kept by its picker ─▶ add()
//                                               └──────────▶ metrics/exporter ─▶ Prometheus
//
// lb/route/fault counts what it does to calls in a FaultCount.
//
// Asked when a configuration comes, never on the path of calls. Thread-safe.

#pragma once

#include <memory>

#include "absl/strings/string_view.h"

#include "messages/counting/striped.hpp"
#include "messages/ids.hpp"

namespace signalbox {

/// How often one thing happened: add(0, 1) for each time.
using EventCount = StripedCounters<1>;
using EventCountPtr = std::shared_ptr<const EventCount>;

/// Calls that were delayed and aborted on purpose (A33): add(kDelayFault, 1) for each.
using FaultCount = StripedCounters<2>;
using FaultCountPtr = std::shared_ptr<const FaultCount>;
inline constexpr std::size_t kDelayFault = 0;
inline constexpr std::size_t kAbortFault = 1;

class DropCounters {
 public:
  virtual ~DropCounters() = default;

  /// Calls that the control plane had dropped (EDS drop_overloads); the same count each time.
  virtual EventCountPtr drops(const ClusterName& cluster, absl::string_view category) = 0;

  /// Calls beyond the cluster's limit of concurrent ones; the same count each time.
  virtual EventCountPtr breaker_drops(const ClusterName& cluster) = 0;
};

}  // namespace signalbox
