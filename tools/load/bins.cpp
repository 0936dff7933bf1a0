// SPDX-License-Identifier: Apache-2.0
#include "tools/load/bins.hpp"

#include <algorithm>
#include <utility>

namespace signalbox::tools {
namespace {

std::vector<LoadBucket> sum_of(const std::vector<LoadBucket>& one,
                               const std::vector<LoadBucket>& other) {
  std::vector<LoadBucket> sum;
  sum.reserve(one.size() + other.size());
  std::ranges::merge(
      one, other, std::back_inserter(sum), {}, &LoadBucket::bucket, &LoadBucket::bucket);
  std::size_t last = 0;
  for (std::size_t i = 1; i < sum.size(); ++i) {
    if (sum[i].bucket == sum[last].bucket) {
      sum[last].count += sum[i].count;
    } else {
      sum[++last] = sum[i];
    }
  }
  if (!sum.empty()) sum.resize(last + 1);
  return sum;
}

void add_share(std::vector<LoadShare>& shares, const LoadShare& share) {
  const auto found = std::ranges::find_if(shares, [&share](const LoadShare& known) {
    return known.endpoint == share.endpoint && known.place == share.place;
  });
  if (found == shares.end()) {
    shares.push_back(share);
  } else {
    found->ok += share.ok;
    found->failed += share.failed;
  }
}

}  // namespace

std::vector<LoadBucket> buckets_of(const LatencyHistogram& histogram) {
  std::vector<LoadBucket> buckets;
  for (std::uint32_t i = 0; i < LatencyHistogram::kBuckets; ++i) {
    if (histogram.counts()[i] > 0) buckets.push_back({.bucket = i, .count = histogram.counts()[i]});
  }
  return buckets;
}

LatencyHistogram histogram_of(const LoadBin& bin) {
  LatencyHistogram all;
  for (const LoadBucket& bucket : bin.latencies)
    all.record_many(std::min(bin.max_ns, LatencyHistogram::highest_of(bucket.bucket)),
                    bucket.count);
  return all;
}

void finish_percentiles(LoadBin& bin) {
  if (bin.latencies.empty()) return;
  const LatencyHistogram all = histogram_of(bin);
  bin.p50_ns = all.percentile(50);
  bin.p99_ns = all.percentile(99);
}

void add_bin(LoadBin& to, const LoadBin& from) {
  to.scheduled += from.scheduled;
  to.sent += from.sent;
  for (const auto& [code, count] : from.codes)
    to.codes[code] += count;
  for (const LoadShare& share : from.shares)
    add_share(to.shares, share);
  to.max_ns = std::max(to.max_ns, from.max_ns);
  to.latencies = sum_of(to.latencies, from.latencies);
}

std::vector<LoadBin> wider_bins(const std::vector<LoadBin>& bins, std::size_t together) {
  std::vector<LoadBin> wider((bins.size() + together - 1) / together);
  for (std::size_t i = 0; i < bins.size(); ++i)
    add_bin(wider[i / together], bins[i]);
  for (LoadBin& bin : wider)
    finish_percentiles(bin);
  return wider;
}

}  // namespace signalbox::tools
