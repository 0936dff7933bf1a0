// SPDX-License-Identifier: Apache-2.0
//
// Faults — fires, at random times (Opportunity::kNow), faults of the seed's menu: the kinds of
// faults that the seed allows (see FakeFaults). An example is the death of an actor.
//
//   FakeFaults (menu, dice) ─▶ [Faults]: from time to time ─▶ fakes, stage, world
//
// The fakes, Stage and World fire the other faults (Opportunity::kThere), each at the places where
// it can happen: for example FakeControlPlane, when it sends a response.

#pragma once

#include <functional>

#include "tests/sim/setting.hpp"
#include "tests/sim/stage.hpp"
#include "tests/sim/topology.hpp"

namespace signalbox::sim {

class Faults {
 public:
  /// Makes one random change of the control plane's configuration. `dice` decides which.
  using Change = std::function<void(FakeChance& dice)>;

  Faults(Setting& setting, Stage& stage, const Topology& topology, Change change)
      : setting_(setting), stage_(stage), topology_(topology), change_(std::move(change)) {}

  void begin();

  /// Draws a kind of actor, and kills an actor of that kind if one lives. Never the supervisor, a
  /// load reporter or a health checker.
  void kill_somebody(FakeChance& dice);

  /// Stops all faults, closes silent streams, and brings all backends up. Spoilt resources stay as
  /// they are until the world sends good ones.
  void end();

 private:
  void strike_soon(Fault fault);
  void strike(Fault fault, FakeChance& dice);
  void strike_backend(Fault fault, FakeChance& dice);
  void strike_actors(Fault fault, FakeChance& dice);
  void flap(const Address& address, int times);
  void swizzle_clog(FakeChance& dice);
  void err_for_a_while(const Address& address, FakeChance& dice);
  void set_later(const Address& address, testing::BackendState state, Duration delay);
  void spoil_resource(bool garbage, FakeChance& dice);

  Setting& setting_;
  Stage& stage_;
  const Topology& topology_;
  Change change_;
  bool over_ = false;
};

}  // namespace signalbox::sim
