// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/leaf_tiers_picker.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "messages/invariant.hpp"

namespace signalbox::lb {
namespace {

Tier tier_at(std::size_t place) {
  return {static_cast<std::uint32_t>(place / kTiersOfPriority),
          static_cast<Tier::Hosts>(place % kTiersOfPriority)};
}

class LeafTiersPicker final : public Picker {
 public:
  explicit LeafTiersPicker(std::vector<TierPicker> tiers)
      : tiers_(std::move(tiers)), first_(first_of(0, tiers_.size())) {
    SIGNALBOX_INVARIANT(first_ < tiers_.size(), "a picker of tiers has one with endpoints");
  }

  PickResult pick(const PickArgs& args) const override {
    return tiers_[place_for(args)].picker->pick(args);
  }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    const std::size_t place = place_for(args);
    std::string why = "as tiered chose";
    if (!args.tier.has_value()) {
      why = "the call is for no tier: the first";
    } else if (place != place_of(*args.tier)) {
      why = absl::StrCat(to_string(*args.tier), " has no endpoints: the nearest");
    }
    if (!tiers_[place].is_started) why += "; it is not started yet, the call waits";
    trace.tell({"leaf_tiers", to_string(tier_at(place)), std::move(why), ""});
    return tiers_[place].picker->explain(args, trace);
  }

 private:
  bool has(std::size_t place) const { return tiers_[place].picker != nullptr; }

  std::size_t place_for(const PickArgs& args) const {
    if (!args.tier.has_value()) return first_;
    const std::size_t place = place_of(*args.tier);
    if (place < tiers_.size() && has(place)) return place;
    const std::size_t begin = kTiersOfPriority * args.tier->priority;
    if (begin >= tiers_.size()) return first_;
    const std::size_t end = begin + kTiersOfPriority;
    const std::size_t near = first_of(begin, end);
    return near < end ? near : first_;
  }

  // The first that is started, else that has endpoints, else `end`.
  std::size_t first_of(std::size_t begin, std::size_t end) const {
    std::size_t found = end;
    for (std::size_t at = end; at-- > begin;) {
      if (has(at) && (tiers_[at].is_started || found == end || !tiers_[found].is_started))
        found = at;
    }
    return found;
  }

  std::vector<TierPicker> tiers_;
  std::size_t first_;
};

}  // namespace

std::string to_string(const Tier& tier) {
  const std::string priority = absl::StrCat("priority ", tier.priority);
  switch (tier.hosts) {
    case Tier::Hosts::kHealthy:
      break;
    case Tier::Hosts::kDegraded:
      return priority + ", degraded endpoints";
    case Tier::Hosts::kAll:
      return priority + ", all endpoints (panic)";
  }
  return priority;
}

PickerPtr make_leaf_tiers_picker(std::vector<TierPicker> tiers) {
  return std::make_shared<const LeafTiersPicker>(std::move(tiers));
}

}  // namespace signalbox::lb
