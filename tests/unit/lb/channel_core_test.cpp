// SPDX-License-Identifier: Apache-2.0
#include "lb/channel_core.hpp"

#include <memory>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

#include "lb/pick/pickers.hpp"
#include "lb/session/seats.hpp"
#include "tests/support/printed.hpp"
#include "tests/support/scripted_picker.hpp"

namespace signalbox::lb {
namespace {

const Instant kNow{};

template <typename Effect>
std::vector<Effect> all_of(const ChannelEffects& effects) {
  std::vector<Effect> found;
  for (const ChannelEffect& effect : effects) {
    if (const auto* one = std::get_if<Effect>(&effect)) found.push_back(*one);
  }
  return found;
}

ConfigUpdated applied(const ChannelEffects& effects) {
  const auto orders = all_of<ApplyToRoot>(effects);
  REQUIRE(orders.size() == 1);
  return orders.front().update;
}

std::set<ClusterName> names(std::initializer_list<const char*> texts) {
  std::set<ClusterName> result;
  for (const char* text : texts)
    result.insert(ClusterName(text));
  return result;
}

// The clusters in the update's tree. `only_retiring`: only those that are `retiring`
// (lb_config.hpp).
std::set<ClusterName> tree_of(const ConfigUpdated& update, bool only_retiring = false) {
  std::set<ClusterName> result;
  for (const auto& [name, child] : std::get<ClusterManagerConfig>(*update.config).children) {
    if (child.retiring || !only_retiring) result.insert(name);
  }
  return result;
}

XdsConfigPtr routes_to(std::initializer_list<const char*> clusters) {
  auto routes = std::make_shared<RouteConfig>();
  VirtualHost host;
  host.domains = {"*"};
  for (const char* cluster : clusters) {
    Route route;
    route.match.path = TextMatcher{TextMatcher::Kind::kExact, std::string("/") + cluster, false};
    ForwardAction action;
    action.clusters.push_back(WeightedCluster{ClusterName(cluster), 1});
    route.action = std::move(action);
    host.routes.push_back(std::move(route));
  }
  routes->virtual_hosts.push_back(std::move(host));
  auto config = std::make_shared<XdsConfig>();
  config->listener = std::make_shared<const Listener>();
  config->route_config = routes;
  config->virtual_host = &config->route_config->virtual_hosts.front();
  for (const char* cluster : clusters) {
    auto found = std::make_shared<ClusterConfig>();
    auto resource = std::make_shared<Cluster>();
    resource->name = ClusterName(cluster);
    found->cluster = std::move(resource);
    config->clusters.emplace(ClusterName(cluster), ClusterConfigPtr(std::move(found)));
  }
  return config;
}

ResolutionNotesPtr notes(const std::string& target) {
  return std::make_shared<const ResolutionNotes>(ResolutionNotes{"node ID: n", target, {}});
}

// A channel core; its root policy answers when the test calls root().
class Channel {
 public:
  ChannelEffects config(std::initializer_list<const char*> clusters) {
    return step(XdsConfigArrived{routes_to(clusters)});
  }

  ChannelEffects config(XdsConfigPtr config, const std::string& note) {
    return step(XdsConfigArrived{std::move(config), notes(note)});
  }

  ChannelEffects root(Generation generation, ConnectivityState state = ConnectivityState::kReady) {
    return step(RootPublished{state, make_queue_picker(), generation});
  }

  ChannelEffects grace(std::uint64_t sequence) { return step(SnapshotGracePassed{sequence}); }

  ChannelEffects step(const ChannelEvent& event) { return core_.step(event, now); }

  /// The use of the cluster by a call; it ends when the returned Use is destroyed.
  Use call_to(const char* cluster) { return Use(*refs_.at(ClusterName(cluster)).lock()); }

  bool knows(const char* cluster) { return !refs_.at(ClusterName(cluster)).expired(); }

  Instant now = kNow;

 private:
  std::map<ClusterName, std::weak_ptr<const ClusterRef>> refs_;
  ChannelCore core_{[this](const ClusterName& name) {
                      auto ref = std::make_shared<const ClusterRef>(
                          name, std::make_shared<const CallStats>());
                      refs_[name] = ref;
                      return ref;
                    },
                    Snapshot{}};
};

PublishSnapshot published(const ChannelEffects& effects) {
  const auto snapshots = all_of<PublishSnapshot>(effects);
  REQUIRE(snapshots.size() == 1);
  return snapshots.front();
}

}  // namespace

TEST_CASE("channel_core: the first snapshot of a configuration says how long it took",
          "[lb][channel_core][metrics]") {
  Channel channel;
  using std::chrono::seconds;
  const Instant response = kNow - seconds(5);
  channel.now = kNow;
  channel.step(XdsConfigArrived{routes_to({"a"}), notes(""), {{"7", "", "8", "9"}, response}});
  channel.now = kNow + seconds(2);
  const auto applied = published(channel.root(1)).applied;
  REQUIRE(applied);
  CHECK(applied->origin.versions == ResourceVersions{"7", "", "8", "9"});
  CHECK(applied->application == seconds(2));
  CHECK(applied->propagation == seconds(7));
  // A new picker alone does not count as an applied configuration.
  CHECK_FALSE(published(channel.root(1, ConnectivityState::kTransientFailure)).applied);
  // A configuration that is replaced before the root answers is never published.
  channel.config({"a"});
  channel.now += seconds(1);
  channel.step(XdsConfigArrived{routes_to({"b"}), notes(""), {{"10", "", "", ""}, std::nullopt}});
  CHECK(all_of<PublishSnapshot>(channel.root(2, ConnectivityState::kTransientFailure)).empty());
  channel.now += seconds(3);
  const auto next = published(channel.root(3)).applied;
  REQUIRE(next);
  CHECK(next->origin.versions[0] == "10");
  CHECK(next->application == seconds(3));
  CHECK(next->propagation == std::nullopt);
  // The loss of a configuration does not count as an applied configuration either.
  channel.step(XdsConfigLost{absl::NotFoundError("deleted")});
  CHECK_FALSE(published(channel.root(4)).applied);
}

TEST_CASE("channel_core: a selector is used only after the root has answered its generation",
          "[lb][channel_core][A31-7][A31-18]") {
  Channel channel;
  const auto first = channel.config({"a"});
  CHECK(applied(first).generation == 1);
  CHECK(all_of<PublishSnapshot>(first).empty());

  const auto snapshot = published(channel.root(1)).snapshot;
  CHECK(snapshot.selector != nullptr);
  CHECK(snapshot.picker != nullptr);
  CHECK(snapshot.generation == 1);

  SECTION("newer pickers go out under the old selector until then") {
    CHECK(applied(channel.config({"a", "b"})).generation == 2);
    const auto late = published(channel.root(1, ConnectivityState::kConnecting)).snapshot;
    CHECK(late.selector == snapshot.selector);
    CHECK(late.sequence > snapshot.sequence);

    const auto next = published(channel.root(2)).snapshot;
    CHECK(next.selector != snapshot.selector);
    CHECK(next.generation == 2);
  }
}

TEST_CASE("channel_core: a snapshot knows its sessions' cookie, and where cookies lead",
          "[lb][channel_core][A55-6]") {
  const auto config = std::make_shared<XdsConfig>(*routes_to({"a"}));
  auto listener = std::make_shared<Listener>();
  const bool has_sessions = GENERATE(true, false);
  if (has_sessions) {
    listener->filters.push_back(
        {"session",
         "type",
         StatefulSessionFilter{SessionCookie{"s", "", Duration::zero()}, false},
         false});
  }
  config->listener = listener;
  const Seats seats(1);
  Channel channel;
  channel.config(config, "");
  const auto effects =
      channel.step(RootPublished{ConnectivityState::kReady, testing::hinting(&seats), 1});
  CHECK(published(effects).snapshot.sessions.cookie() == (has_sessions ? "s" : ""));
  CHECK(published(effects).snapshot.sessions.seats() == (has_sessions ? &seats : nullptr));
}

TEST_CASE("channel_core: a new cluster is in the tree that comes with the selector naming it",
          "[lb][channel_core][A31-18]") {
  Channel channel;
  channel.config({"a"});
  channel.root(1);
  CHECK(tree_of(applied(channel.config({"a", "b"}))) == names({"a", "b"}));
}

TEST_CASE("channel_core: a new cluster stays while the selector that names it waits for its tree",
          "[lb][channel_core][A31-14][A31-18]") {
  Channel channel;
  channel.config({"a"});
  const std::uint64_t sequence = published(channel.root(1)).snapshot.sequence;
  channel.config({"a", "b"});
  CHECK(channel.grace(sequence).empty());
  CHECK(channel.knows("b"));
  CHECK(published(channel.root(2)).snapshot.clusters->contains(ClusterName("b")));
}

TEST_CASE("channel_core: a cluster is removed in two steps",
          "[lb][channel_core][A31-14][A31-15][A31-16]") {
  Channel channel;
  channel.config({"a", "b"});
  const std::uint64_t old_sequence = published(channel.root(1)).snapshot.sequence;
  auto call = channel.call_to("b");

  // Step 1: the new selector can no longer choose cluster b, and the tree still has b.
  const auto step1 = channel.config({"a"});
  CHECK(tree_of(applied(step1)) == names({"a", "b"}));
  CHECK(tree_of(applied(step1), true) == names({"b"}));
  channel.root(2);

  SECTION("not before the old selector can be called no more") {
    call = Use();
    CHECK(channel.grace(old_sequence - 1).empty());
    CHECK(tree_of(applied(channel.grace(old_sequence))) == names({"a"}));
  }
  SECTION("not while a call refers to it") {
    const auto waiting = channel.grace(old_sequence);
    CHECK(all_of<ApplyToRoot>(waiting).empty());
    const auto timers = all_of<StartTimer>(waiting);
    REQUIRE(timers.size() == 1);
    CHECK(timers.front().delay == ChannelCore::kScanInterval);

    const auto still = channel.step(TimerFired{timers.front().timer});
    CHECK(all_of<ApplyToRoot>(still).empty());
    REQUIRE(all_of<StartTimer>(still).size() == 1);

    call = Use();
    const auto gone = channel.step(TimerFired{all_of<StartTimer>(still).front().timer});
    CHECK(applied(gone).generation == 3);
    CHECK(tree_of(applied(gone)) == names({"a"}));
    REQUIRE(all_of<ReferToClusters>(gone).size() == 1);
    CHECK(all_of<ReferToClusters>(gone).front().clusters == names({"a"}));
  }
  SECTION("not for another one's timer") {
    const auto timers = all_of<StartTimer>(channel.grace(old_sequence));
    REQUIRE(timers.size() == 1);
    call = Use();
    TimerId other = timers.front().timer;
    --other.generation;
    CHECK(channel.step(TimerFired{other}).empty());
    CHECK(tree_of(applied(channel.step(TimerFired{timers.front().timer}))) == names({"a"}));
  }
  SECTION("and not at all if the routes name it again meanwhile") {
    call = Use();
    channel.config({"a", "b"});
    channel.root(3);
    CHECK(all_of<ApplyToRoot>(channel.grace(old_sequence + 1)).empty());
    CHECK(channel.knows("b"));
  }
}

TEST_CASE("channel_core: a cluster of a configuration that was overtaken goes as well",
          "[lb][channel_core][A31-15]") {
  Channel channel;
  channel.config({"a"});
  channel.root(1);
  channel.config({"a", "passing"});
  channel.config({"a"});
  const std::uint64_t sequence = published(channel.root(3)).snapshot.sequence;
  CHECK(tree_of(applied(channel.grace(sequence - 1))) == names({"a"}));
}

TEST_CASE("channel_core: clusters that are kept stay in the configuration that the tree is given",
          "[lb][channel_core][A31-14]") {
  Channel channel;
  channel.config({"a", "b"});
  channel.root(1);
  const auto call = channel.call_to("b");

  const auto effects = channel.config({"a"});
  CHECK(applied(effects).xds->clusters.contains(ClusterName("b")));
  CHECK(all_of<ReferToClusters>(effects).front().clusters == names({"a", "b"}));
}

TEST_CASE("channel_core: an aggregate that is kept stays with the leaves that are known",
          "[lb][channel_core][A31-14]") {
  auto first = std::make_shared<XdsConfig>(*routes_to({"all", "bad"}));
  auto aggregate = std::make_shared<ClusterConfig>(**first->clusters.at(ClusterName("all")));
  aggregate->children = AggregateLeaves{{ClusterName("leaf"), ClusterName("unknown")}};
  first->clusters.insert_or_assign(ClusterName("all"), ClusterConfigPtr(aggregate));
  first->clusters.insert_or_assign(ClusterName("bad"), absl::NotFoundError("no such cluster"));
  first->clusters.emplace(ClusterName("leaf"), std::make_shared<const ClusterConfig>());
  first->clusters.emplace(ClusterName("other"), std::make_shared<const ClusterConfig>());
  Channel channel;
  channel.config(first, "");
  channel.root(1);
  const Use to_all = channel.call_to("all");
  const Use to_bad = channel.call_to("bad");

  std::set<ClusterName> given;
  const ConfigUpdated update = applied(channel.config({"a"}));
  for (const auto& [name, unused] : update.xds->clusters)
    given.insert(name);
  CHECK(given == names({"a", "all", "bad", "leaf"}));
}

TEST_CASE("channel_core: a cluster that is gone leaves the snapshots", "[lb][channel_core]") {
  Channel channel;
  channel.config({"a", "b"});
  const std::uint64_t sequence = published(channel.root(1)).snapshot.sequence;
  channel.config({"a"});
  channel.root(2);
  REQUIRE(tree_of(applied(channel.grace(sequence))) == names({"a"}));
  const auto next = published(channel.root(3, ConnectivityState::kTransientFailure)).snapshot;
  CHECK(next.clusters->contains(ClusterName("a")));
  CHECK_FALSE(next.clusters->contains(ClusterName("b")));
}

TEST_CASE("channel_core: a cluster with calls is looked at by one timer", "[lb][channel_core]") {
  Channel channel;
  channel.config({"a", "b"});
  const std::uint64_t sequence = published(channel.root(1)).snapshot.sequence;
  Use call = channel.call_to("b");
  channel.config({"a"});
  channel.root(2);
  const auto timers = all_of<StartTimer>(channel.grace(sequence));
  REQUIRE(timers.size() == 1);
  CHECK(channel.grace(sequence + 1).empty());
  CHECK(channel.grace(0).empty());  // News of an older snapshot, which changes nothing.
  call = Use();
  CHECK(tree_of(applied(channel.step(TimerFired{timers.front().timer}))) == names({"a"}));
}

TEST_CASE("channel_core: an order to leave IDLE goes to the root", "[lb][channel_core]") {
  Channel channel;
  channel.config({"a"});
  CHECK(all_of<ExitIdleRoot>(channel.step(IdleExitRequested{})).size() == 1);
}

TEST_CASE("channel_core: a lost configuration fails new calls and keeps the tree for old ones",
          "[lb][channel_core]") {
  Channel channel;
  channel.config({"a"});
  const std::uint64_t sequence = published(channel.root(1)).snapshot.sequence;
  auto call = channel.call_to("a");

  const auto lost = channel.step(XdsConfigLost{absl::UnavailableError("no such listener")});
  CHECK(tree_of(applied(lost)) == names({"a"}));
  const auto failing = published(channel.root(2));
  CHECK(failing.snapshot.selector == nullptr);
  CHECK(failing.snapshot.failure.message() == "no such listener");
  CHECK(failing.state == ConnectivityState::kTransientFailure);

  const auto waiting = channel.grace(sequence);
  call = Use();
  const auto gone = channel.step(TimerFired{all_of<StartTimer>(waiting).front().timer});
  CHECK(tree_of(applied(gone)).empty());
}

TEST_CASE("channel_core: state edges are published at once, mere pickers behind the burst",
          "[lb][channel_core]") {
  Channel channel;
  channel.config({"a"});
  channel.root(1, ConnectivityState::kConnecting);
  CHECK(all_of<PublishSnapshot>(channel.root(1, ConnectivityState::kReady)).size() == 1);

  const auto first = channel.root(1);
  CHECK(all_of<PublishSnapshot>(first).empty());
  CHECK(all_of<RebuildSoon>(first).size() == 1);
  CHECK(channel.root(1).empty());
  CHECK(all_of<PublishSnapshot>(channel.step(RebuildDue{})).size() == 1);
  CHECK(channel.step(RebuildDue{}).empty());

  // A change of the state publishes the picker that waited for the end of the burst, too.
  CHECK(all_of<RebuildSoon>(channel.root(1)).size() == 1);
  CHECK(all_of<PublishSnapshot>(channel.root(1, ConnectivityState::kConnecting)).size() == 1);
  CHECK(channel.step(RebuildDue{}).empty());
}

TEST_CASE("channel_core: a note that changes alone is published, and applied to nobody",
          "[lb][channel_core][A88]") {
  Channel channel;
  const XdsConfigPtr config = routes_to({"a"});
  channel.config(config, "");
  CHECK(published(channel.root(1)).snapshot.notes->target.empty());

  // The control plane is lost and comes back; only the note changes.
  const auto lost = channel.config(config, "refused");
  CHECK(all_of<ApplyToRoot>(lost).empty());
  CHECK(all_of<ReferToClusters>(lost).empty());
  CHECK(all_of<RebuildSoon>(lost).size() == 1);
  CHECK(channel.config(config, "still refused").empty());
  const auto noted = published(channel.step(RebuildDue{})).snapshot;
  CHECK(noted.notes->target == "still refused");
  CHECK(noted.generation == 1);
  CHECK(noted.selector != nullptr);
  channel.config(config, "");
  const auto back = published(channel.step(RebuildDue{})).snapshot;
  CHECK(back.notes->target.empty());
  CHECK(back.generation == 1);

  SECTION("a configuration that is lost takes its note along, but for the node") {
    channel.config(config, "refused");
    channel.step(XdsConfigLost{absl::UnavailableError("no such listener")});
    const auto failing = published(channel.root(2)).snapshot;
    CHECK(failing.notes->target.empty());
    CHECK(failing.notes->node == "node ID: n");
    SECTION("and when it comes again, it is applied") {
      CHECK(applied(channel.config(config, "")).generation == 3);
    }
  }
}

TEST_CASE("channel_core: a note waits for the routes that it came with",
          "[lb][channel_core][A88]") {
  Channel channel;
  const XdsConfigPtr config = routes_to({"a"});
  channel.config(config, "");
  CHECK(channel.config(config, "refused").empty());
  CHECK(published(channel.root(1)).snapshot.notes->target == "refused");
}

TEST_CASE("channel_core: a root that survived no configuration fails calls, until the next one",
          "[lb][channel_core]") {
  Channel channel;
  SECTION("of routes") {
    channel.config({"a"});
    channel.step(RootDied{});
    const auto failing = published(channel.step(RootGivenUp{}));
    CHECK(failing.state == ConnectivityState::kTransientFailure);
    CHECK(failing.snapshot.selector == nullptr);
    CHECK(failing.snapshot.failure.code() == absl::StatusCode::kUnavailable);
    CHECK_THAT(std::string(failing.snapshot.failure.message()),
               Catch::Contains("could not be applied"));

    CHECK(applied(channel.config({"a", "b"})).generation == 2);
    const auto good = published(channel.root(2)).snapshot;
    CHECK(good.selector != nullptr);
    CHECK(good.failure.ok());
    CHECK(good.sequence > failing.snapshot.sequence);
  }
  SECTION("of none: then calls fail for what was wrong before") {
    channel.step(XdsConfigLost{absl::UnavailableError("no such listener")});
    channel.step(RootDied{});
    CHECK(published(channel.step(RootGivenUp{})).snapshot.failure.message() == "no such listener");
  }
  SECTION("but what serves already serves on") {
    channel.config({"a"});
    channel.root(1);
    channel.config({"a", "b"});
    channel.step(RootDied{});
    CHECK(channel.step(RootGivenUp{}).empty());
  }
}

TEST_CASE("channel_core: the last picker serves while the root comes back", "[lb][channel_core]") {
  Channel channel;
  channel.config({"a"});
  channel.root(1);
  channel.step(RootDied{});
  CHECK(channel.root(1, ConnectivityState::kConnecting).empty());
  CHECK(channel.root(1, ConnectivityState::kIdle).empty());
  CHECK(all_of<RebuildSoon>(channel.root(1)).size() == 1);

  SECTION("and after that it may connect again") {
    CHECK(published(channel.root(1, ConnectivityState::kConnecting)).state ==
          ConnectivityState::kConnecting);
  }
  SECTION("but a new selector needs the new root's picker") {
    channel.step(RootDied{});
    channel.config({"a", "b"});
    CHECK(published(channel.root(2, ConnectivityState::kConnecting)).snapshot.generation == 2);
  }
}

TEST_CASE("channel_core: a root that came back with an older configuration is not routed by",
          "[lb][channel_core][A31-7][A31-19]") {
  Channel channel;
  channel.config({"a"});
  channel.root(1);
  channel.config({"a", "b"});
  channel.root(2);
  channel.step(RootDied{});
  CHECK(channel.root(1).empty());
  CHECK(channel.root(1, ConnectivityState::kTransientFailure).empty());
  CHECK(channel.step(RebuildDue{}).empty());
  CHECK(published(channel.root(2, ConnectivityState::kTransientFailure)).snapshot.generation == 2);
}

TEST_CASE("channel_core: sequences rise by one from the first that it was given",
          "[lb][channel_core]") {
  Channel channel;
  channel.config({"a"});
  CHECK(published(channel.root(1)).snapshot.sequence == 1);
  CHECK(published(channel.root(1, ConnectivityState::kIdle)).snapshot.sequence == 2);
}

TEST_CASE("channel_core: one that is restarted goes on where the last snapshot ends",
          "[lb][channel_core][A31-13][A31-15]") {
  const auto old_ref =
      std::make_shared<const ClusterRef>(ClusterName("old"), std::make_shared<const CallStats>());
  Snapshot last;
  last.generation = 7;
  last.sequence = 40;
  last.clusters = std::make_shared<const ClusterRefs>(ClusterRefs{{ClusterName("old"), old_ref}});
  const auto make_ref = [](const ClusterName& name) {
    return std::make_shared<const ClusterRef>(name, std::make_shared<const CallStats>());
  };
  ChannelCore core(make_ref, last);
  const auto step = [&](const ChannelEvent& event) { return core.step(event, kNow); };
  Use call(*old_ref);

  const auto applied = all_of<ApplyToRoot>(step(XdsConfigArrived{routes_to({"new"})}));
  REQUIRE(applied.size() == 1);
  CHECK(applied.front().update.generation == 8);
  CHECK(tree_of(applied.front().update) == names({"new", "old"}));
  CHECK(tree_of(applied.front().update, true) == names({"old"}));
  const auto next =
      published(step(RootPublished{ConnectivityState::kReady, make_queue_picker(), 8})).snapshot;
  CHECK(next.generation == 8);
  CHECK(next.sequence == 41);
  CHECK(next.clusters->contains(ClusterName("old")));

  SECTION("the old cluster stays while a call holds it, and goes after it") {
    CHECK(all_of<ApplyToRoot>(step(SnapshotGracePassed{40})).empty());
    call = Use();
    const auto without = all_of<ApplyToRoot>(step(SnapshotGracePassed{40}));
    REQUIRE(without.size() == 1);
    CHECK(tree_of(without.front().update) == names({"new"}));
  }
}

TEST_CASE("channel_core: one that is restarted has the last note, until another comes",
          "[lb][channel_core][A88]") {
  Snapshot last;
  last.generation = 7;
  last.sequence = 40;
  last.notes = notes("refused");
  const auto make_ref = [](const ClusterName& name) {
    return std::make_shared<const ClusterRef>(name, std::make_shared<const CallStats>());
  };
  ChannelCore core(make_ref, last);
  const auto root = [&](Generation generation) {
    return published(
               core.step(RootPublished{ConnectivityState::kReady, make_queue_picker(), generation},
                         kNow))
        .snapshot;
  };
  SECTION("the node is named though its watcher has nothing to tell but that all is lost") {
    core.step(XdsConfigLost{absl::UnavailableError("gone")}, kNow);
    const ResolutionNotesPtr noted = root(8).notes;
    REQUIRE(noted != nullptr);
    CHECK(noted->node == "node ID: n");
    CHECK(noted->target.empty());
  }
  SECTION("what a restarted watcher notes takes its place") {
    core.step(XdsConfigArrived{routes_to({"a"}), notes("")}, kNow);
    CHECK(root(8).notes->target.empty());
    core.step(XdsConfigArrived{routes_to({"a"}), notes("refused again")}, kNow);
    CHECK(root(9).notes->target == "refused again");
  }
}

TEST_CASE("channel_core: one that is restarted publishes nothing until its routes are complete",
          "[lb][channel_core][A31-7]") {
  Snapshot last;
  last.generation = 7;
  last.sequence = 40;
  const auto make_ref = [](const ClusterName& name) {
    return std::make_shared<const ClusterRef>(name, std::make_shared<const CallStats>());
  };
  ChannelCore core(make_ref, last);
  core.step(XdsConfigArrived{routes_to({"a"})}, kNow);
  const XdsConfigPtr newer = routes_to({"a", "b"});
  core.step(XdsConfigArrived{newer}, kNow);
  CHECK(core.step(XdsConfigArrived{newer, notes("refused")}, kNow).empty());
  core.step(RootDied{}, kNow);
  CHECK(core.step(RootGivenUp{}, kNow).empty());
  const auto root = [&](Generation generation) {
    return core.step(RootPublished{ConnectivityState::kReady, make_queue_picker(), generation},
                     kNow);
  };
  CHECK(root(8).empty());
  CHECK(published(root(9)).snapshot.generation == 9);
}

TEST_CASE("channel_core: one that is restarted without a configuration fails new calls",
          "[lb][channel_core]") {
  Snapshot last;
  last.clusters = std::make_shared<const ClusterRefs>(
      ClusterRefs{{ClusterName("old"),
                   std::make_shared<const ClusterRef>(ClusterName("old"),
                                                      std::make_shared<const CallStats>())}});
  ChannelCore core(nullptr, last);
  const auto applied =
      all_of<ApplyToRoot>(core.step(XdsConfigLost{absl::UnavailableError("gone")}, kNow));
  REQUIRE(applied.size() == 1);
  CHECK(applied.front().update.xds != nullptr);
}

}  // namespace signalbox::lb
