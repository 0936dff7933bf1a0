// SPDX-License-Identifier: Apache-2.0
//
// priority_load — the arithmetic by which Envoy's aggregate cluster spreads calls by health.
//
//   hosts by priority ─▶ [health scores ─▶ normalised total ─▶ loads] ─▶ the picker's draws
//
// The priorities of all clusters are one list: the priorities of the first cluster, then those of
// the second, and so on (ENV-5). While a score is above 0, the integers are exactly Envoy's:
// divisions round down, and the remainder goes to the first priority with a healthy score above 0,
// else to the first with a degraded score above 0.
//
// Pure. Loads are computed when leaves report or for a plan, never by a pick.
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
  std::uint64_t fit = 0;  ///< Healthy and degraded hosts.
  std::uint64_t total = 0;

  friend bool operator==(const HostNumbers&, const HostNumbers&) = default;
};

/// The hosts of one priority, by number or, with weighted_priority_health, by weight (ENV-9).
struct PriorityHealth {
  std::uint64_t healthy = 0;
  std::uint64_t degraded = 0;  ///< Get calls when the healthy hosts do not suffice.
  std::uint64_t total = 0;     ///< All hosts but DRAINING ones (ENV-28).
  /// The factor in percent. The default of 140 lets a priority keep all its calls while at least
  /// 100/140 of its hosts are fit. EDS may set another factor.
  std::uint32_t overprovisioning_factor = 140;
  /// How many hosts there are. Set when the fields above are sums of weights: panic always counts
  /// hosts (ENV-17).
  std::optional<HostNumbers> numbers = std::nullopt;

  friend bool operator==(const PriorityHealth&, const PriorityHealth&) = default;
};

/// The load of a priority, in percent of all calls.
struct PriorityLoad {
  std::uint32_t healthy = 0;   ///< The load of its healthy hosts.
  std::uint32_t degraded = 0;  ///< The load of its degraded hosts.
  bool panic = false;          ///< Both loads go to all hosts of the priority but DRAINING ones.

  std::uint32_t sum() const { return healthy + degraded; }

  friend bool operator==(const PriorityLoad&, const PriorityLoad&) = default;
};

/// min(100, factor × fit / total), rounded down; 0 without hosts (ENV-7).
std::uint32_t health_score(std::uint64_t fit, std::uint64_t total, std::uint32_t factor);

/// The load of each priority in percent (ENV-11, ENV-14 … 16). The loads sum to 100. They are all 0
/// when no host may get calls.
///
/// A priority has a score for its healthy hosts and one for its degraded hosts: their percentage of
/// its hosts times the overprovisioning factor, at most 100. When all scores of all priorities sum
/// to less than 100, a priority panics if less than `panic_threshold` percent of its hosts are fit,
/// that is, healthy or degraded (ENV-17). A threshold of 0 turns panic off.
///
/// When all scores are 0 and panic is on, the loads follow the numbers of hosts, and go to all
/// hosts of each priority (ENV-33). When panic is off, the first priority with a healthy host gets
/// all calls, else the first with a degraded host (ENV-30): one fit host of 200 has a score of 0,
/// and is better than none.
std::vector<PriorityLoad> priority_loads(std::span<const PriorityHealth> priorities,
                                         std::uint32_t panic_threshold = 0);

}  // namespace signalbox::lb
