// SPDX-License-Identifier: Apache-2.0
//
// RoundRobinCluster — a real round_robin policy with n endpoints, all of them connected.
//
//   endpoints ─▶ lb::make_policy ─▶ ConfigUpdated, SubchannelStateChanged … ─▶ the last picker

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lb/policy_registry.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::bench {

class RoundRobinCluster {
 public:
  explicit RoundRobinCluster(std::size_t size) {
    lb::PolicyContext context;
    context.seed = 1;
    config_ = make_lb_config(RoundRobinConfig{});
    policy_ = lb::make_policy(*config_, std::move(context));
    auto locality = std::make_shared<Locality>();
    for (std::size_t i = 0; i < size; ++i)
      locality->endpoints.push_back({{address(i)}});
    locality_ = std::move(locality);
    configure();
    for (std::size_t i = 0; i < size; ++i)
      set(i, ConnectivityState::kReady);
    rebuild();
  }

  /// Updates the policy: the last endpoint is replaced by endpoint number 1,000,000 + `other`.
  void replace_last(std::size_t other) {
    auto locality = std::make_shared<Locality>(*locality_);
    locality->endpoints.back() = {{address(1'000'000 + other)}};
    locality_ = std::move(locality);
    configure();
    set(1'000'000 + other, ConnectivityState::kReady);
    rebuild();
  }

  /// Changes the state of one endpoint's connection, and takes the policy's next picker.
  void change(std::size_t endpoint, ConnectivityState state) {
    set(endpoint, state);
    rebuild();
  }

  const PickerPtr& picker() const { return picker_; }

 private:
  static Address address(std::size_t number) {
    return Address("10." + std::to_string(number / 65536) + "." +
                   std::to_string(number / 256 % 256) + "." + std::to_string(number % 256) + ":80");
  }

  void configure() {
    auto endpoints = std::make_shared<Endpoints>();
    endpoints->priorities.push_back({{locality_}});
    ConfigUpdated update;
    update.generation = ++generation_;
    update.config = config_;
    update.endpoints = std::move(endpoints);
    feed(std::move(update));
  }

  void set(std::size_t endpoint, ConnectivityState state) {
    SubchannelStateChanged change;
    change.address = address(endpoint);
    change.state = state;
    if (state == ConnectivityState::kReady)
      change.connection = std::make_shared<Connection>(change.address);
    feed(std::move(change));
  }

  void rebuild() { feed(RebuildDue{}); }

  template <typename Event>
  void feed(Event event) {
    for (LbEffect& effect : policy_->step(LbEvent{std::move(event)}, Instant())) {
      if (auto* publish = std::get_if<Publish>(&effect)) picker_ = std::move(publish->picker);
    }
  }

  LbConfigPtr config_;
  std::unique_ptr<lb::Policy> policy_;
  std::shared_ptr<const Locality> locality_;
  Generation generation_ = 0;
  PickerPtr picker_;
};

}  // namespace signalbox::bench
