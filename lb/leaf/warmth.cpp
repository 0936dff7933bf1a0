// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/warmth.hpp"

#include <algorithm>
#include <chrono>
#include <functional>

#include "absl/strings/str_cat.h"

#include "lb/health/slow_start.hpp"
#include "lb/trace.hpp"

namespace signalbox::lb {
namespace {

constexpr std::size_t kMostTold = 20;

}  // namespace

Warmth::Warmth(const std::optional<SlowStart>& rules, const EndpointSet& endpoints, Instant now) {
  if (!is_possible(rules, endpoints, now)) return;
  rules_ = *rules;
  made_ = now;
  const std::size_t size = endpoints.count(ConnectivityState::kReady);
  factors_.reserve(size);
  ages_.reserve(size);
  for (std::size_t at = 0; at < endpoints.size(); ++at) {
    const EndpointSet::Member& member = endpoints[at];
    if (member.connection == nullptr || !member.counts) continue;
    ages_.push_back(now - member.ready_since);
    factors_.push_back(slow_start_factor(rules_, ages_.back()));
  }
  if (std::ranges::adjacent_find(factors_, std::not_equal_to()) != factors_.end()) return;
  factors_.clear();
  ages_.clear();
}

bool Warmth::is_of(const EndpointSet& endpoints) const {
  if (!is_uneven() || ages_.size() != endpoints.count(ConnectivityState::kReady)) return false;
  std::size_t next = 0;
  for (std::size_t at = 0; at < endpoints.size(); ++at) {
    const EndpointSet::Member& member = endpoints[at];
    if (member.connection == nullptr || !member.counts) continue;
    if (ages_[next++] != made_ - member.ready_since) return false;
  }
  return true;
}

bool Warmth::is_possible(const std::optional<SlowStart>& rules,
                         const EndpointSet& endpoints,
                         Instant now) {
  return rules.has_value() && endpoints.count(ConnectivityState::kReady) > 0 &&
         now - endpoints.last_ready() < rules->window;
}

std::size_t Warmth::count(const std::optional<SlowStart>& rules,
                          const EndpointSet& endpoints,
                          Instant now) {
  if (!is_possible(rules, endpoints, now)) return 0;
  std::size_t found = 0;
  for (std::size_t at = 0; at < endpoints.size(); ++at) {
    const EndpointSet::Member& member = endpoints[at];
    if (member.connection == nullptr || !member.counts) continue;
    if (now - member.ready_since < rules->window) ++found;
  }
  return found;
}

std::string Warmth::part_of(std::size_t endpoint) const {
  if (factors_.empty() || ages_[endpoint] >= rules_.window) return "";
  return absl::StrCat(factor_text(factors_[endpoint]), " of its weight");
}

void Warmth::tell(absl::string_view policy, const ReadyEndpoints& ready, PickTrace& trace) const {
  std::size_t told = 0;
  std::size_t left = 0;
  for (std::size_t at = 0; at < factors_.size(); ++at) {
    if (ages_[at] >= rules_.window) continue;
    if (told == kMostTold) {
      ++left;
      continue;
    }
    ++told;
    trace.tell({std::string(policy),
                shown(ready[at]) + " is in slow start",
                absl::StrCat(part_of(at),
                             ", READY for ",
                             shown(std::chrono::round<std::chrono::milliseconds>(ages_[at])),
                             " of ",
                             shown(rules_.window)),
                "CDS"});
  }
  if (left > 0)
    trace.tell({std::string(policy), absl::StrCat(left, " others are in slow start"), "", "CDS"});
}

}  // namespace signalbox::lb
