// SPDX-License-Identifier: Apache-2.0
//
// LeastRequestHarness — a least_request policy with READY endpoints, and calls that the test begins
// and ends.
//
//   begin(seed_that_draws("ab")) ─▶ pick ─▶ calls ─▶ end_one("a")

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "lb/leaf/least_request.hpp"
#include "messages/pick.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

namespace signalbox::lb {

inline LbConfigPtr of_choices(std::uint32_t count) {
  return make_lb_config(LeastRequestConfig{count});
}

/// A least_request policy with calls that the test begins and ends.
class LeastRequestHarness : public LeafHarness {
 public:
  explicit LeastRequestHarness(const std::vector<std::string>& endpoints, std::uint32_t choices = 2)
      : LeafHarness(make_leaf(LeastRequestConfig{}, PolicyContext{PolicyPath{"p"}, 1, nullptr})) {
    update(endpoints, of_choices(choices));
    for (const std::string& endpoint : endpoints)
      ready(endpoint);
    step(RebuildDue{});
  }

  PickResult ask(std::uint64_t seed) const { return published.back().picker->pick({.seed = seed}); }

  std::string where(std::uint64_t seed) const { return address_of(ask(seed)); }

  /// Begins a call and returns its endpoint. The call lasts until end_one() of that endpoint.
  std::string begin(std::uint64_t seed) {
    const PickResult result = ask(seed);
    const std::string address = address_of(result);
    calls.emplace(address, Tracking(result.trackers));
    return address;
  }

  void end_one(const std::string& address) {
    const auto call = calls.find(address);
    call->second.end({0});
    calls.erase(call);
  }

  std::multimap<std::string, Tracking> calls;

 private:
  static std::string address_of(const PickResult& result) {
    return std::get<Complete>(result.outcome).connection->address().str();
  }
};

/// The first two draws of a pick among two endpoints "a" and "b", for example "ba".
inline std::string draws(std::uint64_t seed) {
  std::string drawn;
  for (std::uint64_t step = 0; step < 2; ++step)
    drawn += draw_below(seed, Salt::kEndpoint, 2, step) == 0 ? "a" : "b";
  return drawn;
}

/// A seed that makes these the first two draws, for example "ab".
inline std::uint64_t seed_that_draws(const std::string& wanted) {
  std::uint64_t seed = 0;
  while (draws(seed) != wanted)
    ++seed;
  return seed;
}

}  // namespace signalbox::lb
