// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/tiered_picker.hpp"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/policy/leaf_tiers_picker.hpp"
#include "messages/invariant.hpp"

namespace signalbox::lb {
namespace {

class TieredPicker final : public Picker {
 public:
  TieredPicker(TierTablePtr table, std::vector<PickerPtr> leaves)
      : table_(std::move(table)), leaves_(std::move(leaves)) {}

  PickResult pick(const PickArgs& args) const override {
    const TierShare& share = table_->at(draw_of(args));
    return leaves_[share.leaf]->pick(with_tier(args, share));
  }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    const std::uint64_t drawn = draw_of(args);
    const TierShare& share = table_->at(drawn);
    std::string why = absl::StrCat("drew ", drawn + 1, " of 100; loads:");
    const char* separator = " ";
    for (const TierShare& one : table_->shares()) {
      absl::StrAppend(&why, separator, name_of(one), " ", one.percent, " %");
      separator = "; ";
    }
    trace.tell({"tiered", name_of(share), std::move(why), ""});
    return leaves_[share.leaf]->explain(with_tier(args, share), trace);
  }

 private:
  static std::uint64_t draw_of(const PickArgs& args) {
    return draw_below(args.seed, Salt::kTier, 100);
  }

  static PickArgs with_tier(const PickArgs& args, const TierShare& share) {
    PickArgs below = args;
    below.tier = share.tier;
    return below;
  }

  std::string name_of(const TierShare& share) const {
    return absl::StrCat(table_->name_of(share).str(), " ", to_string(share.tier));
  }

  TierTablePtr table_;
  std::vector<PickerPtr> leaves_;
};

}  // namespace

TierTable::TierTable(std::vector<TierShare> shares, std::vector<ClusterName> leaves)
    : shares_(std::move(shares)), leaves_(std::move(leaves)) {
  std::size_t draw = 0;
  for (std::size_t at = 0; at < shares_.size(); ++at) {
    for (std::uint32_t percent = 0; percent < shares_[at].percent; ++percent) {
      SIGNALBOX_INVARIANT(draw < by_draw_.size(), "shares are 100 % together");
      by_draw_[draw++] = static_cast<std::uint8_t>(at);
    }
  }
  SIGNALBOX_INVARIANT(draw == by_draw_.size(), "shares are 100 % together");
}

PickerPtr make_tiered_picker(TierTablePtr table, std::vector<PickerPtr> leaves) {
  return std::make_shared<const TieredPicker>(std::move(table), std::move(leaves));
}

}  // namespace signalbox::lb
