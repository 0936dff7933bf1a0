// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/leaf_tiers_picker.hpp"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

#include "lb/trace.hpp"
#include "messages/counting/striped.hpp"
#include "messages/invariant.hpp"

namespace signalbox::lb {
namespace {

Tier tier_at(std::size_t place) {
  return {static_cast<std::uint32_t>(place / kTiersOfPriority),
          static_cast<Tier::Hosts>(place % kTiersOfPriority)};
}

class alignas(kCacheLine) LeafTiersPicker final : public Picker {
 public:
  explicit LeafTiersPicker(const std::vector<TierPicker>& tiers) {
    tiers_.reserve(tiers.size());
    for (const TierPicker& tier : tiers)
      tiers_.push_back(
          {tier.picker == nullptr ? ChildPicker() : ChildPicker(tier.picker), tier.is_started});
    first_ = first_of(0, tiers_.size());
    SIGNALBOX_INVARIANT(first_ < tiers_.size(), "a picker of tiers has one with endpoints");
  }

  [[gnu::hot]] PickResult pick(const PickArgs& args) const override {
    return decide(args, Silent{});
  }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    return decide(args, Telling{trace});
  }

 private:
  struct Slot {
    ChildPicker picker;  // Empty: the tier has no endpoints.
    bool is_started = false;
  };

  template <typename Sink>
  [[gnu::always_inline]] PickResult decide(const PickArgs& args, const Sink& sink) const {
    const std::size_t place = place_for(args);
    sink.tell(
        [&] { return PickStep{"leaf_tiers", to_string(tier_at(place)), why(args, place), "EDS"}; });
    return tiers_[place].picker.ask(args, sink);
  }

  std::string why(const PickArgs& args, std::size_t place) const {
    std::string why = "as tiered chose";
    if (!args.tier.has_value()) {
      why = "the call is for no tier: the first";
    } else if (place != place_of(*args.tier)) {
      why = absl::StrCat(to_string(*args.tier), " has no endpoints: the nearest");
    }
    if (!tiers_[place].is_started) why += "; it is not started yet, the call waits";
    return why;
  }

  bool has(std::size_t place) const { return tiers_[place].picker.get() != nullptr; }

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

  // The first tier from `begin` up to `end` that is started; else the first that has endpoints;
  // else `end`.
  std::size_t first_of(std::size_t begin, std::size_t end) const {
    std::size_t found = end;
    for (std::size_t at = end; at-- > begin;) {
      if (has(at) && (tiers_[at].is_started || found == end || !tiers_[found].is_started))
        found = at;
    }
    return found;
  }

  std::size_t first_ = 0;
  // One priority, the usual number, is stored in place. Its first tier, to which most calls go, is
  // on the picker's first cache line.
  absl::InlinedVector<Slot, kTiersOfPriority> tiers_;
};

}  // namespace

std::string to_string(const Tier& tier) {
  std::string priority = absl::StrCat("priority ", tier.priority);
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

PickerPtr make_leaf_tiers_picker(const std::vector<TierPicker>& tiers) {
  return std::make_shared<const LeafTiersPicker>(tiers);
}

}  // namespace signalbox::lb
