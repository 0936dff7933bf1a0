// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/tiered_picker.hpp"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/policy/leaf_tiers_picker.hpp"
#include "lb/trace.hpp"
#include "messages/invariant.hpp"

namespace signalbox::lb {
namespace {

class TieredPicker final : public Picker {
 public:
  TieredPicker(ClusterName cluster, TierTablePtr table, std::vector<PickerPtr> leaves)
      : table_(std::move(table)), cluster_(std::move(cluster)) {
    leaves_.reserve(leaves.size());
    for (PickerPtr& leaf : leaves)
      leaves_.emplace_back(std::move(leaf));
  }

  [[gnu::hot]] PickResult pick(const PickArgs& args) const override {
    return decide(args, Silent{});
  }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    return decide(args, Telling{trace});
  }

 private:
  template <typename Sink>
  [[gnu::always_inline]] PickResult decide(const PickArgs& args, const Sink& sink) const {
    const std::uint64_t drawn = draw_below(args.seed, Salt::kTier, 100);
    const TierShare& share = table_->at(drawn);
    sink.tell([&] {
      return PickStep{"tiered", name_of(share), why(drawn), "CDS " + cluster_.str()};
    });
    return leaves_[share.leaf].ask(with_tier(args, share), sink);
  }

  std::string why(std::uint64_t drawn) const {
    std::string why = absl::StrCat("drew ", drawn + 1, " of 100; loads:");
    const char* separator = " ";
    for (const TierShare& one : table_->shares()) {
      absl::StrAppend(&why, separator, name_of(one), " ", one.percent, " %");
      separator = "; ";
    }
    return why;
  }

  static PickArgs with_tier(const PickArgs& args, const TierShare& share) {
    PickArgs below = args;
    below.tier = share.tier;
    return below;
  }

  std::string name_of(const TierShare& share) const {
    return absl::StrCat(table_->name_of(share).str(), " ", to_string(share.tier));
  }

  const TierTablePtr table_;
  std::vector<ChildPicker> leaves_;
  const ClusterName cluster_;  ///< For explanations: behind what picks read.
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

PickerPtr make_tiered_picker(ClusterName cluster,
                             TierTablePtr table,
                             std::vector<PickerPtr> leaves) {
  return std::make_shared<const TieredPicker>(
      std::move(cluster), std::move(table), std::move(leaves));
}

}  // namespace signalbox::lb
