// SPDX-License-Identifier: Apache-2.0
//
// LeafHarness — a leaf policy under test, and its effects so far.
//
//   test ─▶ update, tell, … ─▶ Policy::step ─▶ effects ─▶ held, connects, published, …

#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lb/policy.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {

/// The endpoints of a leaf policy, each "a" or "a,b" (several addresses), in one locality.
inline EndpointsPtr slice_of(const std::vector<std::string>& endpoints) {
  Locality locality;
  for (const std::string& text : endpoints) {
    Endpoint endpoint;
    std::size_t begin = 0;
    while (begin <= text.size()) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      endpoint.addresses.emplace_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    locality.endpoints.push_back(std::move(endpoint));
  }
  Endpoints slice;
  slice.priorities.push_back({{std::make_shared<const Locality>(std::move(locality))}});
  return std::make_shared<const Endpoints>(std::move(slice));
}

/// Endpoints a (weight 2) and b (1) in a locality of weight 3, and c (7) in one of weight 1.
inline Endpoints heavy_and_light() {
  Locality light{{"", "x", ""}, 1, {{.addresses = {Address("c")}, .weight = 7}}};
  Locality heavy{{"", "y", ""}, 3, {}};
  heavy.endpoints = {{.addresses = {Address("a")}, .weight = 2},
                     {.addresses = {Address("b")}, .weight = 1}};
  Endpoints slice;
  slice.priorities.push_back({{std::make_shared<const Locality>(std::move(heavy)),
                               std::make_shared<const Locality>(std::move(light))}});
  return slice;
}

class DeafTarget final : public AskTarget {
 public:
  void tell(const PickAsk& /*ask*/) const override {}
};

class LeafHarness {
 public:
  explicit LeafHarness(std::unique_ptr<Policy> policy) : policy_(std::move(policy)) {}

  LbEffects update(const std::vector<std::string>& endpoints, LbConfigPtr config = nullptr) {
    return configure(slice_of(endpoints), std::move(config));
  }

  /// The next configuration. `endpoints`: null if there is no list.
  LbEffects configure(EndpointsPtr endpoints, LbConfigPtr config = nullptr) {
    ConfigUpdated update;
    update.generation = ++generation;
    update.config = std::move(config);
    update.endpoints = std::move(endpoints);
    return step(update);
  }

  LbEffects tell(const std::string& address,
                 ConnectivityState state,
                 absl::Status status = absl::OkStatus()) {
    SubchannelStateChanged event;
    event.address = Address{address};
    event.state = state;
    event.status = std::move(status);
    if (state == ConnectivityState::kReady)
      event.connection = std::make_shared<const Connection>(event.address);
    return step(event);
  }

  LbEffects idle(const std::string& address) { return tell(address, ConnectivityState::kIdle); }

  LbEffects connecting(const std::string& address) {
    return tell(address, ConnectivityState::kConnecting);
  }

  LbEffects ready(const std::string& address) { return tell(address, ConnectivityState::kReady); }

  LbEffects fail(const std::string& address) {
    return tell(address,
                ConnectivityState::kTransientFailure,
                absl::UnavailableError("refused by " + address));
  }

  LbEffects unhealthy(const std::string& address) {
    SubchannelStateChanged event;
    event.address = Address{address};
    event.state = ConnectivityState::kReady;
    event.healthy = false;
    event.status = absl::UnavailableError("ejected");
    event.connection = std::make_shared<const Connection>(event.address);
    return step(event);
  }

  LbEffects step(const LbEvent& event) {
    LbEffects effects = policy_->step(event, now);
    for (const LbEffect& effect : effects)
      record(effect);
    return effects;
  }

  ConnectivityState state() const { return published.at(published.size() - 1).state; }

  /// The address that a pick leads to, or "queue", "fail: …", "drop: …".
  std::string pick() const {
    const PickResult result = published.at(published.size() - 1).picker->pick({});
    return std::visit(
        Overloaded{
            [](const Complete& complete) { return complete.connection->address().str(); },
            [](const Queue&) { return std::string("queue"); },
            [](const Fail& fail) { return "fail: " + std::string(fail.status.message()); },
            [](const Drop& drop) { return "drop: " + std::string(drop.status.message()); },
        },
        result.outcome);
  }

  Instant now{};  ///< The instant at which the next steps happen.
  Generation generation = 0;
  std::set<std::string> held;
  std::vector<std::string> connects;  ///< Addresses of Connect effects, in order.
  std::vector<Publish> published;
  std::vector<StartTimer> timers;  ///< In the order of their start; only the test fires them.
  int reresolutions = 0;
  int rebuilds_ordered = 0;
  Generation applied = 0;

 private:
  void record(const LbEffect& effect) {
    std::visit(Overloaded{
                   [&](const AcquireSubchannel& it) { held.insert(it.address.str()); },
                   [&](const ReleaseSubchannel& it) { held.erase(it.address.str()); },
                   [&](const Connect& it) { connects.push_back(it.address.str()); },
                   [&](const Publish& it) { published.push_back(it); },
                   [&](const StartTimer& it) { timers.push_back(it); },
                   [&](const RequestReresolution&) { ++reresolutions; },
                   [&](const RebuildSoon&) { ++rebuilds_ordered; },
                   [&](const ReportApplied& it) { applied = it.generation; },
                   [](const auto&) {},
               },
               effect);
  }

  std::unique_ptr<Policy> policy_;
};

template <typename Effect>
std::size_t count_of(const LbEffects& effects) {
  std::size_t count = 0;
  for (const LbEffect& effect : effects)
    count += std::holds_alternative<Effect>(effect) ? 1 : 0;
  return count;
}

}  // namespace signalbox::lb
