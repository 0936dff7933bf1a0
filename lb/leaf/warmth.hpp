// SPDX-License-Identifier: Apache-2.0
//
// Warmth — which READY endpoints are in slow start, and how warm they are (gRFC A100; Envoy's slow
// start).
//
//   EndpointSet: READY since ─▶ [Warmth] ─▶ factors ─▶ the picker's weights
//                                  └▶ tell(): steps of explanations
//
//   TimerFired ─▶ [WarmthTimer] ─▶ StartTimer, while an endpoint may be in slow start
//
// An endpoint's slow start begins whenever the endpoint becomes READY, that is, when it is
// connected and no judge (outlier detection, health checks) finds it unfit. Endpoints that become
// READY together have equal factors, and so equal shares.
//
// Invariants
//   I1  A Warmth never changes. While endpoints warm up, pickers are made anew (slow_start_step()).
//   I2  A policy without slow start has no timer and no factors.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "lb/leaf/endpoint_set.hpp"
#include "messages/lb_config.hpp"
#include "messages/lb_events.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

class Warmth {
 public:
  Warmth() = default;

  /// The READY endpoints at `now`, in the order of EndpointSet::ready().
  Warmth(const std::optional<SlowStart>& rules, const EndpointSet& endpoints, Instant now);

  /// Whether factors differ, so that picks must weigh endpoints. Equal factors change no share.
  bool is_uneven() const { return !factors_.empty(); }

  /// The factor of each READY endpoint's weight. Empty: all are equal.
  const std::vector<double>& factors() const { return factors_; }

  /// "35 % of its weight", or empty: the endpoint is not in slow start, or all factors are equal.
  std::string part_of(std::size_t endpoint) const;

  /// Tells which endpoints have a part of their weight, at most twenty of them. Nothing, if all
  /// factors are equal.
  void tell(absl::string_view policy, const ReadyEndpoints& ready, PickTrace& trace) const;

  friend bool operator==(const Warmth& left, const Warmth& right) {
    return left.factors_ == right.factors_;
  }

 private:
  SlowStart rules_;
  std::vector<double> factors_;
  std::vector<Duration> ages_;  // How long each endpoint is READY; empty where factors_ is.
};

/// The timer of round_robin and least_request in slow start. (weighted_round_robin has a timer for
/// its weights anyway.)
class WarmthTimer {
 public:
  /// False: the timer is another one. Else the caller compares a new Warmth with its picker's.
  bool fire(const TimerId& timer);

  /// Starts the timer if an endpoint may be in slow start, and the timer does not run. Costs O(1).
  void follow_up(const std::optional<SlowStart>& rules,
                 const EndpointSet& endpoints,
                 Instant now,
                 LbEffects& effects);

 private:
  std::uint64_t generation_ = 0;
  bool runs_ = false;
};

}  // namespace signalbox::lb
