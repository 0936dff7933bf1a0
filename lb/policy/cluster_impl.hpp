// SPDX-License-Identifier: Apache-2.0
//
// cluster_impl — drops and limits the calls of one cluster (gRFC A37, A32).
//
//   outlier_detection ─▶ [cluster_impl] ─▶ override_host ─▶ …
//
// Stands above the cluster's priorities, so that it will act once per cluster (A75-2). Today
// everything passes through.

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_cluster_impl();

}  // namespace signalbox::lb
