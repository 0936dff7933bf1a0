// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/cluster_impl_picker.hpp"

#include <utility>

namespace signalbox::lb {
namespace {

constexpr std::uint64_t kMillion = 1'000'000;

class ClusterImplPicker final : public Picker {
 public:
  ClusterImplPicker(PickerPtr child, CallRulesPtr rules)
      : child_(std::move(child)), rules_(std::move(rules)) {}

  PickResult pick(const PickArgs& args) const override {
    for (std::size_t i = 0; i < rules_->drops.size(); ++i) {
      const CallRules::Drop& rule = rules_->drops[i];
      if (draw_below(args.seed, Salt::kDrop, kMillion, i) >= rule.per_million) continue;
      rule.counts.count();
      return dropped(rule.status);
    }
    return chosen(args);
  }

 private:
  static PickResult dropped(absl::Status status) {
    PickResult result;
    result.outcome = Drop{std::move(status)};
    return result;
  }

  // By itself, so that the result is made where the caller wants it: it is large.
  PickResult chosen(const PickArgs& args) const {
    const CallRules& rules = *rules_;
    __builtin_prefetch(rules.gate.get());  // Entered when all else is settled.
    PickResult result = child_->pick(args);
    const auto* complete = std::get_if<Complete>(&result.outcome);
    if (complete == nullptr) return result;
    if (const CallTracker* const load = load_of(*complete)) result.trackers.add(*load);
    if (!result.trackers.add_gate(*rules.gate))
      result.outcome = Drop{absl::InternalError("a pick names too many trackers")};
    return result;
  }

  const CallTracker* load_of(const Complete& complete) const {
    if (rules_->elsewhere == nullptr) return nullptr;
    if (complete.endpoint != nullptr && complete.endpoint->locality != nullptr) {
      const auto found = rules_->localities.find(complete.endpoint->locality->name);
      if (found != rules_->localities.end()) return found->second.get();
    }
    return rules_->elsewhere.get();
  }

  PickerPtr child_;
  CallRulesPtr rules_;
};

}  // namespace

PickerPtr make_cluster_impl_picker(PickerPtr child, CallRulesPtr rules) {
  return std::make_shared<const ClusterImplPicker>(std::move(child), std::move(rules));
}

}  // namespace signalbox::lb
