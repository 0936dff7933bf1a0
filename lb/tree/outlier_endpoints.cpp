// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/outlier_endpoints.hpp"

#include <algorithm>
#include <utility>

#include "lb/shrink.hpp"
#include "lb/tree/child_set.hpp"

namespace signalbox::lb {
namespace {

absl::Status sentence(DetectionMethod why) {
  return absl::UnavailableError(why == DetectionMethod::kSuccessRate
                                    ? "ejected by outlier detection (success rate)"
                                    : "ejected by outlier detection (failure percentage)");
}

}  // namespace

// --- the list -----------------------------------------------------------------

void OutlierEndpoints::update(const EndpointsPtr& endpoints) {
  if (shares_localities(std::exchange(list_, endpoints), endpoints)) return;
  ++lists_;
  order_.clear();
  if (endpoints != nullptr) {
    for (const Priority& priority : endpoints->priorities) {
      for (const auto* part : {&priority.localities, &priority.degraded}) {
        for (const LocalityPtr& locality : *part) {
          for (const Endpoint& endpoint : locality->endpoints)
            take_in(endpoint);
        }
      }
    }
  }
  order_.shrink_to_fit();
  forget_the_unnamed();
}

void OutlierEndpoints::take_in(const Endpoint& endpoint) {
  std::vector<Address> key = endpoint.addresses;
  std::ranges::sort(key);
  key.erase(std::unique(key.begin(), key.end()), key.end());
  std::unique_ptr<Judged>& slot = judged_[key];
  if (slot == nullptr) {
    slot = std::make_unique<Judged>();
    slot->addresses = std::move(key);
    slot->calls = make_tracked<CallResultCounter>(retirement_);
    trackers_changed_ = true;
  }
  // If the list has the endpoint twice, only its first place counts.
  if (std::exchange(slot->named_in, lists_) == lists_) return;
  order_.push_back(slot.get());
}

void OutlierEndpoints::forget_the_unnamed() {
  absl::erase_if(judged_, [&](const auto& entry) {
    const Judged& judged = *entry.second;
    if (judged.named_in == lists_) return false;
    trackers_changed_ = true;
    if (judged.ejection) health_changed_ = true;
    return true;
  });
  shrink_if_sparse(judged_);
}

// --- calls and ejections ------------------------------------------------------

std::vector<CallTally> OutlierEndpoints::tally() {
  std::vector<CallTally> tallies;
  tallies.reserve(order_.size());
  for (Judged* judged : order_) {
    CallTally& tally = tallies.emplace_back();
    tally.ejected = judged->ejection.has_value();
    const std::uint64_t successes = judged->calls->successes();
    const std::uint64_t failures = judged->calls->failures();
    tally.successes = successes - std::exchange(judged->successes, successes);
    tally.failures = failures - std::exchange(judged->failures, failures);
  }
  return tallies;
}

void OutlierEndpoints::eject(std::size_t endpoint, Instant now, DetectionMethod why) {
  Judged& judged = *order_[endpoint];
  judged.ejection = Ejection{now, why};
  ++judged.multiplier;
  health_changed_ = true;
}

void OutlierEndpoints::age(const OutlierDetection& settings, Instant now) {
  for (Judged* judged : order_) {
    if (!judged->ejection) {
      if (judged->multiplier > 0) --judged->multiplier;
    } else if (now - judged->ejection->since > ejection_time(settings, judged->multiplier)) {
      judged->ejection.reset();
      health_changed_ = true;
    }
  }
}

// --- tables -------------------------------------------------------------------

std::shared_ptr<const TrackEndpoints::Table> OutlierEndpoints::trackers() const {
  if (order_.empty()) return nullptr;
  auto table = std::make_shared<TrackEndpoints::Table>();
  for (const Judged* judged : order_) {
    for (const Address& address : judged->addresses)
      table->emplace(address, judged->calls);
  }
  return table;
}

std::vector<EjectedEndpoint> OutlierEndpoints::ejected(const OutlierDetection& settings) const {
  std::vector<EjectedEndpoint> ejected;
  for (const Judged* judged : order_) {
    if (!judged->ejection) continue;
    const auto& [since, why] = *judged->ejection;
    ejected.push_back({judged->addresses.front(),
                       since,
                       since + ejection_time(settings, judged->multiplier),
                       sentence(why)});
  }
  return ejected;
}

std::shared_ptr<const UnhealthyEndpoints> OutlierEndpoints::unhealthy() const {
  auto table = std::make_shared<UnhealthyEndpoints>();
  for (const Judged* judged : order_) {
    if (!judged->ejection) continue;
    for (const Address& address : judged->addresses)
      table->emplace(address, sentence(judged->ejection->why));
  }
  if (table->empty()) return nullptr;
  return table;
}

}  // namespace signalbox::lb
