// SPDX-License-Identifier: Apache-2.0
//
// slow_start — the part of its weight that an endpoint has while it is new (gRFC A100; Envoy's slow
// start).
//
//   time since the endpoint became READY ─▶ [slow_start_factor] ─▶ factor of its weight
//
//   factor = max(min_weight_percent / 100, (max(time, 1 s) / window) ^ (1 / aggression))
//   factor = 1, from the end of the window on
//
// An aggression above 1 raises the weight fast at first, one below 1 raises it late.

#pragma once

#include <string>

#include "messages/ids.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

/// The least factor, whatever min_weight_percent says. Schedulers need factors above 0.
inline constexpr double kLeastSlowStartFactor = 1e-4;

/// The factor of the weight of an endpoint that became READY `age` ago: from kLeastSlowStartFactor
/// to 1. It never falls while `age` rises.
double slow_start_factor(const SlowStart& rules, Duration age);

/// A factor for people: "35 %".
std::string factor_text(double factor);

/// How often round_robin and least_request compute the factors while endpoints are in slow start:
/// twenty times in a window, and at most once a second.
Duration slow_start_step(const SlowStart& rules);

/// The ramp as a drawing and in numbers: "▁▂▃▄▅▆▇█ 10 % of its weight at first, 25 % after 15 s,
/// 50 % after 30 s, 75 % after 45 s, all of it after 60 s".
std::string slow_start_ramp(const SlowStart& rules);

}  // namespace signalbox::lb
