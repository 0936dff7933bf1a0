// SPDX-License-Identifier: Apache-2.0
//
// Warmth — which READY endpoints are in slow start, and how warm they are (gRFC A100; Envoy's slow
// start).
//
//   EndpointSet: READY since ─▶ [Warmth] ─▶ factors ─▶ the picker's weights
//                                  └▶ tell(): steps of explanations
//
// An endpoint's slow start begins whenever the endpoint becomes READY, that is, when it is
// connected and no judge (outlier detection, health checks) finds it unfit. Endpoints that become
// READY together have equal factors.
//
// Invariants
//   I1  A Warmth never changes. While the factors change, pickers are made anew: about every
//       slow_start_step(), in weighted_round_robin about every weight_update_period.
//   I2  Without slow start there are no factors.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "lb/leaf/endpoint_set.hpp"
#include "messages/lb_config.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

class Warmth {
 public:
  Warmth() = default;

  /// The READY endpoints at `now`, in the order of EndpointSet::ready().
  Warmth(const std::optional<SlowStart>& rules, const EndpointSet& endpoints, Instant now);

  /// Whether an endpoint may be in slow start: one became READY within the window. Costs O(1).
  static bool is_possible(const std::optional<SlowStart>& rules,
                          const EndpointSet& endpoints,
                          Instant now);

  /// How many READY endpoints are in slow start. Costs O(endpoints) if any may be.
  static std::size_t count(const std::optional<SlowStart>& rules,
                           const EndpointSet& endpoints,
                           Instant now);

  /// Whether the factors fit the READY endpoints: their number, and the times since when they are
  /// READY, are those from which the factors were computed. False if all factors are equal, because
  /// then the times are not kept.
  bool is_of(const EndpointSet& endpoints) const;

  /// Whether factors differ, so that picks must weigh endpoints. Equal factors change no share.
  bool is_uneven() const { return !factors_.empty(); }

  /// The factor of each READY endpoint's weight. Empty: all are equal.
  const std::vector<double>& factors() const { return factors_; }

  /// "35 % of its weight", or empty: the endpoint is not in slow start, or all factors are equal.
  std::string part_of(std::size_t endpoint) const;

  /// Adds steps to `trace` that name the endpoints in slow start, at most twenty, with the part of
  /// their weight. Adds nothing if all factors are equal.
  void tell(absl::string_view policy, const ReadyEndpoints& ready, PickTrace& trace) const;

  friend bool operator==(const Warmth& left, const Warmth& right) {
    return left.factors_ == right.factors_;
  }

 private:
  SlowStart rules_;
  Instant made_{};
  std::vector<double> factors_;
  std::vector<Duration> ages_;  // How long each was READY at made_; empty where factors_ is.
};

}  // namespace signalbox::lb
