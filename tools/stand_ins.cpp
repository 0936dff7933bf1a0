// SPDX-License-Identifier: Apache-2.0
#include "tools/stand_ins.hpp"

#include <memory>
#include <utility>
#include <variant>

#include "lb/leaf/round_robin.hpp"
#include "lb/trace.hpp"

namespace signalbox::tools {
namespace {

class AnyConfig final : public CustomPolicyConfig {};

class StandInNote final : public lb::PickNote {
 public:
  explicit StandInNote(std::string name) : name_(std::move(name)) {}

  void tell(const PickArgs& /*args*/, PickTrace& trace) const override {
    trace.tell(
        {name_, "round_robin stands in its place", "what it decides is not known here", "CDS"});
  }

 private:
  const std::string name_;
};

// A round_robin policy. Its explanations name the policy that it stands in for.
class PolicyStandIn final : public Policy {
 public:
  PolicyStandIn(const std::string& name, PolicyContext context)
      : note_(std::make_shared<const StandInNote>(name)),
        policy_(lb::make_leaf(RoundRobinConfig{}, std::move(context))) {}

  LbEffects step(const LbEvent& event, Instant now) override {
    LbEffects effects = policy_->step(event, now);
    for (LbEffect& effect : effects) {
      if (auto* publish = std::get_if<Publish>(&effect))
        publish->picker = lb::make_explained_picker(std::move(publish->picker), note_);
    }
    return effects;
  }

 private:
  const lb::PickNotePtr note_;
  const std::unique_ptr<Policy> policy_;
};

class FilterStandIn final : public CallFilter {
 public:
  explicit FilterStandIn(std::string type) : type_(std::move(type)) {}

  void apply(FilterCall& /*call*/) const override {}

  void explain(FilterCall& /*call*/, PickTrace& trace) const override {
    trace.tell({type_, "the call passes", "what it decides is not known here", "LDS"});
  }

 private:
  const std::string type_;
};

}  // namespace

CustomLbPolicy lb_policy_stand_in(const std::string& name) {
  return {.name = name,
          .parse = [](const std::string& /*json*/) -> absl::StatusOr<CustomPolicyConfigPtr> {
            return std::make_shared<const AnyConfig>();
          },
          .make =
              [name](const CustomPolicyConfigPtr& /*config*/, PolicyContext context) {
                return std::make_unique<PolicyStandIn>(name, std::move(context));
              }};
}

CustomHttpFilter http_filter_stand_in(const std::string& type) {
  const auto parse = [type](const RawFilterConfig& /*config*/) -> absl::StatusOr<CallFilterPtr> {
    return std::make_shared<const FilterStandIn>(type);
  };
  return {.type = type, .parse = parse, .parse_override = parse};
}

}  // namespace signalbox::tools
