// SPDX-License-Identifier: Apache-2.0
//
// priority_load — how Envoy's aggregate cluster spreads calls by health: the sums, nothing else.
//
//   hosts by priority ─▶ [health scores ─▶ normalised total ─▶ loads] ─▶ the picker's draws
//
// The priorities of all clusters stand in one row: those of the first cluster, then those of the
// second, and so on (ENV-5). The integers are Envoy's, to the last one: divisions round down, and
// what is lost by that goes to the first priority that has anything to give.
//
// Pure. A load is what calls see, so that it is computed when health changes, never by a pick.
//
// Source: Envoy's "Aggregate Cluster" and "Priority levels" (ENV-7 … 17).

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace signalbox::lb {

struct HostNumbers {
  std::uint64_t fit = 0;  ///< Healthy or degraded.
  std::uint64_t total = 0;

  friend bool operator==(const HostNumbers&, const HostNumbers&) = default;
};

/// The hosts of one priority, by number or, with weighted_priority_health, by weight (ENV-9).
struct PriorityHealth {
  std::uint64_t healthy = 0;
  std::uint64_t degraded = 0;  ///< Fit, and only used when the healthy ones do not suffice.
  std::uint64_t total = 0;     ///< Without those that are excluded (ENV-28).
  /// In percent: so much of its hosts' number a priority can serve with; EDS may say otherwise.
  std::uint32_t overprovisioning_factor = 140;
  /// Where the above are weights: panic goes by numbers all the same (ENV-17).
  std::optional<HostNumbers> numbers = std::nullopt;

  friend bool operator==(const PriorityHealth&, const PriorityHealth&) = default;
};

/// What a priority gets, in percent of all calls.
struct PriorityLoad {
  std::uint32_t healthy = 0;   ///< For its healthy hosts; in panic for any.
  std::uint32_t degraded = 0;  ///< For its degraded hosts.
  bool panic = false;          ///< Too few are fit: its calls go to all hosts alike.

  std::uint32_t sum() const { return healthy + degraded; }

  friend bool operator==(const PriorityLoad&, const PriorityLoad&) = default;
};

/// min(100, factor × fit / total), rounded down; 0 without hosts (ENV-7).
std::uint32_t health_score(std::uint64_t fit, std::uint64_t total, std::uint32_t factor);

/// The load of each priority, together 100 (ENV-11, ENV-14 … 16); or all 0 where no host is fit and
/// there is no panic. `panic_threshold`, in percent of hosts that are fit: below it a priority
/// panics as long as the priorities together are not at 100, and where all scores are 0 the loads
/// go by the number of hosts (ENV-17, ENV-33); 0: never. Where all scores are 0 and there is no
/// panic, the first priority that has a healthy host has all of it, else the first that has a
/// degraded one (ENV-30): of 200 hosts one is a score of 0, and better than none.
std::vector<PriorityLoad> priority_loads(std::span<const PriorityHealth> priorities,
                                         std::uint32_t panic_threshold = 0);

}  // namespace signalbox::lb
