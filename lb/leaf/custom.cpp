// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/custom.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/leaf/custom_picker.hpp"
#include "messages/invariant.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

// Which policy a configuration is for, to check that a child keeps its kind.
struct PolicyKind {
  std::size_t index = 0;
  std::string name;

  explicit PolicyKind(const LbConfig& config) : index(config.index()), name(policy_name(config)) {}

  friend bool operator==(const PolicyKind&, const PolicyKind&) = default;
};

bool stands_above_a_cluster(const LbConfig& config) {
  return std::visit(Overloaded{
                        [](const ClusterManagerConfig&) { return true; },
                        [](const CdsConfig&) { return true; },
                        [](const OutlierDetectionConfig&) { return true; },
                        [](const ClusterImplConfig&) { return true; },
                        [](const OverrideHostConfig&) { return true; },
                        [](const TieredConfig&) { return true; },
                        [](const LeafTiersConfig&) { return true; },
                        [](const auto&) { return false; },
                    },
                    static_cast<const LbConfig::variant&>(config));
}

class Custom final : public Policy {
 public:
  Custom(std::string name,
         std::unique_ptr<Policy> own,
         LocalityName caller,
         std::shared_ptr<const StripedCounters<1>> pick_failures)
      : name_(std::move(name)),
        own_(std::move(own)),
        caller_(std::move(caller)),
        pick_failures_(std::move(pick_failures)) {}

  LbEffects step(const LbEvent& event, Instant now) override {
    if (const auto* update = std::get_if<ConfigUpdated>(&event))
      configured_ = std::max(configured_, update->generation);
    if (const auto* asked = std::get_if<ChildAskedReresolution>(&event)) return pass_on(*asked);
    LbEffects effects = own_->step(event, now);
    for (LbEffect& effect : effects)
      std::visit([this](auto& order) { check(order); }, effect);
    require(has_published() || configured_ == 0,
            "I1: it is configured, and has published no picker");
    return effects;
  }

 private:
  // Passes a child's request for re-resolution on to the parent, as ChildSet::hear_other does for
  // other policies. So the user's policy need not handle the event.
  LbEffects pass_on(const ChildAskedReresolution& asked) const {
    if (!children_.contains(asked.child)) return {};
    return {RequestReresolution{}};
  }

  // --- checks of the promises I1 to I6 ---

  void require(bool kept, absl::string_view broken) const {
    SIGNALBOX_INVARIANT(kept, absl::StrCat("custom policy ", name_, ": ", broken));
  }

  void require(bool kept, absl::string_view broken, const std::string& whom) const {
    SIGNALBOX_INVARIANT(kept, absl::StrCat("custom policy ", name_, ": ", broken, " ", whom));
  }

  void check(Publish& order) {
    require(order.picker != nullptr, "I2: a state is published without a picker");
    require(order.state != ConnectivityState::kTransientFailure || !order.status.ok(),
            "I2: TRANSIENT_FAILURE is published without saying why");
    check_generation(order.generation, published_for_);
    if (order.picker != theirs_) {
      theirs_ = order.picker;
      ours_ = make_custom_picker(name_, order.picker, caller_, pick_failures_);
    }
    order.picker = ours_;
  }

  void check(const ReportApplied& order) {
    require(has_published(), "I1: it reports before it has published a picker");
    check_generation(order.generation, applied_);
  }

  void check_generation(Generation generation, Generation& last) const {
    require(generation <= configured_, "I3: no configuration has generation", number(generation));
    require(generation >= last, "I3: it was at a newer generation than", number(generation));
    last = generation;
  }

  void check(const AcquireSubchannel& order) {
    require(!order.address.empty(), "I4: it acquires no address");
    require(held_.insert(order.address).second, "I4: it holds already", order.address.str());
  }

  void check(const ReleaseSubchannel& order) {
    require(held_.erase(order.address) > 0, "I4: it does not hold", order.address.str());
  }

  void check(const Connect& order) const {
    require(held_.contains(order.address), "I4: it does not hold", order.address.str());
  }

  void check(const StartChild& order) {
    check_config(order.child, order.update);
    require(children_.emplace(order.child, PolicyKind(*order.update.config)).second,
            "I5: there is already a child",
            order.child.str());
  }

  void check(const UpdateChild& order) const {
    check_child(order.child);
    check_config(order.child, order.update);
    require(children_.at(order.child) == PolicyKind(*order.update.config),
            "I5: a child keeps its policy:",
            order.child.str());
  }

  void check(const StopChild& order) {
    check_child(order.child);
    children_.erase(order.child);
  }

  void check(const ExitIdleChild& order) const { check_child(order.child); }

  void check_child(const ChildName& child) const {
    require(children_.contains(child), "I5: there is no child", child.str());
  }

  void check_config(const ChildName& child, const ConfigUpdated& update) const {
    require(!child.empty(), "I5: a child has a name");
    require(update.config != nullptr, "I5: without a configuration there is no child", child.str());
    require(!stands_above_a_cluster(*update.config),
            "I5: no child of it can be a",
            std::string(policy_name(*update.config)));
    require(update.generation <= configured_,
            "I3: no configuration has generation",
            number(update.generation));
  }

  void check(const StartTimer& order) const {
    require(order.delay >= Duration::zero(), "a delay is negative, of timer", order.timer.name);
  }

  void check(const CancelTimer&) const {}

  void check(const RebuildSoon&) const {}

  void check(const RequestReresolution&) const {}

  void check(const ServeSubchannels&) const { refuse("ServeSubchannels"); }

  void check(const SettleSubchannels&) const { refuse("SettleSubchannels"); }

  void check(const CloseSubchannels&) const { refuse("CloseSubchannels"); }

  void check(const SetEndpointHealth&) const { refuse("SetEndpointHealth"); }

  void check(const TrackEndpoints&) const { refuse("TrackEndpoints"); }

  void check(const KeepSessions&) const { refuse("KeepSessions"); }

  void check(const WatchLoad&) const { refuse("WatchLoad"); }

  void check(const Observe&) const { refuse("Observe"); }

  void refuse(const std::string& order) const {
    require(false, "I6: it is not its business to order", order);
  }

  static std::string number(Generation generation) { return absl::StrCat(generation); }

  bool has_published() const { return ours_ != nullptr; }

  const std::string name_;
  const std::unique_ptr<Policy> own_;
  const LocalityName caller_;
  const std::shared_ptr<const StripedCounters<1>> pick_failures_;
  Generation configured_ = 0;
  Generation published_for_ = 0;
  Generation applied_ = 0;
  std::set<Address> held_;
  std::map<ChildName, PolicyKind> children_;
  // The picker published last: the user's own, and its wrapper. If the user's policy publishes the
  // same picker again, the wrapper is the same too, so parents see that nothing has changed.
  PickerPtr theirs_;
  PickerPtr ours_;
};

}  // namespace

std::unique_ptr<Policy> make_leaf(const CustomConfig& config, PolicyContext context) {
  const auto registered = context.options.custom;
  if (registered == nullptr) return nullptr;
  const auto found = registered->find(config.name);
  if (found == registered->end()) return nullptr;
  const CustomPolicy& custom = found->second;
  LocalityName caller = context.options.caller;
  auto own = custom.make(config, std::move(context));
  SIGNALBOX_INVARIANT(own != nullptr,
                      absl::StrCat("custom policy ", config.name, ": make() made nothing"));
  return std::make_unique<Custom>(
      config.name, std::move(own), std::move(caller), custom.pick_failures);
}

}  // namespace signalbox::lb
