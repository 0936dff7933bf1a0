// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/tiered_picker.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

#include "lb/session/session.hpp"
#include "lb/session/session_homes.hpp"
#include "lb/trace.hpp"
#include "lb/tree/leaf_tiers_picker.hpp"
#include "messages/counting/striped.hpp"
#include "messages/invariant.hpp"

namespace signalbox::lb {
namespace {

// The members that a pick without a session reads are on two cache lines, if there are two ways.
class alignas(kCacheLine) TieredPicker final : public Picker {
 public:
  explicit TieredPicker(TieredParts parts)
      : table_(std::move(parts.table)),
        otherwise_(std::move(parts.otherwise)),
        cluster_(std::move(parts.cluster)),
        names_(std::move(parts.names)) {
    SIGNALBOX_INVARIANT(table_ != nullptr || otherwise_.get() != nullptr, "calls go somewhere");
    leaves_.reserve(parts.leaves.size());
    for (PickerPtr& leaf : parts.leaves)
      leaves_.emplace_back(std::move(leaf));
    for (const ChildPicker& leaf : leaves_)
      homes_.add(leaf.session_hint());
    if (table_ == nullptr) return;
    for (const TierShare& share : table_->shares())
      ways_.push_back({leaves_[share.leaf], share.tier});
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
    if (args.session != nullptr) [[unlikely]]
      return pick_of_session(args, sink);
    return pick_drawn(args, sink);
  }

  template <typename Sink>
  [[gnu::always_inline]] PickResult pick_drawn(const PickArgs& args, const Sink& sink) const {
    if (table_ == nullptr) [[unlikely]]
      return otherwise_.ask(args, sink);
    const std::uint64_t drawn = draw_below(args.seed, Salt::kTier, 100);
    const std::size_t place = table_->place(drawn);
    sink.tell([&] {
      return PickStep{
          "tiered", name_of(table_->shares()[place]), why(drawn), "CDS " + cluster_.str()};
    });
    const Way& way = ways_[place];
    PickArgs below = args;
    below.tier = way.tier;
    return way.leaf.ask(below, sink);
  }

  // --- sessions ---

  // Picks for a call with a session. Not inlined, so that this code takes no space in the
  // instruction cache of other calls.
  template <typename Sink>
  [[gnu::noinline]] PickResult pick_of_session(const PickArgs& args, const Sink& sink) const {
    const SessionArgs& session = *session_of(args);
    if constexpr (!Sink::kTells) {
      if (const auto leaf = homes_.at_sight(session)) return leaves_[*leaf].ask(args, sink);
    }
    const absl::string_view hosts = hosts_of(session);
    if (hosts.empty()) return pick_drawn(args, sink);
    const SessionHome home = homes_.of(hosts);
    if (home.promise >= HostPromise::kUnheld) {
      tell(sink, [&] { return names_[home.leaf].str(); }, "it has the host of the call's cookie");
      return leaves_[home.leaf].ask(args, sink);
    }
    const bool is_known = home.promise == HostPromise::kUnfit;
    if (is_known && session.strict) {
      tell(
          sink,
          [&] { return names_[home.leaf].str(); },
          "it has the host of the call's cookie, which cannot be used");
      return leaves_[home.leaf].ask(args, sink);
    }
    tell(
        sink,
        [] { return std::string("the call is drawn"); },
        is_known ? "the host of its cookie cannot be used"
                 : "no leaf has an endpoint of its cookie's address");
    PickResult result = pick_drawn(args, sink);
    if (is_known && result.affinity.result == AffinityResult::kUnknownHost)
      result.affinity.result = AffinityResult::kUnhealthy;
    return result;
  }

  template <typename Sink, typename Decision>
  void tell(const Sink& sink, const Decision& decision, absl::string_view reason) const {
    sink.tell([&] {
      return PickStep{"tiered", decision(), std::string(reason), "CDS " + cluster_.str()};
    });
  }

  // --- for explanations ---

  std::string why(std::uint64_t drawn) const {
    std::string why = absl::StrCat("drew ", drawn + 1, " of 100; loads:");
    const char* separator = " ";
    for (const TierShare& one : table_->shares()) {
      absl::StrAppend(&why, separator, name_of(one), " ", one.percent, " %");
      separator = "; ";
    }
    return why;
  }

  std::string name_of(const TierShare& share) const {
    return absl::StrCat(names_[share.leaf].str(), " ", to_string(share.tier));
  }

  // Where the calls of one share go.
  struct Way {
    ChildPicker leaf;
    Tier tier;
  };

  const TierTablePtr table_;
  // One for each share of table_, in their order. The ways repeat what leaves_ and the shares say:
  // a pick that read those instead would read two further cache lines, one after the other. Two
  // ways, as for a primary and a secondary cluster, are stored in place.
  absl::InlinedVector<Way, 2> ways_;
  std::vector<ChildPicker> leaves_;
  SessionHomes homes_;  ///< Made from leaves_.
  ChildPicker otherwise_;
  const ClusterName cluster_;
  const std::vector<ClusterName> names_;
};

}  // namespace

TierTable::TierTable(std::vector<TierShare> shares) : shares_(std::move(shares)) {
  std::size_t draw = 0;
  for (std::size_t at = 0; at < shares_.size(); ++at) {
    for (std::uint32_t percent = 0; percent < shares_[at].percent; ++percent) {
      SIGNALBOX_INVARIANT(draw < by_draw_.size(), "shares are 100 % together");
      by_draw_[draw++] = static_cast<std::uint8_t>(at);
    }
  }
  SIGNALBOX_INVARIANT(draw == by_draw_.size(), "shares are 100 % together");
}

bool have_sessions(const std::vector<PickerPtr>& leaves) {
  return std::ranges::any_of(
      leaves, [](const PickerPtr& leaf) { return ChildPicker(leaf).session_hint() != nullptr; });
}

PickerPtr make_tiered_picker(TieredParts parts) {
  return std::make_shared<const TieredPicker>(std::move(parts));
}

}  // namespace signalbox::lb
