// SPDX-License-Identifier: Apache-2.0
//
// bins — the bins of a run, added up.
//
//   LoadBin + LoadBin ─▶ [add_bin] ─▶ LoadBin ─▶ [finish_percentiles]
//   bins of 100 ms ─▶ [wider_bins] ─▶ charts, table by time, HdrHistogram log
//
// Adding is exact, because a bin has all of its buckets.

#pragma once

#include <cstddef>
#include <vector>

#include "tools/load/histogram.hpp"
#include "tools/load/report.hpp"

namespace signalbox::tools {

/// The buckets that have values, in their order.
std::vector<LoadBucket> buckets_of(const LatencyHistogram& histogram);

/// The bin's latencies. Each counts as the upper end of its bucket, or as `max_ns` if that is less.
LatencyHistogram histogram_of(const LoadBin& bin);

/// Computes `p50_ns` and `p99_ns` from `latencies` and `max_ns`.
void finish_percentiles(LoadBin& bin);

/// Precondition: both bins belong to the same lists of endpoints and places. Call
/// finish_percentiles(to) after the last addition: add_bin() does not set percentiles.
void add_bin(LoadBin& to, const LoadBin& from);

/// `together`: the number of bins that become one. The last bin may have fewer. Precondition:
/// together > 0.
std::vector<LoadBin> wider_bins(const std::vector<LoadBin>& bins, std::size_t together);

}  // namespace signalbox::tools
