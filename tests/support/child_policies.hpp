// SPDX-License-Identifier: Apache-2.0
//
// child_policies — a table of policies that can be the child of a priority: every leaf policy that
// signalbox has, and some policies above a leaf policy. A test of behaviour that all these policies
// share loops over the rows. A new leaf policy needs a row.

#pragma once

#include <string>
#include <vector>

#include "messages/lb_config.hpp"

namespace signalbox::test {

struct ChildPolicy {
  std::string name;
  LbConfigPtr config;
  bool connects_when_asked = false;  ///< The policy stays IDLE until a pick asks it to connect.
};

inline std::vector<ChildPolicy> child_policies() {
  const LbConfigPtr round_robin = make_lb_config(RoundRobinConfig{});
  return {
      {"round_robin", round_robin},
      {"pick_first", make_lb_config(PickFirstConfig{})},
      {"ring_hash", make_lb_config(RingHashConfig{}), true},
      {"least_request", make_lb_config(LeastRequestConfig{})},
      {"random", make_lb_config(RandomConfig{})},
      {"weighted_round_robin", make_lb_config(WeightedRoundRobinConfig{})},
      {"maglev", make_lb_config(MaglevConfig{251})},
      {"random_subsetting over round_robin",
       make_lb_config(RandomSubsettingConfig{100, round_robin})},
      {"wrr_locality over round_robin", make_lb_config(WrrLocalityConfig{round_robin})},
      {"wrr_locality over pick_first",
       make_lb_config(WrrLocalityConfig{make_lb_config(PickFirstConfig{})})},
  };
}

}  // namespace signalbox::test
