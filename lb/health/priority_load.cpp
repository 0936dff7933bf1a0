// SPDX-License-Identifier: Apache-2.0
#include "lb/health/priority_load.hpp"

#include <algorithm>
#include <utility>

namespace signalbox::lb {
namespace {

__extension__ using Wide = unsigned __int128;

struct Scores {
  std::vector<std::uint32_t> healthy;
  std::vector<std::uint32_t> degraded;
  std::uint32_t total = 0;  // The sum of all scores, at most 100.
};

Scores scores_of(std::span<const PriorityHealth> priorities) {
  Scores scores;
  std::uint64_t sum = 0;
  for (const PriorityHealth& at : priorities) {
    scores.healthy.push_back(health_score(at.healthy, at.total, at.overprovisioning_factor));
    scores.degraded.push_back(health_score(at.degraded, at.total, at.overprovisioning_factor));
    sum += scores.healthy.back() + scores.degraded.back();
  }
  scores.total = static_cast<std::uint32_t>(std::min<std::uint64_t>(100, sum));
  return scores;
}

using ShareMember = std::uint32_t PriorityLoad::*;

// Gives each priority its load, in proportion to its score, and subtracts the load from `left`.
void distribute(const std::vector<std::uint32_t>& scores,
                std::uint32_t total,
                ShareMember share,
                std::vector<PriorityLoad>& loads,
                std::uint32_t& left) {
  for (std::size_t i = 0; i < scores.size(); ++i) {
    loads[i].*share = std::min(left, scores[i] * 100 / total);
    left -= loads[i].*share;
  }
}

// Gives what rounding has left over to the first healthy priority, else to the first degraded one.
void give_rest(const Scores& scores, std::uint32_t left, std::vector<PriorityLoad>& loads) {
  const auto is_some = [](std::uint32_t score) { return score > 0; };
  const auto healthy = std::ranges::find_if(scores.healthy, is_some);
  if (healthy != scores.healthy.end()) {
    loads[static_cast<std::size_t>(healthy - scores.healthy.begin())].healthy += left;
    return;
  }
  const auto degraded = std::ranges::find_if(scores.degraded, is_some);
  loads[static_cast<std::size_t>(degraded - scores.degraded.begin())].degraded += left;
}

HostNumbers numbers_of(const PriorityHealth& at) {
  return at.numbers.value_or(HostNumbers{at.healthy + at.degraded, at.total});
}

// Whether less than `threshold` percent of the priority's hosts are healthy or degraded. True also
// without hosts. The percentage is not rounded: a third of the hosts is more than 33 %.
bool is_in_panic(const PriorityHealth& at, std::uint32_t threshold) {
  const auto [fit, total] = numbers_of(at);
  return total == 0 || Wide{fit} * 100 < Wide{total} * threshold;
}

// All calls go to the first priority with a healthy host; if there is none, to the first with a
// DEGRADED host (ENV-30).
std::vector<PriorityLoad> all_to_the_first(std::span<const PriorityHealth> priorities) {
  std::vector<PriorityLoad> loads(priorities.size());
  using Number = std::uint64_t PriorityHealth::*;
  for (const auto& [number, share] :
       {std::pair<Number, ShareMember>{&PriorityHealth::healthy, &PriorityLoad::healthy},
        std::pair<Number, ShareMember>{&PriorityHealth::degraded, &PriorityLoad::degraded}}) {
    const auto is_some = [number = number](const PriorityHealth& at) { return at.*number > 0; };
    const auto first = std::ranges::find_if(priorities, is_some);
    if (first == priorities.end()) continue;
    loads[static_cast<std::size_t>(first - priorities.begin())].*share = 100;
    break;
  }
  return loads;
}

std::vector<PriorityLoad> loads_by_hosts(std::span<const PriorityHealth> priorities) {
  std::vector<PriorityLoad> loads(priorities.size());
  Wide hosts = 0;
  for (const PriorityHealth& at : priorities)
    hosts += numbers_of(at).total;
  if (hosts == 0) return loads;
  std::uint32_t left = 100;
  PriorityLoad* first = nullptr;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const std::uint64_t here = numbers_of(priorities[i]).total;
    loads[i] = {static_cast<std::uint32_t>(Wide{here} * 100 / hosts), 0, true};
    left -= loads[i].healthy;
    if (first == nullptr && here > 0) first = &loads[i];
  }
  first->healthy += left;
  return loads;
}

}  // namespace

std::uint32_t health_score(std::uint64_t fit, std::uint64_t total, std::uint32_t factor) {
  if (total == 0) return 0;
  return static_cast<std::uint32_t>(std::min<Wide>(100, Wide{factor} * fit / total));
}

std::vector<PriorityLoad> priority_loads(std::span<const PriorityHealth> priorities,
                                         std::uint32_t panic_threshold) {
  const Scores scores = scores_of(priorities);
  if (scores.total == 0) {
    if (panic_threshold > 0) return loads_by_hosts(priorities);
    return all_to_the_first(priorities);
  }
  std::vector<PriorityLoad> loads(priorities.size());
  std::uint32_t left = 100;
  distribute(scores.healthy, scores.total, &PriorityLoad::healthy, loads, left);
  distribute(scores.degraded, scores.total, &PriorityLoad::degraded, loads, left);
  give_rest(scores, left, loads);
  if (panic_threshold == 0 || scores.total == 100) return loads;
  for (std::size_t i = 0; i < loads.size(); ++i)
    loads[i].panic = is_in_panic(priorities[i], panic_threshold);
  return loads;
}

}  // namespace signalbox::lb
