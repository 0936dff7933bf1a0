// SPDX-License-Identifier: Apache-2.0
#include "lb/load_stats.hpp"

#include <algorithm>
#include <iterator>

namespace signalbox::lb {
namespace {

// What a sum has grown by since it was reported; it may have fallen for a moment.
std::uint64_t growth(std::int64_t sum, std::uint64_t& reported) {
  const auto grown = static_cast<std::uint64_t>(
      std::max<std::int64_t>(sum - static_cast<std::int64_t>(reported), 0));
  reported += grown;
  return grown;
}

// As std::erase_if, whose predicate may not change what it looks at.
template <typename Map, typename TakeLast>
void visit_and_erase(Map& map, TakeLast&& take_last) {
  for (auto entry = map.begin(); entry != map.end();)
    entry = take_last(*entry) ? map.erase(entry) : std::next(entry);
}

// Asked under the mutex through which anybody else would come to hold it.
template <typename T>
bool is_held(const std::shared_ptr<T>& counts) {
  return counts.use_count() > 1;
}

}  // namespace

void LocalityCounts::ended(const CallEnd& end) const {
  counters_.add(!end.code ? kUnsent : *end.code == 0 ? kSucceeded : kErrored, 1);
}

std::shared_ptr<const LocalityCounts> LoadCounts::locality(const LocalityName& name) {
  const std::lock_guard lock(mutex_);
  return localities_[name].counts;
}

EventCountPtr LoadCounts::drops(const std::string& category) {
  const std::lock_guard lock(mutex_);
  return drops_[category].count;
}

// What has ended is read before what has begun, or a call could end without having begun.
LocalityLoad LoadCounts::take(Locality& locality) {
  const auto sum = [&](LocalityCounts::Counter counter) {
    return locality.counts->counters_.sum(counter);
  };
  const std::int64_t succeeded = sum(LocalityCounts::kSucceeded);
  const std::int64_t errored = sum(LocalityCounts::kErrored);
  const std::int64_t unsent = sum(LocalityCounts::kUnsent);
  const std::int64_t issued = sum(LocalityCounts::kBegun) - unsent;
  LocalityLoad load;
  load.in_progress = static_cast<std::uint64_t>(issued - succeeded - errored);
  load.issued = growth(issued, locality.reported.issued);
  load.succeeded = growth(succeeded, locality.reported.succeeded);
  load.errored = growth(errored, locality.reported.errored);
  return load;
}

std::uint64_t LoadCounts::Drops::take() {
  const std::int64_t sum = count->sum(0);
  return static_cast<std::uint64_t>(sum - std::exchange(reported, sum));
}

ClusterLoad LoadCounts::take() {
  const std::lock_guard lock(mutex_);
  ClusterLoad all;
  all.total_dropped = uncategorised_.take();
  visit_and_erase(localities_, [&](auto& entry) {
    const bool held = is_held(entry.second.counts);
    const LocalityLoad load = take(entry.second);
    if (load != LocalityLoad{}) all.localities[entry.first] = load;
    return !held;  // Nor is any call in progress: each holds the counts.
  });
  visit_and_erase(drops_, [&](auto& entry) {
    const bool held = is_held(entry.second.count);
    if (const std::uint64_t dropped = entry.second.take(); dropped > 0)
      all.total_dropped += all.dropped[entry.first] = dropped;
    return !held;
  });
  return all;
}

std::shared_ptr<LoadCounts> LoadStore::of(const ClusterName& cluster,
                                          const std::string& service_name) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<LoadCounts>& counts = clusters_[{cluster, service_name}];
  if (counts == nullptr) counts = std::make_shared<LoadCounts>();
  return counts;
}

std::vector<ClusterLoad> LoadStore::take() {
  const std::lock_guard lock(mutex_);
  std::vector<ClusterLoad> loads;
  visit_and_erase(clusters_, [&](auto& entry) {
    const bool held = is_held(entry.second);
    ClusterLoad& load = loads.emplace_back(entry.second->take());
    load.cluster = entry.first.first;
    load.service_name = entry.first.second;
    return !held && std::ranges::none_of(load.localities, [](const auto& locality) {
      return locality.second.in_progress > 0;
    });
  });
  return loads;
}

}  // namespace signalbox::lb
