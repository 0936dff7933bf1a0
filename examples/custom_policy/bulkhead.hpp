// SPDX-License-Identifier: Apache-2.0
//
// bulkhead — slow calls have endpoints of their own, so they never hold up other calls.
//
//   priority ─▶ [bulkhead] ─▶ slow: round_robin over the first `reserved` endpoints
//                         └─▶ rest: round_robin over the other endpoints
//
// {"slow": "/reports.", "reserved": 2}: a call is slow when its path begins with "/reports.". It
// fails when the endpoints of slow calls fail. With too few endpoints, all calls share them.

#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include <nlohmann/json.hpp>

#include "signalbox/policy.hpp"

namespace bulkhead {

namespace sb = signalbox;

struct Config final : sb::CustomPolicyConfig {
  std::string slow;
  std::size_t reserved = 1;
};

inline absl::StatusOr<sb::CustomPolicyConfigPtr> parse(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  const auto slow = json.value("slow", nlohmann::json());
  const auto reserved = json.value("reserved", nlohmann::json(1));
  const double count = reserved.is_number() ? reserved.get<double>() : 0;
  if (!slow.is_string())
    return absl::InvalidArgumentError("slow: must be a string, found " + slow.dump());
  if (count < 1 || count > 1000 || count != std::floor(count))
    return absl::InvalidArgumentError("reserved: must be 1 to 1000, found " + reserved.dump());
  auto config = std::make_shared<Config>();
  config->slow = slow.get<std::string>();
  config->reserved = static_cast<std::size_t>(count);
  return config;
}

class Picker final : public sb::Picker {
 public:
  Picker(std::string prefix, sb::PickerPtr slow, sb::PickerPtr rest)
      : prefix_(std::move(prefix)), slow_(std::move(slow)), rest_(std::move(rest)) {}

  sb::PickResult pick(const sb::PickArgs& args) const override {
    return (is_slow(args) ? slow_ : rest_)->pick(args);
  }

  sb::PickResult explain(const sb::PickArgs& args, sb::PickTrace& trace) const override {
    trace.tell({"bulkhead", is_slow(args) ? "a slow call" : "not a slow call", "", ""});
    return (is_slow(args) ? slow_ : rest_)->explain(args, trace);
  }

 private:
  bool is_slow(const sb::PickArgs& args) const { return absl::StartsWith(args.path, prefix_); }

  const std::string prefix_;
  const sb::PickerPtr slow_, rest_;
};

// The endpoints of `all` from number `first` to number `end`, which is not included.
inline sb::EndpointsPtr part_of(const sb::Endpoints& all, std::size_t first, std::size_t end) {
  auto part = std::make_shared<sb::Endpoints>(all);
  std::size_t number = 0;
  for (sb::Priority& priority : part->priorities) {
    for (sb::LocalityPtr& locality : priority.localities) {
      auto kept = std::make_shared<sb::Locality>(*locality);
      kept->endpoints.clear();
      for (const sb::Endpoint& endpoint : locality->endpoints) {
        if (number >= first && number < end) kept->endpoints.push_back(endpoint);
        ++number;
      }
      locality = std::move(kept);
    }
  }
  return part;
}

class Policy final : public sb::Policy {
 public:
  sb::LbEffects step(const sb::LbEvent& event, sb::Instant /*now*/) override {
    sb::LbEffects effects;
    if (const auto* update = std::get_if<sb::ConfigUpdated>(&event)) {
      configure(*update, effects);
    } else if (const auto* changed = std::get_if<sb::ChildStateChanged>(&event)) {
      if (children_.hear(*changed, effects) != nullptr) publish(effects);
    } else {
      children_.hear_other(event, effects);
    }
    children_.report_applied(effects);
    return effects;
  }

 private:
  void configure(const sb::ConfigUpdated& update, sb::LbEffects& effects) {
    const auto& config = sb::custom_config_of<Config>(update);
    const std::size_t count = sb::count_endpoints(*update.endpoints);
    const bool shared = count <= config.reserved;
    const auto leaf = sb::make_lb_config(sb::RoundRobinConfig{});
    slow_path_ = config.slow;
    children_.begin(update);
    children_.update(
        slow_, leaf, part_of(*update.endpoints, 0, shared ? count : config.reserved), effects);
    children_.update(
        rest_, leaf, part_of(*update.endpoints, shared ? 0 : config.reserved, count), effects);
    publish(effects);
  }

  void publish(sb::LbEffects& effects) {
    const auto& slow = *children_.find(slow_);
    const auto& rest = *children_.find(rest_);
    sb::Publish next;
    next.state = children_.aggregate();
    if (next.state == sb::ConnectivityState::kTransientFailure)
      next.status = slow.status.ok() ? absl::UnavailableError("bulkhead: failed") : slow.status;
    next.picker = std::make_shared<const Picker>(slow_path_, slow.picker, rest.picker);
    next.generation = children_.generation();
    effects.push_back(std::move(next));
  }

  const sb::ChildName slow_{"slow"}, rest_{"rest"};
  std::string slow_path_;
  sb::ChildSet children_;
};

inline sb::CustomLbPolicy policy() {  // For RuntimeOptions::lb_policies.
  return {"com.example.Bulkhead", parse, [](auto&&...) { return std::make_unique<Policy>(); }};
}

}  // namespace bulkhead
