// SPDX-License-Identifier: Apache-2.0
//
// features — what the runtime does of that which a cluster is told beside its policy.
//
//   history deals it, always ─▶ [switch] ─▶ resources say it, invariants and quiescence expect it
//
// A row is switched on with the change that furnishes its room in the policy tree. Until then it is
// dealt all the same, so that the switch moves no dice, but the control plane does not say it.

#pragma once

namespace signalbox::sim::features {

/// EDS drop_overloads (A32).
inline constexpr bool kDrops = false;

/// CDS circuit_breakers: concurrent calls of a cluster, over all its trees (A32). Switched on, the
/// world gives its policies limits that they share, and that no other world sees.
inline constexpr bool kLimits = false;

/// CDS outlier_detection (A50).
inline constexpr bool kEjection = false;

}  // namespace signalbox::sim::features
