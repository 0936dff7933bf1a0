// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/support/dependency_world.hpp"

namespace signalbox::xds {
namespace {

using namespace std::chrono_literals;
using namespace tests;

bool contains(absl::string_view text, absl::string_view part) {
  return absl::StrContains(text, part);
}

const absl::Status kLost = absl::UnavailableError("xDS server cp: refused");

}  // namespace

// --- from the listener to the routes -----------------------------------------

TEST_CASE("dependency manager: follows listener, routes, clusters and endpoints to one config",
          "[xds][depend][A74]") {
  DependencyWorld world;
  CHECK(world.started == Lines{"watch LDS orders"});
  CHECK(world.set(lds("orders"), rds_listener("orders", "r")) == Lines{"watch RDS r"});
  CHECK(world.set(rds("r"), routes_to("r", {"a", "b"})) == Lines{"watch CDS a", "watch CDS b"});
  CHECK(world.set(cds("a"), eds_cluster("a", "e")) == Lines{"watch EDS e"});
  CHECK(world.set(eds("e"), endpoints({{locality("l", {"1"})}})).empty());
  CHECK(world.set(cds("b"), dns_cluster("b", "host:1")) == Lines{"resolve host:1"});
  CHECK(world.resolve("host:1", {"10.0.0.1:1"}) == Lines{"config"});

  REQUIRE(world.config != nullptr);
  CHECK(world.config->authority == "orders.example");
  CHECK(world.config->listener->name == "orders");
  CHECK(world.config->virtual_host == world.config->route_config->virtual_hosts.data());
  CHECK(world.clusters() == std::set<std::string>{"a", "b"});
  CHECK(world.leaf("a").endpoints->priorities.size() == 1);
  CHECK(world.note.empty());
}

TEST_CASE("dependency manager: what the first configuration waits for is known until it is there",
          "[xds][depend][A74]") {
  DependencyWorld world;
  CHECK(world.awaited() == Awaited{lds("orders")});
  world.set(lds("orders"), rds_listener("orders", "r"));
  CHECK(world.awaited() == Awaited{rds("r")});
  SECTION("a configuration ends the wait, and what later ones wait for is no part of it") {
    world.set(rds("r"), routes_to("r", {"a", "b"}));
    CHECK(world.awaited() == Awaited{cds("a")});
    world.set(cds("a"), eds_cluster("a", "e"));
    world.set(cds("b"), dns_cluster("b", "host:1"));
    CHECK(world.awaited() == Awaited{eds("e")});
    world.set(eds("e"), endpoints({{locality("l", {"1"})}}));
    CHECK(world.awaited() == Awaited{DnsName{"host:1"}});
    world.resolve("host:1", {"10.0.0.1:1"});
    CHECK(world.awaited() == std::nullopt);
    CHECK(world.set(rds("r"), routes_to("r", {"c"})) == Lines{"watch CDS c"});
    CHECK(world.awaited() == std::nullopt);
  }
  SECTION("so does an error") {
    world.gone(lds("orders"));
    CHECK(world.awaited() == std::nullopt);
    world.set(lds("orders"), rds_listener("orders", "other"));
    CHECK(world.awaited() == std::nullopt);
  }
}

TEST_CASE("dependency manager: a cluster of weight 0 is there for sessions only",
          "[xds][depend][A55-47][A60]") {
  RouteConfig routes = *routes_to("routes", {"a"});
  std::get<ForwardAction>(routes.virtual_hosts[0].routes[0].action)
      .clusters.push_back({ClusterName{"b"}, 0});
  const auto shared = std::make_shared<const RouteConfig>(std::move(routes));
  Listener listener = *inline_listener("orders", shared);
  DependencyWorld world;
  SECTION("without a session filter nothing watches it") {
    CHECK(world.set(lds("orders"), std::make_shared<const Listener>(listener)) ==
          Lines{"watch CDS a"});
    world.add_leaf("a");
    CHECK(world.clusters() == std::set<std::string>{"a"});
  }
  SECTION("with one it is in the configuration") {
    listener.filters = {{"session", "StatefulSession", StatefulSessionFilter{}},
                        {"router", "Router"}};
    CHECK(world.set(lds("orders"), std::make_shared<const Listener>(listener)) ==
          Lines{"watch CDS a", "watch CDS b"});
    world.add_leaf("a");
    CHECK(world.config == nullptr);  // The configuration waits for b.
    world.add_leaf("b");
    REQUIRE(world.config != nullptr);
    CHECK(world.clusters() == std::set<std::string>{"a", "b"});
    // The next routes do not need b. Until their configuration is complete, b stays in use.
    CHECK(world.route_to({"c"}) == Lines{"watch CDS c"});
    CHECK(world.clusters() == std::set<std::string>{"a", "b"});
    world.add_leaf("c");
    CHECK(world.clusters() == std::set<std::string>{"c"});
  }
}

TEST_CASE("dependency manager: a cluster is let go with the session filter that needed it",
          "[xds][depend][A55-47][A60]") {
  RouteConfig routes = *routes_to("r", {"a"});
  std::get<ForwardAction>(routes.virtual_hosts[0].routes[0].action)
      .clusters.push_back({ClusterName{"b"}, 0});
  const Listener without = *rds_listener("orders", "r");
  Listener with = without;
  with.filters = {{"session", "StatefulSession", StatefulSessionFilter{}}, {"router", "Router"}};
  DependencyWorld world;
  world.set(lds("orders"), std::make_shared<const Listener>(with));
  world.set(rds("r"), std::make_shared<const RouteConfig>(routes));
  world.add_leaf("a");
  world.add_leaf("b");
  REQUIRE(world.clusters() == std::set<std::string>{"a", "b"});
  const Lines lines = world.set(lds("orders"), std::make_shared<const Listener>(without));
  CHECK(world.clusters() == std::set<std::string>{"a"});
  CHECK(std::ranges::count(lines, "unwatch CDS b") == 1);
}

TEST_CASE("dependency manager: two clusters with the same endpoints or name watch them once",
          "[xds][depend][A37-10]") {
  DependencyWorld world;
  world.route_to({"a", "b", "c", "d"});
  CHECK(world.set(cds("a"), eds_cluster("a", "e")) == Lines{"watch EDS e"});
  CHECK(world.set(cds("b"), eds_cluster("b", "e")).empty());
  CHECK(world.set(cds("c"), dns_cluster("c", "h:1")) == Lines{"resolve h:1"});
  CHECK(world.set(cds("d"), dns_cluster("d", "h:1")).empty());
  world.resolve("h:1", {"1"});
  CHECK(world.set(eds("e"), endpoints({{locality("l", {"1"})}})) == Lines{"config"});
  CHECK(world.leaf("a").endpoints == world.leaf("b").endpoints);
}

TEST_CASE("dependency manager: without listener, routes or virtual host calls fail UNAVAILABLE",
          "[xds][depend][A36][A74][A88]") {
  DependencyWorld world;
  SECTION("no listener") {
    CHECK(world.gone(lds("orders")) == Lines{"error"});
    CHECK(contains(world.error.message(), "LDS resource \"orders\""));
    CHECK(contains(world.error.message(), "does not exist"));
    CHECK(world.gone(lds("orders")).empty());
  }
  SECTION("no server") {
    CHECK(world.fail(lds("orders"), kLost) == Lines{"error"});
    CHECK(contains(world.error.message(), "refused"));
  }
  SECTION("a listener of servers") {
    CHECK(world.set(lds("orders"),
                    std::make_shared<const Listener>(
                        Listener{"orders", SocketListener{}, {}, {}})) == Lines{"error"});
    CHECK(contains(world.error.message(), "LDS resource \"orders\""));
    CHECK(contains(world.error.message(), "must be an API listener"));
  }
  SECTION("no route configuration") {
    world.set(lds("orders"), rds_listener("orders", "r"));
    CHECK(world.gone(rds("r")) == Lines{"error"});
    CHECK(contains(world.error.message(), "RDS resource \"r\""));
  }
  SECTION("no virtual host") {
    CHECK(world.set(lds("orders"),
                    inline_listener("orders", routes_to("routes", {"a"}, "other.example"))) ==
          Lines{"error"});
    CHECK(contains(world.error.message(),
                   "no virtual host of route configuration \"routes\" has a domain that matches "
                   "\"orders.example\"; its domains are: \"other.example\""));
  }
  SECTION("no virtual host at all") {
    CHECK(world.set(lds("orders"), inline_listener("orders", std::make_shared<RouteConfig>())) ==
          Lines{"error"});
    CHECK(contains(world.error.message(),
                   "no virtual host of listener \"orders\" has a domain that matches "
                   "\"orders.example\"; it has no virtual hosts"));
  }
  CHECK(world.error.code() == absl::StatusCode::kUnavailable);
  CHECK(contains(world.error.message(), "xds:///orders"));
  CHECK(contains(world.error.message(), "node-1"));
  // A usable configuration ends the error.
  world.route_to({"a"});
  world.add_leaf("a");
  CHECK(world.config != nullptr);
}

TEST_CASE("dependency manager: a listener that was deleted is why there is no virtual host",
          "[xds][depend][A74][A88]") {
  DependencyWorld world;
  world.set(lds("orders"), rds_listener("orders", "r"));
  world.set(rds("r"), routes_to("r", {"a"}));
  world.add_leaf("a");
  REQUIRE(world.config != nullptr);
  world.ambient(lds("orders"), absl::NotFoundError("LDS resource \"orders\" was deleted"));
  REQUIRE(world.config != nullptr);  // Kept (A88) while a virtual host matches.
  world.set(rds("r"), routes_to("r", {"a"}, "other.example"));
  CHECK(world.error.message() ==
        "xds:///orders: LDS resource \"orders\" was deleted (node ID: node-1)");
}

TEST_CASE("dependency manager: a listener that is deleted takes everything with it",
          "[xds][depend][A74][A37-15]") {
  DependencyWorld world;
  world.set(lds("orders"), rds_listener("orders", "r"));
  world.set(rds("r"), routes_to("r", {"a", "b"}));
  world.add_leaf("a");
  world.add_leaf("b");
  REQUIRE(world.config != nullptr);
  SECTION("all of it") {
    CHECK(world.gone(lds("orders")) == Lines{"unwatch RDS r",
                                             "error",
                                             "unwatch CDS a",
                                             "unwatch CDS b",
                                             "unwatch EDS a-eds",
                                             "unwatch EDS b-eds"});
  }
  SECTION("and told again, with the same error, if it had come back") {
    world.gone(lds("orders"));
    world.set(lds("orders"), rds_listener("orders", "r"));
    world.set(rds("r"), routes_to("r", {"a"}));
    world.add_leaf("a");
    REQUIRE(world.config != nullptr);
    const Lines again = world.gone(lds("orders"));
    CHECK(std::ranges::count(again, "error") == 1);
    CHECK(world.config == nullptr);
  }
  SECTION("but for what calls refer to") {
    world.reference({"a"});
    CHECK(world.gone(lds("orders")) ==
          Lines{"unwatch RDS r", "error", "unwatch CDS b", "unwatch EDS b-eds"});
  }
}

TEST_CASE("dependency manager: new routes replace the old ones once they are complete",
          "[xds][depend][A74][A37-15]") {
  DependencyWorld world;
  world.set(lds("orders"), rds_listener("orders", "r"));
  world.set(rds("r"), routes_to("r", {"a"}));
  world.add_leaf("a");
  const XdsConfigPtr old = world.config;
  CHECK(world.set(rds("r"), routes_to("r", {"b"})) == Lines{"watch CDS b"});
  CHECK(world.config == old);

  SECTION("the old ones keep being updated meanwhile") {
    CHECK(world.set(eds("a-eds"), endpoints({{locality("l", {"2"})}})) == Lines{"config"});
    CHECK(world.config->route_config == old->route_config);
    CHECK(world.leaf("a").endpoints->priorities[0].localities[0]->endpoints[0].addresses[0].str() ==
          "2");
  }
  SECTION("what only the old ones needed is unwatched then, and not before") {
    CHECK(world.set(cds("b"), eds_cluster("b", "b-eds")) == Lines{"watch EDS b-eds"});
    CHECK(world.set(eds("b-eds"), endpoints({{locality("l", {"3"})}})) ==
          Lines{"config", "unwatch CDS a", "unwatch EDS a-eds"});
    CHECK(world.clusters() == std::set<std::string>{"b"});
  }
}

TEST_CASE("dependency manager: a move to routes that cannot be had keeps those in use",
          "[xds][depend][A74]") {
  DependencyWorld world;
  world.set(lds("orders"), rds_listener("orders", "r1"));
  world.set(rds("r1"), routes_to("r1", {"a"}));
  world.add_leaf("a");
  CHECK(world.set(lds("orders"), rds_listener("orders", "r2")) ==
        Lines{"watch RDS r2", "unwatch RDS r1"});
  SECTION("for the moment") {
    CHECK(world.fail(rds("r2"), kLost) == Lines{"config"});
    CHECK(contains(world.note, "r2"));
    CHECK(contains(world.note, "refused"));
    CHECK(world.set(rds("r2"), routes_to("r2", {"a"})) == Lines{"config"});
    CHECK(world.note.empty());
  }
  SECTION("but not where they do not exist") {
    CHECK(world.gone(rds("r2")) == Lines{"error", "unwatch CDS a", "unwatch EDS a-eds"});
  }
  SECTION("and does not use what still comes of the routes before") {
    CHECK(world.set(rds("r1"), routes_to("r1", {"b"})).empty());
    CHECK(world.set(rds("r2"), routes_to("r2", {"c"})) == Lines{"watch CDS c"});
  }
}

TEST_CASE("dependency manager: routes in use that are revoked fail the target",
          "[xds][depend][A88]") {
  DependencyWorld world;
  world.set(lds("orders"), rds_listener("orders", "r"));
  world.set(rds("r"), routes_to("r", {"a"}));
  world.add_leaf("a");
  CHECK(world.fail(rds("r"), absl::UnavailableError("invalid")).front() == "error");
}

TEST_CASE("dependency manager: an ambient error of listener or routes is a note",
          "[xds][depend][A88]") {
  DependencyWorld world;
  world.set(lds("orders"), rds_listener("orders", "r"));
  world.set(rds("r"), routes_to("r", {"a"}));
  world.add_leaf("a");
  const XdsConfigPtr config = world.config;
  CHECK(world.ambient(lds("orders"), kLost) == Lines{"config"});
  CHECK(contains(world.note, "LDS resource \"orders\": xDS server cp: refused"));
  CHECK(world.ambient(rds("r"), kLost) == Lines{"config"});
  CHECK(contains(world.note, "RDS resource \"r\""));
  world.ambient(rds("r"), absl::OkStatus());
  world.ambient(lds("orders"), absl::OkStatus());
  CHECK(world.note.empty());
  CHECK(world.config == config);
}

// --- unchanged parts keep their pointers --------------------------------------

TEST_CASE("dependency manager: nothing is emitted when nothing changed", "[xds][depend][A74]") {
  DependencyWorld world;
  world.route_to({"a"});
  world.add_leaf("a");
  const Resource same = endpoints({{locality("l", {"a:1"})}});
  CHECK(world.set(eds("a-eds"), same).empty());
  CHECK(world.reference({"a"}).empty());
  CHECK(world.ambient(cds("a"), absl::OkStatus()).empty());
}

// The manager itself, because DependencyWorld hides timers of zero length.
TEST_CASE("dependency manager: what it does not watch, and what changes nothing, has no effect",
          "[xds][depend][A74]") {
  DependencyManager manager({"xds:///t", "l", "t", "n", 1, MissingLeaf::kSkip, {}});
  const auto step = [&](const DependencyEvent& event) { return manager.step(event, Instant{}); };
  const auto set = [&](const ResourceKey& key, Resource resource) {
    return step(ResourcesChanged{{ResourceChanged{key, std::move(resource)}}});
  };
  manager.start();
  set(lds("l"), inline_listener("l", routes_to("r", {"a"})));
  set(cds("a"), eds_cluster("a", "e"));
  REQUIRE(set(eds("e"), endpoints({{locality("l", {"1"})}})).size() == 1);
  for (const ResourceKey& key : {lds("x"), rds("x"), cds("x"), eds("x")}) {
    CAPTURE(to_string(key.type));
    CHECK(step(ResourcesChanged{{ResourceChanged{key, absl::NotFoundError("gone")}}}).empty());
    CHECK(step(ResourcesChanged{{AmbientErrorChanged{key, kLost}}}).empty());
  }
  CHECK(step(NameResolved{DnsName{"x:1"}, absl::UnavailableError("no such host")}).empty());
  CHECK(step(ReresolutionRequested{}).empty());
  CHECK(step(ClientReplaced{}).empty());
  CHECK(step(TimerFired{TimerId{"x", 1}}).empty());
}

TEST_CASE("dependency manager: what did not change is the same pointer", "[xds][depend][A74]") {
  DependencyWorld world;
  world.route_to({"a", "b", "agg"});
  world.set(cds("agg"), aggregate("agg", {"a", "b"}));
  world.add_leaf("b");
  world.set(cds("a"), eds_cluster("a", "e"));
  world.set(eds("e"), endpoints({{locality("x", {"1", "2"}), locality("y", {"3"})}}));
  const XdsConfigPtr before = world.config;
  REQUIRE(before != nullptr);
  const auto localities = [&] { return world.leaf("a").endpoints->priorities; };
  const LocalityPtr x = localities()[0].localities[0];
  const LocalityPtr y = localities()[0].localities[1];

  // One endpoint changes in y, and x moves to another priority.
  CHECK(world.set(eds("e"), endpoints({{locality("y", {"4"})}, {locality("x", {"1", "2"})}})) ==
        Lines{"config"});
  const ClusterName b{"b"};
  const ClusterName agg{"agg"};
  CHECK(*world.config->clusters.at(b) == *before->clusters.at(b));
  CHECK(*world.config->clusters.at(agg) == *before->clusters.at(agg));
  CHECK(world.config->route_config == before->route_config);
  CHECK(localities()[1].localities[0] == x);
  CHECK(localities()[0].localities[0] != y);
}

TEST_CASE("dependency manager: localities that get no calls are shared, too",
          "[xds][depend][A74][ENV-9]") {
  DependencyWorld world;
  world.route_to({"a"});
  world.set(cds("a"), eds_cluster("a", "e"));
  const auto update = [&](const char* degraded, const char* unhealthy) {
    auto made = std::make_shared<Endpoints>(*endpoints({{locality("x", {"1"})}}));
    made->priorities[0].degraded = {std::make_shared<const Locality>(*locality("x", {degraded}))};
    made->priorities[0].unhealthy = {std::make_shared<const Locality>(*locality("x", {unhealthy}))};
    world.set(eds("e"), EndpointsPtr(std::move(made)));
    return world.leaf("a").endpoints->priorities[0];
  };
  const Priority first = update("2", "3");
  const Priority other_degraded = update("4", "3");
  CHECK(other_degraded.localities == first.localities);
  CHECK(other_degraded.degraded != first.degraded);
  CHECK(other_degraded.unhealthy == first.unhealthy);
  const Priority other_unhealthy = update("4", "5");
  CHECK(other_unhealthy.degraded == other_degraded.degraded);
  CHECK(other_unhealthy.unhealthy != other_degraded.unhealthy);
}

TEST_CASE("dependency manager: a leaf that moves in its aggregate is the same leaf",
          "[xds][depend][A75-13]") {
  DependencyWorld world;
  world.route_to({"agg"});
  world.set(cds("agg"), aggregate("agg", {"a", "b"}));
  world.add_leaf("a");
  world.add_leaf("b");
  const XdsConfigPtr before = world.config;
  CHECK(world.set(cds("agg"), aggregate("agg", {"b", "a"})) == Lines{"config"});
  CHECK(world.leaves("agg") == std::vector<std::string>{"b", "a"});
  for (const char* name : {"a", "b"}) {
    CHECK(*world.config->clusters.at(ClusterName{name}) == *before->clusters.at(ClusterName{name}));
  }
}

TEST_CASE("dependency manager: a configuration says its versions, and when its response came",
          "[xds][depend][metrics]") {
  DependencyWorld world;
  const auto respond = [&](const ResourceKey& key,
                           Resource resource,
                           const char* version,
                           Instant at) {
    return world.step(ResourcesChanged{{ResourceChanged{key, std::move(resource), version}}, at});
  };
  const Instant first{1h};
  const Instant second{2h};
  respond(lds("orders"), inline_listener("orders", routes_to("r", {"a"})), "7", first);
  respond(cds("a"), eds_cluster("a", "e"), "8", first);
  REQUIRE(respond(eds("e"), endpoints({{locality("l", {"a:1"})}}), "9", second) == Lines{"config"});
  CHECK(world.origin.versions == ResourceVersions{"7", "", "8", "9"});
  CHECK(world.origin.response_at == second);

  // Changes that no response caused have no time of a response: an ambient error here, and a
  // missing cluster below.
  world.ambient(cds("a"), kLost);
  CHECK(world.origin.response_at == std::nullopt);
  REQUIRE(respond(eds("e"), endpoints({{locality("l", {"a:2"})}}), "10", first) == Lines{"config"});
  CHECK(world.origin.versions[3] == "10");
  CHECK(world.origin.response_at == first);
  REQUIRE(world.reference({"other"}) == Lines{"watch CDS other"});
  REQUIRE(world.gone(cds("other")) == Lines{"config"});
  CHECK(world.origin.response_at == std::nullopt);
}

TEST_CASE("dependency manager: a burst of changes is answered by one config",
          "[xds][depend][S14]") {
  DependencyManager manager({"xds:///t", "l", "t", "n", 1, MissingLeaf::kSkip, {}});
  const auto count = [](const DependencyEffects& effects, auto is) {
    return std::count_if(effects.begin(), effects.end(), is);
  };
  const auto is_config = [](const DependencyEffect& effect) {
    return std::holds_alternative<EmitConfig>(effect);
  };
  const auto set = [&](const ResourceKey& key, Resource resource) {
    return manager.step(ResourcesChanged{{ResourceChanged{key, std::move(resource)}}}, Instant{});
  };
  manager.start();
  set(lds("l"), inline_listener("l", routes_to("r", {"a", "b"})));
  set(cds("a"), eds_cluster("a", "ea"));
  set(cds("b"), eds_cluster("b", "eb"));
  set(eds("ea"), endpoints({{locality("l", {"1"})}}));
  // The first configuration is emitted at once.
  CHECK(count(set(eds("eb"), endpoints({{locality("l", {"2"})}})), is_config) == 1);

  const auto first = set(eds("ea"), endpoints({{locality("l", {"3"})}}));
  REQUIRE(first.size() == 1);
  const auto& timer = std::get<StartTimer>(first[0]);
  CHECK(timer.delay == Duration::zero());
  CHECK(set(eds("eb"), endpoints({{locality("l", {"4"})}})).empty());
  CHECK(manager.step(ResourcesChanged{{AmbientErrorChanged{cds("a"), kLost}}}, Instant{}).empty());
  CHECK(count(manager.step(TimerFired{timer.timer}, Instant{}), is_config) == 1);
  CHECK(manager.step(TimerFired{timer.timer}, Instant{}).empty());
  // An error is emitted at once, and drops the configuration that waits for its timer.
  const auto next = set(eds("ea"), endpoints({{locality("l", {"5"})}}));
  const auto gone = manager.step(
      ResourcesChanged{{ResourceChanged{lds("l"), absl::NotFoundError("gone")}}}, Instant{});
  CHECK(std::holds_alternative<EmitError>(gone[0]));
  CHECK(manager.step(TimerFired{std::get<StartTimer>(next[0]).timer}, Instant{}).empty());
}

TEST_CASE("dependency manager: a thousand clusters told at once are one step",
          "[xds][depend][scale]") {
  std::vector<std::string> names;
  ResourcesChanged clusters;
  ResourcesChanged leaves;
  for (int i = 0; i < 1000; ++i) {
    names.push_back(absl::StrCat("c", i));
    clusters.changes.emplace_back(
        ResourceChanged{cds(names.back()), Resource{eds_cluster(names.back(), names.back())}});
    leaves.changes.emplace_back(
        ResourceChanged{eds(names.back()), Resource{endpoints({{locality("l", {names.back()})}})}});
  }
  DependencyWorld world;
  CHECK(world.route_to(names).size() == 1000);
  const Lines watched = world.step(clusters);
  CHECK(watched.size() == 1000);
  CHECK(std::ranges::all_of(watched,
                            [](const auto& line) { return absl::StartsWith(line, "watch EDS "); }));
  CHECK(world.step(leaves) == Lines{"config"});
  CHECK(world.clusters().size() == 1000);
}

// --- clusters ----------------------------------------------------------------

TEST_CASE("dependency manager: a cluster that cannot be used fails alone",
          "[xds][depend][A74][A75-11]") {
  DependencyWorld world;
  world.route_to({"a", "b", "agg"});
  world.set(cds("agg"), aggregate("agg", {"a", "b"}));
  world.gone(cds("a"));
  world.add_leaf("b");
  REQUIRE(world.config != nullptr);
  CHECK(world.cluster_error("a").code() == absl::StatusCode::kUnavailable);
  CHECK(contains(world.cluster_error("a").message(), "CDS resource \"a\": does not exist"));
  CHECK(contains(world.cluster_error("a").message(), "node-1"));
  CHECK(world.leaf("b").endpoints != nullptr);
  CHECK(world.leaves("agg") == std::vector<std::string>{"b"});
  // Cluster a is back as soon as it exists.
  world.add_leaf("a");
  CHECK(world.leaves("agg") == std::vector<std::string>{"a", "b"});
}

TEST_CASE("dependency manager: where so configured, a missing leaf fails its aggregate",
          "[xds][depend][A37-13]") {
  DependencyWorld world(MissingLeaf::kFailAggregate);
  world.route_to({"agg"});
  world.set(cds("agg"), aggregate("agg", {"a", "b"}));
  world.gone(cds("a"));
  world.add_leaf("b");
  CHECK(world.cluster_error("agg").code() == absl::StatusCode::kUnavailable);
}

TEST_CASE("dependency manager: clusters that calls refer to stay in the config",
          "[xds][depend][A74][A31-13]") {
  DependencyWorld world;
  world.route_to({"a"});
  world.add_leaf("a");
  CHECK(world.reference({"a", "c"}) == Lines{"watch CDS c"});
  CHECK(world.set(cds("c"), eds_cluster("c", "c-eds")) == Lines{"watch EDS c-eds"});
  CHECK(world.set(eds("c-eds"), endpoints({{locality("l", {"1"})}})) == Lines{"config"});
  CHECK(world.clusters() == std::set<std::string>{"a", "c"});
  CHECK(world.reference({}) == Lines{"unwatch CDS c", "unwatch EDS c-eds", "config"});
  CHECK(world.clusters() == std::set<std::string>{"a"});
}

// --- endpoints ---------------------------------------------------------------

TEST_CASE("dependency manager: an EDS error leaves the cluster without endpoints, and says why",
          "[xds][depend][A37-23][A37-24]") {
  DependencyWorld world;
  world.route_to({"a"});
  world.set(cds("a"), eds_cluster("a", "e"));
  SECTION("before there were any") {
    CHECK(world.fail(eds("e"), kLost) == Lines{"config"});
  }
  SECTION("even if there were some") {
    world.set(eds("e"), endpoints({{locality("l", {"1"})}}));
    CHECK(world.gone(eds("e")) == Lines{"config"});
  }
  CHECK(world.leaf("a").endpoints == nullptr);
  CHECK(contains(world.leaf("a").resolution_note, "EDS resource \"e\""));
  // Another reason makes another configuration.
  CHECK(world.fail(eds("e"), absl::UnavailableError("another reason")) == Lines{"config"});
  CHECK(contains(world.leaf("a").resolution_note, "another reason"));
}

TEST_CASE("dependency manager: what is lost has no ambient error left", "[xds][depend][A88]") {
  DependencyWorld world;
  world.route_to({"a"});
  world.add_leaf("a");
  world.ambient(eds("a-eds"), kLost);
  world.gone(eds("a-eds"));
  CHECK(world.cluster_note("a").empty());
}

TEST_CASE("dependency manager: an ambient error keeps the endpoints, and is their note",
          "[xds][depend][A37-14][A88]") {
  DependencyWorld world;
  world.route_to({"a"});
  world.add_leaf("a");
  const XdsConfigPtr before = world.config;
  CHECK(world.ambient(eds("a-eds"), kLost) == Lines{"config"});
  CHECK(world.cluster_note("a") == "EDS resource \"a-eds\": xDS server cp: refused");
  CHECK(world.ambient(cds("a"), absl::UnavailableError("was rejected")) == Lines{"config"});
  CHECK(world.cluster_note("a") ==
        "CDS resource \"a\": was rejected; EDS resource \"a-eds\": xDS server cp: refused");
  CHECK(world.config == before);
  CHECK(world.leaf("a").resolution_note.empty());
  world.ambient(eds("a-eds"), absl::OkStatus());
  CHECK(world.ambient(cds("a"), absl::OkStatus()) == Lines{"config"});
  CHECK(world.notes->clusters.empty());
  CHECK(world.config == before);
}

TEST_CASE("dependency manager: a client that took another's place takes nothing away",
          "[xds][depend][A74][A88]") {
  DependencyWorld world;
  world.set(lds("orders"), rds_listener("orders", "r"));
  world.set(rds("r"), routes_to("r", {"a"}));
  world.add_leaf("a");
  const XdsConfigPtr config = world.config;
  REQUIRE(config != nullptr);
  CHECK(world.step(ClientReplaced{}).empty());

  SECTION("while it has no server, and does not find what there was") {
    CHECK(world.fail(lds("orders"), kLost) == Lines{"config"});
    CHECK(world.fail(rds("r"), kLost) == Lines{"config"});
    CHECK(world.gone(cds("a")) == Lines{"config"});
    CHECK(world.fail(eds("a-eds"), kLost) == Lines{"config"});
    CHECK(contains(world.note, "refused"));
    CHECK(world.leaf("a").endpoints != nullptr);
    CHECK(contains(world.cluster_note("a"), "does not exist"));
    CHECK(world.config == config);

    world.set(lds("orders"), rds_listener("orders", "r"));
    world.set(rds("r"), routes_to("r", {"a"}));
    CHECK(world.note.empty());
  }
  SECTION("until it has the resource itself") {
    world.set(lds("orders"), rds_listener("orders", "r"));
    const Lines lines = world.gone(lds("orders"));
    CHECK(std::find(lines.begin(), lines.end(), "error") != lines.end());
  }
  SECTION("what was in error before stays so") {
    DependencyWorld other;
    other.gone(lds("orders"));
    other.step(ClientReplaced{});
    CHECK(other.fail(lds("orders"), kLost).front() == "error");
  }
}

TEST_CASE("dependency manager: EDS without localities is one empty priority, with its drops",
          "[xds][depend][A37-25]") {
  DependencyWorld world;
  world.route_to({"a"});
  world.set(cds("a"), eds_cluster("a", "e"));
  auto nothing = std::make_shared<Endpoints>();
  nothing->drops = {{"throttle", 500000}};
  world.set(eds("e"), Resource{EndpointsPtr(nothing)});
  REQUIRE(world.leaf("a").endpoints->priorities.size() == 1);
  CHECK(world.leaf("a").endpoints->priorities[0].localities.empty());
  CHECK(world.leaf("a").endpoints->drops.size() == 1);
}

TEST_CASE("dependency manager: EDS with localities that all lack a weight is told in the note",
          "[xds][depend][A27]") {
  DependencyWorld world;
  world.route_to({"a"});
  world.set(cds("a"), eds_cluster("a", "e"));
  auto unweighted = std::make_shared<Endpoints>();
  unweighted->unweighted_localities = 1;
  world.set(eds("e"), Resource{EndpointsPtr(unweighted)});
  REQUIRE(world.leaf("a").endpoints != nullptr);
  CHECK(world.leaf("a").resolution_note ==
        "xds:///orders: EDS resource \"e\": none of its 1 localities counts: load_balancing_weight "
        "is 0 or unset; set it to 1 or more (node ID: node-1)");
  world.set(eds("e"), endpoints({{locality("l", {"1"})}}));
  CHECK(world.leaf("a").resolution_note.empty());
}

// --- names -------------------------------------------------------------------

TEST_CASE("dependency manager: a name that does not resolve is tried again, later and later",
          "[xds][depend][A37-23]") {
  DependencyWorld world;
  world.route_to({"d"});
  world.set(cds("d"), dns_cluster("d", "h:1"));
  CHECK(world.fail_to_resolve("h:1", "no such host") == Lines{"timer", "config"});
  CHECK(world.leaf("d").endpoints == nullptr);
  CHECK(contains(world.leaf("d").resolution_note, "h:1"));
  CHECK(contains(world.leaf("d").resolution_note, "no such host"));
  double base = 1.0;
  for (int attempt = 0; attempt < 14; ++attempt) {
    const double seconds = std::chrono::duration<double>(world.timer.delay).count();
    CHECK(seconds >= 0.8 * base - 1e-6);
    CHECK(seconds <= 1.2 * base + 1e-6);
    CHECK(world.step(ReresolutionRequested{}).empty());
    CHECK(world.elapse() == Lines{"resolve h:1"});
    CHECK(world.fail_to_resolve("h:1", "no such host") == Lines{"timer"});
    base = std::min(base * 1.6, 120.0);
  }
  world.elapse();
  CHECK(world.resolve("h:1", {"1"}) == Lines{"config"});
  CHECK(world.leaf("d").resolution_note.empty());
  // After a success, the waits begin anew.
  world.now += 1min;
  world.step(ReresolutionRequested{});
  world.fail_to_resolve("h:1", "no such host");
  CHECK(world.timer.delay <= 1200ms);
}

TEST_CASE("dependency manager: a failed look-up keeps the addresses known before",
          "[xds][depend][A37-23]") {
  DependencyWorld world;
  world.route_to({"d"});
  world.set(cds("d"), dns_cluster("d", "h:1"));
  world.resolve("h:1", {"1"});
  const EndpointsPtr before = world.leaf("d").endpoints;
  world.now += 1min;
  CHECK(world.step(ReresolutionRequested{}) == Lines{"resolve h:1"});
  SECTION("an error") {
    CHECK(world.fail_to_resolve("h:1", "timeout") == Lines{"timer", "config"});
  }
  SECTION("an empty answer") {
    CHECK(world.resolve("h:1", {}) == Lines{"timer", "config"});
  }
  CHECK(world.leaf("d").endpoints == before);
  CHECK(contains(world.cluster_note("d"), "DNS resolution of h:1 failed"));
}

TEST_CASE("dependency manager: asked to, it resolves all names again, 30 s apart at least",
          "[xds][depend][A74][A37-20]") {
  DependencyWorld world;
  world.route_to({"d", "f"});
  world.set(cds("d"), dns_cluster("d", "h:1"));
  world.set(cds("f"), dns_cluster("f", "h:2"));
  CHECK(world.step(ReresolutionRequested{}).empty());
  world.resolve("h:1", {"1"});
  world.resolve("h:2", {"2"});
  SECTION("at once where the answers are old") {
    world.now += 30s;
    CHECK(world.step(ReresolutionRequested{}) == Lines{"resolve h:1", "resolve h:2"});
    CHECK(world.step(ReresolutionRequested{}).empty());
  }
  SECTION("once they are, where they are fresh") {
    world.now += 10s;
    CHECK(world.step(ReresolutionRequested{}) == Lines{"timer", "timer"});
    CHECK(world.timer.delay == 20s);
    CHECK(world.step(ReresolutionRequested{}).empty());
    CHECK(world.elapse() == Lines{"resolve h:2"});
  }
}

TEST_CASE("dependency manager: a name that is needed no longer is forgotten, timer and all",
          "[xds][depend][A37-15]") {
  DependencyWorld world;
  world.route_to({"d"});
  world.set(cds("d"), dns_cluster("d", "h:1"));
  world.fail_to_resolve("h:1", "no such host");
  const TimerId old_timer = world.timer.timer;
  CHECK(world.set(cds("d"), eds_cluster("d", "e")) == Lines{"watch EDS e", "cancel"});
  CHECK(world.resolve("h:1", {"1"}).empty());
  CHECK(world.set(cds("d"), dns_cluster("d", "h:1")) == Lines{"unwatch EDS e", "resolve h:1"});
  CHECK(world.step(TimerFired{old_timer}).empty());
}

// --- error texts ---------------------------------------------------------------

TEST_CASE("dependency manager: an error names its resource once", "[xds][depend][A74]") {
  DependencyWorld world;
  world.fail(lds("orders"), absl::NotFoundError("LDS resource \"orders\" does not exist"));
  CHECK(world.error.message() ==
        "xds:///orders: LDS resource \"orders\" does not exist (node ID: node-1)");
  world.fail(lds("orders"), kLost);
  CHECK(world.error.message() ==
        "xds:///orders: LDS resource \"orders\": xDS server cp: refused (node ID: node-1)");
}

// --- any order ---------------------------------------------------------------

TEST_CASE("dependency manager: whatever the order of answers, the config is the same",
          "[xds][depend][A37-6][B1][S10]") {
  std::mt19937 chance(7);
  const std::vector<std::pair<ResourceKey, absl::StatusOr<Resource>>> answers = {
      {cds("agg"), Resource{aggregate("agg", {"a", "inner", "gone"})}},
      {cds("inner"), Resource{aggregate("inner", {"b", "agg"})}},
      {cds("gone"), absl::NotFoundError("gone")},
      {cds("a"), Resource{eds_cluster("a", "ea")}},
      {cds("b"), Resource{eds_cluster("b", "eb")}},
      {eds("ea"), absl::UnavailableError("lost")},
      {eds("eb"), Resource{endpoints({{locality("l", {"1"})}})}},
  };
  for (int round = 0; round < 200; ++round) {
    DependencyWorld world;
    std::set<std::string> watched;
    std::set<std::size_t> given;
    const auto note_watches = [&](const Lines& lines) {
      for (const std::string& line : lines) {
        if (absl::StartsWith(line, "watch ")) watched.insert(line.substr(6));
      }
    };
    note_watches(world.route_to({"agg"}));
    while (given.size() < answers.size()) {
      const std::size_t next = chance() % answers.size();
      const auto& [key, answer] = answers[next];
      if (!watched.contains(absl::StrCat(to_string(key.type), " ", key.name))) continue;
      if (!given.insert(next).second) continue;
      REQUIRE(world.config == nullptr);
      note_watches(world.step(ResourcesChanged{{ResourceChanged{key, answer}}}));
    }
    REQUIRE(world.config != nullptr);
    REQUIRE(world.leaves("agg") == std::vector<std::string>{"a", "b"});
    REQUIRE(world.clusters() == std::set<std::string>{"a", "agg", "b", "gone"});
  }
}

}  // namespace signalbox::xds
