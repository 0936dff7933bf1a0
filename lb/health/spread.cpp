// SPDX-License-Identifier: Apache-2.0
#include "lb/health/spread.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>

#include "absl/strings/str_cat.h"

#include "lb/health/apportion.hpp"
#include "lb/health/endpoint_weights.hpp"
#include "lb/health/slow_start.hpp"
#include "lb/health/zone_split.hpp"

namespace signalbox::lb {
namespace {

using Weights = std::vector<std::uint64_t>;

// The child of random_subsetting, or the policy itself. Many clients with different subsets use all
// endpoints alike, so on average the child's rule holds for all endpoints.
LbConfigPtr inside_subset(LbConfigPtr policy) {
  while (policy != nullptr && std::holds_alternative<RandomSubsettingConfig>(*policy))
    policy = std::get<RandomSubsettingConfig>(*policy).child;
  return policy;
}

template <typename Config, typename... Others>
concept OneOf = (std::same_as<Config, Others> || ...);

// Plans have no rule for these policies. random_subsetting does not occur here, because
// inside_subset() has replaced it by its child. The others stand above the leaf cluster's own
// policy, or (weighted_target) are made by wrr_locality from its localities.
template <OneOf<CdsConfig,
                ClusterImplConfig,
                ClusterManagerConfig,
                LeafTiersConfig,
                OutlierDetectionConfig,
                OverrideHostConfig,
                PriorityConfig,
                RandomSubsettingConfig,
                TieredConfig,
                WeightedTargetConfig> Config>
CallSpread spread_of(const Config& /*config*/) {
  return CallSpread::kUnknown;
}

// Each client shuffles by weight (A113), so the calls of many clients are spread by weight. Plans
// assume PolicyOptions::weighted_shuffling, the default.
CallSpread spread_of(const PickFirstConfig& first) {
  return first.shuffle_address_list ? CallSpread::kByWeight : CallSpread::kFirst;
}

// With active_request_bias, the weights of endpoints count.
CallSpread spread_of(const LeastRequestConfig& least) {
  return least.active_request_bias.has_value() ? CallSpread::kByOwnWeight : CallSpread::kAlike;
}

template <typename Config>
CallSpread spread_of(const Config& /*config*/) {
  return Config::kSpread;
}

CallSpread rule_of(const LbConfigPtr& outer) {
  const LbConfigPtr policy = inside_subset(outer);
  if (policy == nullptr) return CallSpread::kAlike;
  return std::visit([](const auto& own) { return spread_of(own); },
                    static_cast<const LbConfig::variant&>(*policy));
}

// The policy that spreads calls by locality; null: the policy is another one.
const WrrLocalityConfig* by_locality_of(const LbConfigPtr& outer) {
  const LbConfigPtr policy = inside_subset(outer);
  return policy == nullptr ? nullptr : std::get_if<WrrLocalityConfig>(&*policy);
}

LbConfigPtr child_of(const LbConfigPtr& outer) {
  const WrrLocalityConfig* const locality = by_locality_of(outer);
  return locality == nullptr ? nullptr : locality->child;
}

Weights weights_within(CallSpread rule,
                       const std::vector<LocalityPtr>& localities,
                       const std::vector<bool>& takes) {
  Weights weights(takes.begin(), takes.end());
  if (rule == CallSpread::kFirst) {
    const auto first = std::ranges::find(weights, std::uint64_t{1});
    if (first != weights.end()) std::fill(first + 1, weights.end(), 0);
  }
  if (rule == CallSpread::kByOwnWeight) {
    auto weight = weights.begin();
    for (const LocalityPtr& locality : localities) {
      for (const Endpoint& endpoint : locality->endpoints)
        *weight++ *= endpoint.weight;
    }
  }
  if (rule != CallSpread::kByWeight) return weights;
  Endpoints all;
  all.priorities.push_back(Priority{localities});
  const auto weighed = weigh(all, WeightRule::kShare);
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] *= weighed[i].weight;
  return weights;
}

// The weight of each locality for the calls of a priority. `takers`: which of its endpoints take
// calls.
Weights weights_of(const WrrLocalityConfig& policy,
                   const std::vector<LocalityPtr>& localities,
                   const std::vector<std::vector<bool>>& takers,
                   const LocalityName& caller) {
  Weights weights;
  std::vector<ZonePlace> places;
  for (std::size_t i = 0; i < localities.size(); ++i) {
    const Locality& locality = *localities[i];
    ZonePlace place{&locality.name, locality.weight};
    for (std::size_t at = 0; at < locality.endpoints.size(); ++at) {
      if (!takers[i][at]) continue;
      ++place.fit;
      place.fit_weight += locality.endpoints[at].weight;
    }
    weights.push_back(place.fit == 0 ? 0 : locality.weight);
    places.push_back(place);
  }
  if (!policy.zone_aware) return weights;
  const ZoneSplit split = split_by_zone(places, caller, *policy.zone_aware);
  return {split.shares.begin(), split.shares.end()};
}

std::vector<CallShare> spread_by_locality(const WrrLocalityConfig& policy,
                                          const std::vector<LocalityPtr>& localities,
                                          const std::vector<bool>& takes,
                                          CallShare share,
                                          const LocalityName& caller) {
  using Offset = std::vector<bool>::difference_type;
  std::vector<std::vector<bool>> takers;
  auto at = takes.begin();
  for (const LocalityPtr& locality : localities) {
    const auto end = at + static_cast<Offset>(locality->endpoints.size());
    takers.emplace_back(at, end);
    at = end;
  }
  const auto parts = apportion(share, weights_of(policy, localities, takers, caller));
  std::vector<CallShare> shares;
  for (std::size_t i = 0; i < localities.size(); ++i) {
    const auto within = spread_calls(policy.child, {localities[i]}, takers[i], parts[i], caller);
    shares.insert(shares.end(), within.begin(), within.end());
  }
  return shares;
}

std::string zone_note(const ZoneAware& rules) {
  return absl::StrCat("zone-aware: calls stay in the caller's zone while it has ",
                      rules.force_from ? absl::StrCat("at least ",
                                                      std::max(*rules.force_from, 1U),
                                                      " endpoints (force_local_zone), or ")
                                       : "",
                      "its share of the endpoints",
                      rules.basis == ZoneBasis::kWeights ? "' weights" : "",
                      ", for callers in equal numbers in each zone");
}

// The policy's slow start; null: it has none.
const SlowStart* slow_start_of(const LbConfig& policy) {
  return std::visit(
      [](const auto& own) -> const SlowStart* {
        if constexpr (requires { own.slow_start; }) {
          return own.slow_start.has_value() ? &*own.slow_start : nullptr;
        } else {
          return nullptr;
        }
      },
      static_cast<const LbConfig::variant&>(policy));
}

// The spread_note() of a policy without children: why its real shares may differ from those of
// spread_calls(); empty: no reason is known.
std::string leaf_note(const LbConfigPtr& policy) {
  switch (rule_of(policy)) {
    case CallSpread::kByWeight:
      return std::holds_alternative<PickFirstConfig>(*policy)
                 ? "pick_first, shuffled: each client stays with one endpoint; on average over "
                   "many clients"
                 : absl::StrCat(policy_name(*policy),
                                ": by weight; what the calls' keys make of it is not known here");
    case CallSpread::kByOwnWeight:
      return absl::StrCat(
          "least_request: by weight while no calls are in flight; active_request_bias is ",
          *std::get<LeastRequestConfig>(*inside_subset(policy)).active_request_bias);
    case CallSpread::kFirst:
      return "pick_first: each client stays with the first endpoint that connects";
    case CallSpread::kByLoad:
      return "weighted_round_robin: as if all endpoints reported the same load; real shares follow "
             "their load reports";
    case CallSpread::kUnknown:
      return absl::StrCat(
          policy_name(*policy),
          ": only the policy knows how it shares out calls; shown as if to all alike");
    default:
      return "";
  }
}

}  // namespace

std::vector<CallShare> spread_calls(const LbConfigPtr& policy,
                                    const std::vector<LocalityPtr>& localities,
                                    const std::vector<bool>& takes,
                                    CallShare share,
                                    const LocalityName& caller) {
  if (const WrrLocalityConfig* const by_locality = by_locality_of(policy))
    return spread_by_locality(*by_locality, localities, takes, share, caller);
  const CallSpread rule = rule_of(policy);
  return apportion(share, weights_within(rule, localities, takes));
}

bool fails_in_panic(const LbConfigPtr& policy) {
  const WrrLocalityConfig* const by_locality = by_locality_of(policy);
  return by_locality != nullptr &&
         (by_locality->fail_traffic_on_panic || fails_in_panic(by_locality->child));
}

std::string policy_text(const LbConfigPtr& policy) {
  if (policy == nullptr) return "";
  const auto* const subset = std::get_if<RandomSubsettingConfig>(&*policy);
  const LbConfigPtr child = subset == nullptr ? child_of(policy) : LbConfigPtr(subset->child);
  const std::string name(policy_name(*policy));
  return child == nullptr ? name : absl::StrCat(name, ", ", policy_text(child));
}

std::string spread_note(const LbConfigPtr& policy) {
  if (policy != nullptr && std::holds_alternative<RandomSubsettingConfig>(*policy)) {
    const auto& subset = std::get<RandomSubsettingConfig>(*policy);
    const std::string inner = spread_note(subset.child);
    return absl::StrCat("random_subsetting: each client uses ",
                        subset.subset_size,
                        " of the endpoints; on average over many clients",
                        inner.empty() ? "" : "; ",
                        inner);
  }
  if (const WrrLocalityConfig* const by_locality = by_locality_of(policy)) {
    std::string inner = by_locality->child == nullptr ? "" : spread_note(by_locality->child);
    if (!by_locality->zone_aware) return inner;
    return absl::StrCat(zone_note(*by_locality->zone_aware), inner.empty() ? "" : "; ", inner);
  }
  std::string note = leaf_note(policy);
  const SlowStart* const slow_start = policy == nullptr ? nullptr : slow_start_of(*policy);
  if (slow_start == nullptr) return note;
  return absl::StrCat(note.empty() ? std::string(policy_name(*policy)) : note,
                      note.empty() ? ": " : "; ",
                      "slow start: an endpoint that becomes READY has ",
                      slow_start_ramp(*slow_start),
                      "; shares are those after it");
}

}  // namespace signalbox::lb
