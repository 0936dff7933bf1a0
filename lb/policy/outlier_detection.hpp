// SPDX-License-Identifier: Apache-2.0
//
// outlier_detection — ejects endpoints that fail their calls (gRFC A50).
//
//   cds ─▶ [outlier_detection] ─▶ cluster_impl ─▶ …
//
// Stands above the cluster's priorities, so that it will see the endpoints of all of them (A75-2).
// Today everything passes through.

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_outlier_detection();

}  // namespace signalbox::lb
