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

/// Adds `from` to `to`, except percentiles: call finish_percentiles(to) after the last addition.
/// Precondition: the endpoint and place indexes of both bins refer to the same lists.
void add_bin(LoadBin& to, const LoadBin& from);

/// Makes one wide bin of each `together` consecutive bins. The last wide bin may have fewer.
/// Precondition: together > 0.
std::vector<LoadBin> wider_bins(const std::vector<LoadBin>& bins, std::size_t together);

}  // namespace signalbox::tools
