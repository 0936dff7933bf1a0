// SPDX-License-Identifier: Apache-2.0
//
// wrr_locality — turns the localities of its endpoints into a weighted_target (gRFC A52).
//
//   priority ─▶ [wrr_locality] ─▶ weighted_target ─▶ one child policy for each locality
//
// Each locality becomes a target, with the locality's name and weight. The configured child policy
// is used for every target. With zone_aware (Envoy), the weighted_target also gets that rule, and
// this client's locality.

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_wrr_locality(const PolicyOptions& options = {});

}  // namespace signalbox::lb
