// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/cluster_manager.hpp"

#include <set>

#include <catch2/catch.hpp>

#include "lb/pick/pickers.hpp"
#include "lb/session/seats.hpp"
#include "lb/tree/cluster_manager_picker.hpp"
#include "tests/support/policy_harness.hpp"
#include "tests/support/printed.hpp"
#include "tests/support/scripted_picker.hpp"
#include "tests/support/xds_world.hpp"

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

PickerPtr found(const ClusterTable& table, const ClusterName& cluster, std::size_t place = 0) {
  const ChildPicker* const picker = table.find(cluster, place);
  return picker == nullptr ? nullptr : picker->get();
}

}  // namespace

TEST_CASE("cluster_manager: one step starts, stops, updates and publishes",
          "[lb][cluster_manager][A31-11][A31-12][A31-18]") {
  PolicyHarness policy{make_cluster_manager()};
  CHECK(policy.update(manager_of({"a", "b"})) == Texts{"start a", "start b", "publish CONNECTING"});
  CHECK(policy.published()->generation == 1);
  CHECK(policy.pick("a") == "queue");
  CHECK(policy.pick("b") == "queue");

  policy.child("a", kReady);
  CHECK(policy.update(manager_of({"a", "c"})) ==
        Texts{"stop b", "update a", "start c", "publish READY"});
  CHECK(policy.published()->generation == 2);
  CHECK(policy.pick("a") == "fail UNAVAILABLE: a READY");
  CHECK(policy.pick("c") == "queue");
}

TEST_CASE("cluster_manager: an unknown cluster is dropped with INTERNAL",
          "[lb][cluster_manager][A31-19]") {
  PolicyHarness policy{make_cluster_manager()};
  policy.update(manager_of({"a"}));
  CHECK(policy.pick("x") == "drop INTERNAL: no such cluster: x");
  CHECK(to_text(policy.published()->picker->pick({})) == "drop INTERNAL: no such cluster: (none)");
}

TEST_CASE("cluster_manager: a retiring cluster holds no call for ever",
          "[lb][cluster_manager][A31-14][A31-17]") {
  PolicyHarness policy{make_cluster_manager()};
  policy.update(manager_of({"a"}));
  const auto retire = [&] { policy.update(manager_of({}, {"a"})); };

  SECTION("it is kept, and updated") {
    CHECK(policy.update(manager_of({}, {"a"})) == Texts{"update a", "publish CONNECTING"});
  }
  SECTION("failing becomes dropping") {
    policy.child("a", kFailure);
    CHECK(policy.pick("a").starts_with("fail UNAVAILABLE"));
    retire();
    CHECK(policy.pick("a") ==
          "drop UNAVAILABLE: cluster a is no longer routed to: a TRANSIENT_FAILURE");
  }
  SECTION("queueing stays while it connects, and ends with that") {
    retire();
    CHECK(policy.pick("a") == "queue");
    policy.child("a", kFailure);
    CHECK(policy.pick("a").starts_with("drop UNAVAILABLE"));
  }
  SECTION("a call waits for its endpoint in every state: others may be READY or fail") {
    retire();
    for (const auto state : {kReady, kFailure, kIdle, kConnecting}) {
      policy.step(ChildStateChanged{ChildName("a"), state, {}, make_queue_picker()});
      policy.step(RebuildDue{});
      CHECK(policy.pick("a") == "queue");
    }
  }
  SECTION("a cluster without configuration drops") {
    ClusterManagerConfig config;
    config.children[ClusterName("a")] = {nullptr, true};
    CHECK(policy.update(make_lb_config(config))[0] == "stop a");
    CHECK(policy.pick("a") == "drop UNAVAILABLE: cluster a was deleted");
  }
  SECTION("one that is routed to again is as before") {
    policy.child("a", kFailure);
    retire();
    policy.update(manager_of({"a"}));
    CHECK(policy.pick("a") == "fail UNAVAILABLE: a TRANSIENT_FAILURE");
  }
}

TEST_CASE("cluster_manager: state edges go out at once, a burst of pickers as one",
          "[lb][cluster_manager]") {
  PolicyHarness policy{make_cluster_manager()};
  policy.update(manager_of({"a", "b", "c"}));
  CHECK(policy.child("a", kReady) == Texts{"publish READY"});
  CHECK(policy.child("b", kReady) == Texts{"rebuild-soon"});
  CHECK(policy.child("c", kReady).empty());
  CHECK(policy.pick("b") == "queue");
  CHECK(policy.step(RebuildDue{}) == Texts{"publish READY"});
  CHECK(policy.pick("b") == "fail UNAVAILABLE: b READY");
  CHECK(policy.pick("c") == "fail UNAVAILABLE: c READY");
  CHECK(policy.step(RebuildDue{}).empty());
  // The next burst is ordered anew. An update publishes all pickers, so RebuildDue has nothing to
  // do after it, although cluster b has reported and is gone.
  CHECK(policy.child("b", kReady) == Texts{"rebuild-soon"});
  policy.update(manager_of({"a", "c"}));
  CHECK(policy.step(RebuildDue{}).empty());
}

TEST_CASE("cluster_manager: the last words of a child that is gone change nothing",
          "[lb][cluster_manager]") {
  PolicyHarness policy{make_cluster_manager()};
  policy.update(manager_of({"a", "b"}));
  policy.update(manager_of({"a"}));
  CHECK(policy.child("b", kReady).empty());
  CHECK(policy.step(RebuildDue{}).empty());
  CHECK(policy.pick("b") == "drop INTERNAL: no such cluster: b");
}

TEST_CASE("cluster_manager: is as well as its best child", "[lb][cluster_manager]") {
  PolicyHarness policy{make_cluster_manager()};
  policy.update(manager_of({"a", "b"}));
  policy.child("a", kFailure);
  CHECK(policy.published()->state == kConnecting);
  policy.child("b", kIdle);
  CHECK(policy.published()->state == kIdle);
  policy.child("b", kFailure);
  CHECK(policy.published()->state == kFailure);
  CHECK_FALSE(policy.published()->status.ok());
  policy.child("a", kReady);
  CHECK(policy.published()->state == kReady);
  CHECK(policy.step(IdleExitRequested{}) == Texts{"exit-idle a", "exit-idle b"});
}

TEST_CASE("cluster table: a guessed place is no more than a guess", "[lb][cluster_manager]") {
  const ClusterTable::Changes entries = {{ClusterName("b"), named_picker("b")},
                                         {ClusterName("a"), named_picker("a")},
                                         {ClusterName("c"), named_picker("c")}};
  const ClusterTable table{entries};
  for (std::size_t place = 0; place < 5; ++place) {
    for (const auto& [name, picker] : entries)
      CHECK(found(table, name, place) == picker);
    CHECK(table.find(ClusterName("bb"), place) == nullptr);
  }
  CHECK(ClusterTable().find(ClusterName("a")) == nullptr);
}

TEST_CASE("cluster table: the hint of sessions is that of the only cluster that has one",
          "[lb][cluster_manager][session]") {
  const SessionHint hint;
  const SessionHint more;
  const auto hint_of = [](const std::vector<const SessionHint*>& all) {
    ClusterTable::Changes entries;
    for (const SessionHint* one : all)
      entries.emplace_back(ClusterName(std::to_string(entries.size())), testing::hinting(one));
    return make_cluster_picker(ClusterTable(entries))->session_hint();
  };
  CHECK(hint_of({}) == nullptr);
  CHECK(hint_of({nullptr}) == nullptr);
  CHECK(hint_of({&hint}) == &hint);
  CHECK(hint_of({nullptr, &hint, nullptr}) == &hint);
  CHECK(hint_of({&hint, &more}) == nullptr);
  CHECK(hint_of({&hint, nullptr, &more}) == nullptr);
  std::vector<const SessionHint*> many(32, nullptr);
  many.front() = &hint;
  CHECK(hint_of(many) == &hint);
  many.push_back(nullptr);
  CHECK(hint_of(many) == nullptr);
}

TEST_CASE("cluster table: changes leave all others as they are", "[lb][cluster_manager]") {
  ClusterTable::Changes entries;
  for (int i = 0; i < 1000; ++i)
    entries.emplace_back(ClusterName(std::to_string(i)), named_picker(std::to_string(i)));
  const ClusterTable before{entries};
  const PickerPtr fresh = named_picker("fresh");
  // Two changed clusters are neighbours in the table, and two are far from them.
  const std::set<int> changed = {0, 500, 501, 999};
  ClusterTable::Changes changes = {{ClusterName("nobody"), fresh}};
  for (const int i : changed)
    changes.emplace_back(ClusterName(std::to_string(i)), fresh);
  const ClusterTable after = before.with(changes);

  for (const int i : changed)
    CHECK(found(after, ClusterName(std::to_string(i))) == fresh);
  CHECK(after.find(ClusterName("nobody")) == nullptr);
  bool same = true;
  for (int i = 0; i < 1000; ++i) {
    const ClusterName name(std::to_string(i));
    same = same && found(before, name) == entries[static_cast<std::size_t>(i)].second;
    if (!changed.contains(i)) same = same && found(after, name) == found(before, name);
  }
  CHECK(same);
}
