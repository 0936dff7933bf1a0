// SPDX-License-Identifier: Apache-2.0
//
// RingHashHarness — a ring_hash policy under test, and the order in which its ring has endpoints.
//
//   test ─▶ bring({{"a", 'r'}}), want("b") ─▶ Policy::step ─▶ answer(hash)

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/leaf/hash_ring.hpp"
#include "lb/leaf/ring_hash.hpp"
#include "messages/overloaded.hpp"
#include "messages/pick.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

namespace signalbox::lb {

/// The ring's items from `hash` on, each once. All names have the same weight.
inline std::vector<std::string> order_from(const std::vector<std::string>& names,
                                           std::uint64_t hash,
                                           HashRing::Sizes sizes = {}) {
  std::vector<HashRing::Item> items;
  for (const std::string& name : names)
    items.push_back({name, 1});
  const HashRing ring(items, sizes);
  std::vector<std::string> order;
  for (std::size_t step = 0; step < ring.size(); ++step) {
    const std::string& name = names[ring.item((ring.find(hash) + step) % ring.size())];
    if (std::ranges::count(order, name) == 0) order.push_back(name);
  }
  return order;
}

/// A hash from which the ring has the names in this order.
inline std::uint64_t hash_for(const std::vector<std::string>& order,
                              const std::vector<std::string>& names) {
  std::uint64_t number = 0;
  while (order_from(names, draw(number, Salt::kDrop)) != order)
    ++number;
  return draw(number, Salt::kDrop);
}

/// A ring_hash policy under test.
class RingHashHarness : public LeafHarness {
 public:
  explicit RingHashHarness(PolicyOptions options = {},
                           std::shared_ptr<const AskTarget> asks = kDeaf)
      : LeafHarness(
            make_leaf(RingHashConfig{},
                      PolicyContext{PolicyPath{"p"}, 1, std::move(asks), options, nullptr})) {}

  explicit RingHashHarness(const std::vector<std::string>& endpoints, RingHashConfig own = {})
      : RingHashHarness() {
    config = std::move(own);
    list(endpoints);
  }

  LbEffects list(const std::vector<std::string>& endpoints) {
    return update(endpoints, make_lb_config(config));
  }

  LbEffects list(Endpoints slice) {
    return configure(std::make_shared<const Endpoints>(std::move(slice)), make_lb_config(config));
  }

  void settle() { step(RebuildDue{}); }

  /// Delivers a pick's ask for this endpoint.
  LbEffects want(const std::string& first) {
    return step(PickAsked{{PickAsk::Kind::kConnect, Address{first}}});
  }

  /// Brings endpoints into the states r (READY), c (CONNECTING), f (failed). Others stay.
  void bring(const std::map<std::string, char>& states) {
    for (const auto& [address, state] : states) {
      want(address);
      idle(address);
      connecting(address);
    }
    for (const char wanted : {'r', 'f'}) {
      for (const auto& [address, state] : states) {
        if (state != wanted) continue;
        wanted == 'r' ? ready(address) : fail(address);
      }
    }
    settle();
  }

  PickResult ask(const PickArgs& args) const { return published.back().picker->pick(args); }

  /// The pick in words: "complete a", "queue", "queue, connect a", "fail: …".
  std::string answer(const PickArgs& args) const {
    const PickResult result = ask(args);
    std::string text = std::visit(
        Overloaded{
            [](const Complete& it) { return "complete " + it.connection->address().str(); },
            [](const Queue&) { return std::string("queue"); },
            [](const Fail& it) { return "fail: " + std::string(it.status.message()); },
            [](const Drop&) { return std::string("drop"); },
        },
        result.outcome);
    if (result.ask.has_value()) {
      CHECK(result.ask->kind == PickAsk::Kind::kConnect);
      CHECK(result.ask_target != nullptr);
      absl::StrAppend(&text, ", connect ", result.ask->address.str());
    }
    return text;
  }

  std::string answer(std::uint64_t hash) const { return answer({.hash = hash}); }

  RingHashConfig config;

 private:
  static inline const std::shared_ptr<const AskTarget> kDeaf = std::make_shared<DeafTarget>();
};

inline RingHashConfig by_header(std::string name) {
  RingHashConfig config;
  config.request_hash_header = std::move(name);
  return config;
}

inline const std::vector<std::string> kAbc{"a", "b", "c"};
/// From this hash on the ring has a, b and c in this order.
inline const std::uint64_t kHash = hash_for(kAbc, kAbc);

}  // namespace signalbox::lb
