// SPDX-License-Identifier: Apache-2.0
//
// The work for one change of a large configuration. It is counted in effects and messages, never in
// time. There are 10,000 endpoints (100,000 that refuse), 1,000 clusters and 10,000 routes.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <catch2/catch.hpp>

#include "lb/leaf/round_robin.hpp"
#include "lb/route/config_selector.hpp"
#include "tests/support/route_fixture.hpp"
#include "tests/support/tree_harness.hpp"
#include "tests/support/xds_world.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

using namespace signalbox;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

constexpr int kEndpoints = 10'000;
constexpr int kRefused = 100'000;
constexpr int kClusters = 1'000;
constexpr int kRoutes = 10'000;

Texts numbered(const std::string& prefix, int count) {
  Texts names;
  for (int number = 0; number < count; ++number)
    names.push_back(absl::StrCat(prefix, number));
  return names;
}

template <typename Effect>
std::vector<Effect> all_of(const LbEffects& effects) {
  std::vector<Effect> found;
  for (const LbEffect& effect : effects) {
    if (const auto* it = std::get_if<Effect>(&effect)) found.push_back(*it);
  }
  return found;
}

/// A tree with one cluster of two localities. One locality has `count` endpoints, all connected.
class ManyEndpoints {
 public:
  explicit ManyEndpoints(int count) : many_(numbered("e", count)) {
    apply();
    for (const std::string& endpoint : many_)
      tree.up(endpoint);
    tree.up("other");
    tree.take_log();
  }

  void replace_one() {
    tree.up("new");
    many_[many_.size() / 2] = "new";
    apply();
  }

  TreeHarness tree;

 private:
  void apply() {
    world_.eds("orders", {absl::StrCat("a:", absl::StrJoin(many_, ","), " b:other")});
    tree.apply(manager_of({"orders"}), world_.config());
  }

  XdsWorld world_;
  Texts many_;
};

std::size_t messages_of_one_change(int endpoints) {
  ManyEndpoints world(endpoints);
  const std::size_t before = world.tree.messages();
  world.replace_one();
  return world.tree.messages() - before;
}

/// The number of messages when the only endpoint of one of `clusters` clusters is replaced.
std::size_t messages_of_one_cluster(int clusters) {
  TreeHarness tree;
  XdsWorld world;
  const Texts names = numbered("c", clusters);
  for (const std::string& name : names)
    world.eds(name, {"a:" + name + "-1"});
  tree.apply(manager_of(names), world.config());
  const std::size_t before = tree.messages();
  world.eds(names.front(), {"a:another"});
  tree.apply(manager_of(names), world.config());
  return tree.messages() - before;
}

struct Recovery {
  std::string served;  ///< The answer of a pick, before any time passed.
  std::size_t messages = 0;
};

/// `refused` endpoints of a cluster all refuse connections; then EDS replaces them by one that
/// serves. The result says what a pick then gets, and after how many messages.
Recovery recovery_from(int refused) {
  TreeHarness tree;
  XdsWorld world;
  const Texts all = numbered("e", refused);
  for (const std::string& endpoint : all)
    tree.down(endpoint);
  tree.up("good");
  world.eds("orders", {absl::StrCat("a:", absl::StrJoin(all, ","))});
  tree.apply(manager_of({"orders"}), world.config());
  REQUIRE(tree.pick("orders").starts_with("fail "));
  const std::size_t before = tree.messages();
  world.eds("orders", {"a:good"});
  tree.apply(manager_of({"orders"}), world.config());
  return {tree.pick("orders"), tree.messages() - before};
}

}  // namespace

namespace signalbox::lb {

TEST_CASE("scale: one of 10,000 endpoints replaced is one acquired and one released",
          "[scale][A61][round_robin]") {
  LeafHarness harness(make_leaf(RoundRobinConfig{}, {}));
  Texts endpoints = numbered("e", kEndpoints);
  harness.update(endpoints);
  for (const std::string& endpoint : endpoints)
    harness.ready(endpoint);
  harness.step(RebuildDue{});

  endpoints[kEndpoints / 2] = "new";
  const LbEffects effects = harness.update(endpoints);

  const auto acquired = all_of<AcquireSubchannel>(effects);
  const auto released = all_of<ReleaseSubchannel>(effects);
  REQUIRE(acquired.size() == 1);
  CHECK(acquired[0].address == Address("new"));
  REQUIRE(released.size() == 1);
  CHECK(released[0].address == Address(absl::StrCat("e", kEndpoints / 2)));
  // The third effect is RebuildSoon: the policy builds one picker at the end of the burst.
  CHECK(effects.size() == 3);
  CHECK(all_of<RebuildSoon>(effects).size() == 1);
}

TEST_CASE("scale: a burst of 10,000 READY is two pickers", "[scale][round_robin]") {
  LeafHarness harness(make_leaf(RoundRobinConfig{}, {}));
  const Texts endpoints = numbered("e", kEndpoints);
  harness.update(endpoints);

  std::size_t published = 0;
  for (const std::string& endpoint : endpoints)
    published += all_of<Publish>(harness.ready(endpoint)).size();
  published += all_of<Publish>(harness.step(RebuildDue{})).size();

  CHECK(published == 2);  // The first READY at once, then the others together.
}

TEST_CASE("scale: the same 10,000 endpoints again change nothing", "[scale][round_robin]") {
  LeafHarness harness(make_leaf(RoundRobinConfig{}, {}));
  Texts endpoints = numbered("e", kEndpoints);
  harness.update(endpoints);
  for (const std::string& endpoint : endpoints)
    harness.ready(endpoint);
  harness.step(RebuildDue{});

  CHECK(harness.update(endpoints).size() == 1);  // The only effect is ReportApplied.
}

TEST_CASE("scale: one of 10,000 endpoints replaced takes as many messages as one of ten",
          "[scale][tree]") {
  CHECK(messages_of_one_change(kEndpoints) == messages_of_one_change(10));
}

TEST_CASE("scale: of 10,000 connections one is made and one closed", "[scale][tree]") {
  ManyEndpoints world(kEndpoints);

  world.replace_one();

  Texts connections;
  for (const std::string& line : world.tree.take_log()) {
    if (line.starts_with("subchannel ")) connections.push_back(line);
  }
  CHECK(connections == Texts{"subchannel new CONNECTING",
                             "subchannel new READY",
                             absl::StrCat("subchannel e", kEndpoints / 2, " closed")});
}

// No timer runs before the pick, because the harness's time stands still. So the recovery takes as
// long as its messages: at most one more for each further endpoint.
TEST_CASE("scale: after 100,000 refused endpoints a good one serves for a message each",
          "[scale][tree][A61]") {
  constexpr int kFew = 10;
  const Recovery few = recovery_from(kFew);
  const Recovery many = recovery_from(kRefused);
  CHECK(few.served == "complete good");
  CHECK(many.served == "complete good");
  CHECK(many.messages - few.messages <= kRefused - kFew);
}

TEST_CASE("scale: one of 1,000 clusters changed costs the others a message and its answer",
          "[scale][tree]") {
  const std::size_t alone = messages_of_one_cluster(1);
  CHECK(messages_of_one_cluster(kClusters) == alone + std::size_t{2} * (kClusters - 1));
}

TEST_CASE("scale: each of 10,000 routes to 1,000 clusters is found", "[scale][A31]") {
  std::vector<Route> routes;
  routes.reserve(kRoutes);
  for (int number = 0; number < kRoutes; ++number) {
    routes.push_back(testing::route(testing::exact(absl::StrCat("/svc/m", number)),
                                    testing::to(absl::StrCat("c", number % kClusters))));
  }
  const XdsConfig config = testing::config_of(std::move(routes));
  CHECK(clusters_of(config).size() == kClusters);
  const ConfigSelectorPtr selector = make_config_selector(config, testing::refs_for(config));

  int wrong = 0;
  for (int number = 0; number < kRoutes; ++number) {
    const std::string path = absl::StrCat("/svc/m", number);
    PickArgs args;
    args.path = path;
    const auto selected = selector->select(args);
    const auto* selection = std::get_if<Selection>(&selected);
    const ClusterName expected(absl::StrCat("c", number % kClusters));
    if (selection == nullptr || selection->cluster->name() != expected) ++wrong;
  }
  CHECK(wrong == 0);
}

}  // namespace signalbox::lb
