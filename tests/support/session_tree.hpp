// SPDX-License-Identifier: Apache-2.0
//
// SessionTree — the whole policy tree of one cluster, "orders", with the filter stateful_session.
//
//   apply({"east:a,b", …}) ─▶ XdsWorld ─▶ [TreeHarness] ◀─ tree.visit("orders", cookie)

#pragma once

#include "tests/support/tree_harness.hpp"
#include "tests/support/xds_world.hpp"

namespace signalbox::test {

struct SessionTree {
  explicit SessionTree(const lb::PolicyOptions& options = {}) : tree(options) {
    world.sessions(true);
  }

  void apply(const XdsWorld::Priorities& priorities) {
    world.eds("orders", priorities, default_lb_policy(), extras);
    tree.apply(manager_of({"orders"}), world.config());
  }

  XdsWorld world;
  ClusterExtras extras;
  TreeHarness tree;
};

}  // namespace signalbox::test
