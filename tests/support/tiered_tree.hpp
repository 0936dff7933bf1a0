// SPDX-License-Identifier: Apache-2.0
//
// TieredTree — the whole policy tree of one aggregate cluster, "orders", in tiered mode. shares()
// shows how its calls are spread.
//
//   leaf("primary", {hosts(…), …}); apply() ─▶ [TreeHarness] ─▶ shares(): percent by leaf, priority
//
// Hosts are named after their leaf, its priority and their number: "primary/0.17".

#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "messages/pick.hpp"
#include "tests/support/tree_harness.hpp"
#include "tests/support/xds_world.hpp"

namespace signalbox::test {

/// A hundred seeds. The policy tiered draws a number from 0 to 99 for each call, and no two of
/// these seeds draw the same number. So one call with each seed shows each tier's exact share in
/// percent.
inline const std::vector<std::uint64_t>& seeds_of_all_draws() {
  static const auto seeds = [] {
    std::map<std::uint64_t, std::uint64_t> found;
    for (std::uint64_t seed = 1; found.size() < 100; ++seed)
      found.try_emplace(draw_below(seed, Salt::kTier, 100), seed);
    std::vector<std::uint64_t> list;
    list.reserve(found.size());
    for (const auto& [draw, seed] : found)
      list.push_back(seed);
    return list;
  }();
  return seeds;
}

struct TieredTree {
  explicit TieredTree(lb::PolicyOptions options = {}) : tree(tiered(options)) {}

  /// Numbers of hosts: the first are healthy, the next degraded, the rest unhealthy by EDS.
  struct Hosts {
    int healthy = 0;
    int degraded = 0;
    int unhealthy = 0;
  };

  /// A hundred hosts, `healthy` of them healthy and the rest unhealthy.
  static Hosts percent(int healthy) { return {healthy, 0, 100 - healthy}; }

  static std::string host(const std::string& leaf, std::size_t priority, int number) {
    return absl::StrCat(leaf, "/", priority, ".", number);
  }

  /// An EDS leaf with one locality for each priority that has hosts. Connections to all its hosts
  /// succeed, except after down().
  void leaf(const std::string& name,
            const std::vector<Hosts>& priorities,
            const LbConfigPtr& policy = default_lb_policy(),
            const ClusterExtras& extras = {}) {
    XdsWorld::Priorities texts;
    for (std::size_t at = 0; at < priorities.size(); ++at) {
      const Hosts& wanted = priorities[at];
      std::vector<std::string> hosts;
      for (int number = 0; number < wanted.healthy + wanted.degraded + wanted.unhealthy; ++number) {
        const std::string address = host(name, at, number);
        if (up_.insert(address).second) tree.up(address);
        const char* health = number < wanted.healthy                     ? ""
                             : number < wanted.healthy + wanted.degraded ? "?"
                                                                         : "-";
        hosts.push_back(address + health);
      }
      texts.push_back(hosts.empty() ? "" : absl::StrCat("z", at, ":", absl::StrJoin(hosts, ",")));
    }
    world.eds(name, texts, policy, extras);
  }

  void down(const std::string& address) {
    up_.insert(address);
    tree.down(address);
  }

  void apply(const std::vector<std::string>& leaves) {
    world.aggregate("orders", leaves);
    apply();
  }

  void apply() { tree.apply(manager_of({"orders"}), world.config()); }

  /// The share of each priority ("primary/0", …) in a hundred calls, one for each draw. A call that
  /// reached no host counts under its pick's outcome: "queue", "fail …".
  std::map<std::string, int> shares() {
    std::map<std::string, int> shares;
    for (const std::uint64_t seed : seeds_of_all_draws()) {
      const std::string answer = tree.pick("orders", seed);
      const std::string complete = "complete ";
      if (answer.starts_with(complete)) {
        ++shares[answer.substr(complete.size(), answer.find('.') - complete.size())];
      } else {
        ++shares[answer];
      }
    }
    return shares;
  }

  XdsWorld world;
  TreeHarness tree;

 private:
  static lb::PolicyOptions tiered(lb::PolicyOptions options) {
    options.aggregate_mode = AggregateMode::kTiered;
    return options;
  }

  std::set<std::string> up_;  ///< The addresses that up() or down() was called for.
};

}  // namespace signalbox::test
