// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/cluster_impl_picker.hpp"

#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/trace.hpp"

namespace signalbox::lb {
namespace {

constexpr std::uint64_t kAllDraws = 1'000'000;
constexpr absl::string_view kClusterImpl = "cluster_impl";

// A pick reads all members: they are one cache line.
class alignas(kCacheLine) ClusterImplPicker final : public Picker {
 public:
  ClusterImplPicker(PickerPtr child, CallRulesPtr rules, LocalityLoadsPtr loads)
      : child_(std::move(child)), rules_(std::move(rules)), loads_(std::move(loads)) {}

  const SessionHint* session_hint() const override { return child_.session_hint(); }

  [[gnu::hot]] PickResult pick(const PickArgs& args) const override {
    return decide(args, Silent{});
  }

  // Removes the trackers from the result: an explained call does not run, so nothing must count it.
  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    TimedTrace own = cluster_trace(trace, rules_->cluster, rules_->service);
    PickResult result = decide(args, Telling{own});
    result.trackers = {};
    return result;
  }

 private:
  template <typename Sink>
  [[gnu::always_inline]] PickResult decide(const PickArgs& args, const Sink& sink) const {
    for (std::size_t i = 0; i < rules_->drops.size(); ++i) {
      const CallRules::Drop& rule = rules_->drops[i];
      const std::uint64_t drawn = draw_below(args.seed, Salt::kDrop, kAllDraws, i);
      const bool drops = drawn < rule.per_million;
      sink.tell([&] {
        return PickStep{
            std::string(kClusterImpl),
            absl::StrCat(drops ? "dropped" : "not dropped", " by category \"", rule.category, "\""),
            absl::StrCat(shown_draw(drawn, kAllDraws), "; it drops below ", rule.per_million),
            "EDS"};
      });
      if (!drops) continue;
      sink.leave([&] {
        if (rule.count != nullptr) rule.count->add(0, 1);
        if (rule.reported != nullptr) rule.reported->add(0, 1);
      });
      return dropped(rule.status);
    }
    return chosen(args, sink);
  }

  PickResult dropped(absl::Status status) const {
    PickResult result;
    result.outcome = Drop{std::move(status)};
    result.leaf = rules_->leaf.get();
    return result;
  }

  // Asks the child's picker, for a call that is not dropped. A function of its own: so the compiler
  // builds the large PickResult in the caller's memory, without a move.
  template <typename Sink>
  [[gnu::always_inline]] PickResult chosen(const PickArgs& args, const Sink& sink) const {
    const CallRules& rules = *rules_;
    __builtin_prefetch(rules.gate.get());  // The gate is needed last.
    const LeafCalls* const leaf = rules.leaf.get();
    if (leaf != nullptr) leaf->prefetch();
    PickResult result = child_.ask(args, sink);
    result.leaf = leaf;
    const auto* const complete = std::get_if<Complete>(&result.outcome);
    if (complete == nullptr) return result;
    if constexpr (Sink::kTells) {
      if (!tell_gate(sink)) return dropped(rules.gate->refusal());
    }
    if (loads_ != nullptr) result.trackers.add(loads_->of(*complete));
    if (!result.trackers.add_gate(*rules.gate))
      result.outcome = Drop{absl::InternalError("a pick names too many trackers")};
    return result;
  }

  // Tells the explanation whether the limit lets one more call in. Returns whether it does.
  bool tell_gate(const Telling& sink) const {
    const std::int64_t calls = rules_->gate->in_flight();
    const std::uint32_t most = rules_->gate->limit();
    const bool is_full = calls >= std::int64_t{most};
    sink.tell([&] {
      return PickStep{std::string(kClusterImpl),
                      is_full ? "dropped by the circuit breaker" : "the circuit breaker lets it in",
                      absl::StrCat(calls, " calls in flight of ", most, " at most"),
                      "CDS"};
    });
    return !is_full;
  }

  ChildPicker child_;
  CallRulesPtr rules_;
  LocalityLoadsPtr loads_;  ///< Null: the cluster's load is not reported.
};

}  // namespace

PickerPtr make_cluster_impl_picker(PickerPtr child, CallRulesPtr rules, LocalityLoadsPtr loads) {
  return std::make_shared<const ClusterImplPicker>(
      std::move(child), std::move(rules), std::move(loads));
}

}  // namespace signalbox::lb
