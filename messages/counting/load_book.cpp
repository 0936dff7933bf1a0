// SPDX-License-Identifier: Apache-2.0
#include "messages/counting/load_book.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace signalbox {
namespace {

std::uint64_t grown(std::int64_t now, std::int64_t before) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(now - before, 0));
}

// Whether `held`, an element of a map, is the only owner of its object. If so, a copy of `held` is
// made and dropped: this acquires the reference count, which the last other owner released, so all
// counts of that owner are seen. A fence would do the same, but ThreadSanitizer does not know
// fences.
template <typename T>
bool is_held_here_alone(const std::shared_ptr<T>& held) {
  if (held.use_count() != 1) return false;
  std::shared_ptr<T>(held).reset();
  return true;
}

// A load with metric values is not zero, even if it has no calls: a value and its call may be in
// two different readings.
bool is_zero(const LocalityLoad& load) {
  return load.issued == 0 && load.succeeded == 0 && load.failed == 0 && load.in_progress == 0 &&
         load.named.empty() && load.cpu_utilization.calls == 0 && load.mem_utilization.calls == 0 &&
         load.application_utilization.calls == 0;
}

bool is_zero(const ClusterLoad& load) {
  return load.localities.empty() && load.drops.empty() && load.breaker_drops == 0;
}

// If too many counters of `map` are unused, drops those that owe nothing; if too many are left,
// drops one more. `owes`: whether a counter has unreported counts. `added`: the new counter, which
// stays.
template <typename Map, typename IsUnused, typename Owes>
void bound_unused(Map& map,
                  const typename Map::key_type& added,
                  std::size_t most,
                  const IsUnused& is_unused,
                  const Owes& owes) {
  if (map.size() <= most) return;
  const auto may_go = [&](const auto& entry) {
    return entry.first != added && is_unused(entry.second);
  };
  if (std::cmp_less_equal(std::ranges::count_if(map, may_go), most)) return;
  std::erase_if(map, [&](const auto& entry) { return may_go(entry) && !owes(entry.second); });
  if (std::cmp_less_equal(std::ranges::count_if(map, may_go), most)) return;
  map.erase(std::ranges::find_if(map, may_go));
}

}  // namespace

// --- ClusterCounts -----------------------------------------------------------

LocalityCountsPtr ClusterCounts::locality(const LocalityName& name) const {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = localities_.try_emplace(name);
  if (is_new) {
    const auto is_unused = [](const Locality& one) { return is_held_here_alone(one.counts); };
    bound_unused(localities_, name, kMostUnused, is_unused, owes_calls);
  }
  return found->second.counts;
}

EventCountPtr ClusterCounts::drops(const std::string& category) const {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = drops_.try_emplace(category);
  if (is_new) {
    const auto is_unused = [](const Drops& one) { return is_held_here_alone(one.count); };
    bound_unused(drops_, category, kMostUnused, is_unused, owes_drops);
  }
  return found->second.count;
}

bool ClusterCounts::owes_calls(const Locality& locality) {
  const LocalityTotals now = locality.counts->totals();
  const LocalityTotals& reported = locality.reported;
  return now.issued != reported.issued || now.succeeded != reported.succeeded ||
         now.failed != reported.failed;
}

bool ClusterCounts::owes_drops(const Drops& drops) {
  return drops.count->sum(0) != drops.reported;
}

bool ClusterCounts::is_owed() const {
  const std::lock_guard lock(mutex_);
  return breaker_drops_->sum(0) != breaker_reported_ ||
         std::ranges::any_of(localities_, owes_calls, &decltype(localities_)::value_type::second) ||
         std::ranges::any_of(drops_, owes_drops, &decltype(drops_)::value_type::second);
}

LocalityLoad ClusterCounts::unreported(const LocalityName& name,
                                       Locality& locality,
                                       LoadReading& reading) const {
  locality.was_unused = is_held_here_alone(locality.counts);
  locality.seen = locality.counts->totals();
  LocalityTotals& now = locality.seen;
  const LocalityTotals& before = locality.reported;
  LocalityLoad load{.locality = name,
                    .issued = grown(now.issued, before.issued),
                    .succeeded = grown(now.succeeded, before.succeeded),
                    .failed = grown(now.failed, before.failed),
                    .in_progress = grown(now.issued, now.succeeded + now.failed)};
  load.cpu_utilization = take_unreported(now.utilizations[0], before.utilizations[0]);
  load.mem_utilization = take_unreported(now.utilizations[1], before.utilizations[1]);
  load.application_utilization = take_unreported(now.utilizations[2], before.utilizations[2]);
  for (auto& [metric, sum] : now.named) {
    const auto known = before.named.find(metric);
    const MetricSum fresh =
        take_unreported(sum, known == before.named.end() ? MetricSum() : known->second);
    if (fresh.calls > 0) load.named.emplace(metric, fresh);
  }
  reading.lost_values += grown(now.lost_values, before.lost_values);
  return load;
}

ClusterLoad ClusterCounts::read(LoadReading& reading) const {
  const std::lock_guard lock(mutex_);
  ClusterLoad load;
  for (auto& [name, locality] : localities_) {
    LocalityLoad one = unreported(name, locality, reading);
    if (!is_zero(one)) load.localities.push_back(std::move(one));
  }
  for (auto& [category, drops] : drops_) {
    drops.was_unused = is_held_here_alone(drops.count);
    drops.seen = drops.count->sum(0);
    if (const auto fresh = grown(drops.seen, drops.reported)) load.drops.emplace(category, fresh);
  }
  breaker_seen_ = breaker_drops_->sum(0);
  load.breaker_drops = grown(breaker_seen_, breaker_reported_);
  return load;
}

void ClusterCounts::settle() const {
  const std::lock_guard lock(mutex_);
  for (auto& [name, locality] : localities_)
    locality.reported = locality.seen;
  for (auto& [category, drops] : drops_)
    drops.reported = drops.seen;
  breaker_reported_ = breaker_seen_;
  // A counter that was unused at the reading, and is unused now, is dropped. If it was taken, used
  // and released in between, it has counts after the reading, and stays.
  std::erase_if(localities_, [](const auto& entry) {
    return entry.second.was_unused && is_held_here_alone(entry.second.counts) &&
           !owes_calls(entry.second);
  });
  std::erase_if(drops_, [](const auto& entry) {
    return entry.second.was_unused && is_held_here_alone(entry.second.count) &&
           !owes_drops(entry.second);
  });
}

bool ClusterCounts::is_held() const {
  const std::lock_guard lock(mutex_);
  const bool is_called = std::ranges::any_of(
      localities_, [](const auto& entry) { return !is_held_here_alone(entry.second.counts); });
  const bool drops = std::ranges::any_of(
      drops_, [](const auto& entry) { return !is_held_here_alone(entry.second.count); });
  return is_called || drops || !is_held_here_alone(breaker_drops_);
}

// --- LoadBook ----------------------------------------------------------------

void LoadBook::wake_by(Waker waker) {
  const std::lock_guard lock(mutex_);
  waker_ = std::move(waker);
}

ClusterCountsPtr LoadBook::open(ServerId id,
                                const ClusterName& cluster,
                                const std::string& service,
                                Instant now) {
  if (!servers_.contains(id)) return nullptr;
  ClusterCountsPtr counts;
  Waker wake;
  {
    const std::lock_guard lock(mutex_);
    Server& server = by_server_[id];
    const auto [found, is_new] = server.clusters.try_emplace({cluster, service});
    Entry& entry = found->second;
    if (is_new) entry = {std::make_shared<const ClusterCounts>(), now};
    if (is_unused(entry)) wake = waker_;
    counts = entry.counts;
    if (is_new) bound_unused(server);
  }
  if (wake) wake(id);
  return counts;
}

LoadReading LoadBook::read(ServerId id, const LoadSelection& selection, Instant now) {
  const std::lock_guard lock(mutex_);
  Server& server = by_server_[id];
  LoadReading reading{.number = ++readings_, .unknown = selection.clusters};
  server.reading = reading.number;
  server.read_at = now;
  for (auto at = server.clusters.begin(); at != server.clusters.end();) {
    const auto& [cluster, service] = at->first;
    Entry& entry = at->second;
    entry.was_unused = is_unused(entry);
    reading.is_in_use = reading.is_in_use || !entry.was_unused;
    entry.is_in_reading = selection.all || selection.clusters.contains(cluster.str());
    reading.unknown.erase(cluster.str());
    if (!entry.is_in_reading && entry.was_unused) {
      at = server.clusters.erase(at);
      continue;
    }
    if (entry.is_in_reading) {
      ClusterLoad load = entry.counts->read(reading);
      load.cluster = cluster;
      load.service = service;
      load.interval = now - entry.since;
      if (!is_zero(load)) reading.clusters.push_back(std::move(load));
    }
    ++at;
  }
  return reading;
}

bool LoadBook::is_in_use(ServerId id) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_server_.find(id);
  if (found == by_server_.end()) return false;
  return std::ranges::any_of(found->second.clusters,
                             [](const auto& entry) { return !is_unused(entry.second); });
}

bool LoadBook::is_owed(ServerId id) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_server_.find(id);
  if (found == by_server_.end()) return false;
  return std::ranges::any_of(found->second.clusters,
                             [](const auto& entry) { return entry.second.counts->is_owed(); });
}

void LoadBook::settle(ServerId id, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = by_server_.find(id);
  if (found == by_server_.end() || found->second.reading != number) return;
  Server& server = found->second;
  for (auto at = server.clusters.begin(); at != server.clusters.end();) {
    Entry& entry = at->second;
    const bool is_settled = std::exchange(entry.is_in_reading, false);
    if (is_settled) {
      entry.counts->settle();
      entry.since = server.read_at;
    }
    const bool is_over =
        is_settled && entry.was_unused && is_unused(entry) && !entry.counts->is_owed();
    at = is_over ? server.clusters.erase(at) : std::next(at);
  }
}

std::size_t LoadBook::size() const {
  const std::lock_guard lock(mutex_);
  std::size_t size = 0;
  for (const auto& [id, server] : by_server_)
    size += server.clusters.size();
  return size;
}

// A call in flight holds the counts of a locality, and a picker holds the counters of drops, but
// neither holds the ClusterCounts. So a cluster is unused only if none of these is held.
bool LoadBook::is_unused(const Entry& entry) {
  return is_held_here_alone(entry.counts) && !entry.counts->is_held();
}

// Drops an unused cluster, if there are too many of them: first one without unreported counts, and
// of these the one that was reported least recently.
void LoadBook::bound_unused(Server& server) {
  if (server.clusters.size() <= kMostUnused) return;
  std::size_t unused = 0;
  auto first = server.clusters.end();
  std::pair<bool, Instant> rank_of_first;
  for (auto at = server.clusters.begin(); at != server.clusters.end(); ++at) {
    if (!is_unused(at->second)) continue;
    ++unused;
    const std::pair<bool, Instant> rank(at->second.counts->is_owed(), at->second.since);
    if (first != server.clusters.end() && rank >= rank_of_first) continue;
    first = at;
    rank_of_first = rank;
  }
  if (unused > kMostUnused) server.clusters.erase(first);
}

}  // namespace signalbox
