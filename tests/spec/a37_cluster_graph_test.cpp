// SPDX-License-Identifier: Apache-2.0
//
// gRFC A37, "Aggregate and Logical DNS Clusters", as changed by A74 and A75: how the client
// resolves the graph of clusters.

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/support/dependency_world.hpp"
#include "xds/client/client_core.hpp"

namespace signalbox::xds {
namespace {

using namespace tests;
using Names = std::vector<std::string>;

// The routes lead to c1. Each of c1, c2, … is an aggregate of the next cluster. c<length> is a
// leaf.
void build_path(DependencyWorld& world, int length) {
  world.route_to({"c1"});
  for (int i = 1; i < length; ++i) {
    const std::string name = absl::StrCat("c", i);
    world.set(cds(name), aggregate(name, {absl::StrCat("c", i + 1)}));
  }
  world.add_leaf(absl::StrCat("c", length));
}

}  // namespace

// --- "XdsClient: CDS changes" --------------------------------------------------

SCENARIO("A37: a cluster's type says where its endpoints come from",
         "[spec][A37-1][A37-2][A37-3][A37-4]") {
  GIVEN("routes to a cluster") {
    DependencyWorld world;
    CHECK(world.route_to({"a"}) == Lines{"watch CDS a"});

    WHEN("it is an EDS cluster") {
      THEN("its endpoints are watched under the service name") {
        CHECK(world.set(cds("a"), eds_cluster("a", "service")) == Lines{"watch EDS service"});
      }
    }
    WHEN("it is a LOGICAL_DNS cluster") {
      THEN("its host and port are resolved, and no EDS resource is watched") {
        CHECK(world.set(cds("a"), dns_cluster("a", "legacy.example:8080")) ==
              Lines{"resolve legacy.example:8080"});
      }
    }
    WHEN("it is an aggregate") {
      THEN("its clusters are watched, and no EDS resource is") {
        CHECK(world.set(cds("a"), aggregate("a", {"c", "b"})) ==
              Lines{"watch CDS b", "watch CDS c"});
      }
      AND_THEN("they keep the aggregate's order") {
        world.set(cds("a"), aggregate("a", {"c", "b"}));
        world.add_leaf("b");
        world.add_leaf("c");
        CHECK(world.leaves("a") == Names{"c", "b"});
      }
    }
  }
}

SCENARIO("A37: an underlying cluster stands under its own name, with its own settings",
         "[spec][A37-5][A75-6]") {
  GIVEN("an aggregate of one EDS cluster") {
    DependencyWorld world;
    world.route_to({"agg"});
    world.set(cds("agg"), aggregate("agg", {"leaf"}));
    const ClusterPtr leaf = eds_cluster("leaf", "e");
    world.set(cds("leaf"), leaf);
    world.set(eds("e"), endpoints({{locality("l", {"1"})}}));

    THEN("load reports and policies find the leaf's own resource") {
      CHECK(world.cluster("leaf").cluster == leaf);
      CHECK(world.cluster("agg").cluster->lb_policy == nullptr);
    }
  }
}

// --- "LB policies: watching the graph" -----------------------------------------

SCENARIO("A37: the example of the document is flattened depth-first", "[spec][A37-7][A75-9]") {
  GIVEN("A of B and C, C of D and E; B and D are EDS clusters, E is LOGICAL_DNS") {
    DependencyWorld world;
    world.route_to({"A"});
    world.set(cds("A"), aggregate("A", {"B", "C"}));
    world.set(cds("C"), aggregate("C", {"D", "E"}));
    world.set(cds("E"), dns_cluster("E", "e.example:1"));
    world.add_leaf("B");
    world.add_leaf("D");
    CHECK(world.config == nullptr);
    world.resolve("e.example:1", {"10.0.0.1:1"});

    THEN("A stands for B, D, E, one flat list, and C is not in the picture") {
      CHECK(world.leaves("A") == Names{"B", "D", "E"});
      CHECK(world.clusters() == std::set<std::string>{"A", "B", "D", "E"});
    }
    WHEN("C is routed to as well") {
      world.route_to({"A", "C"});
      THEN("it has its own leaves") {
        CHECK(world.leaves("C") == Names{"D", "E"});
        CHECK(world.leaves("A") == Names{"B", "D", "E"});
      }
    }
  }
}

SCENARIO("A37: nothing is passed on until all leaves are known", "[spec][A37-6]") {
  GIVEN("an aggregate of a leaf and an aggregate") {
    DependencyWorld world;
    world.route_to({"A"});
    world.set(cds("A"), aggregate("A", {"B", "C"}));
    world.add_leaf("B");
    CHECK(world.config == nullptr);
    world.set(cds("C"), aggregate("C", {"D"}));
    CHECK(world.config == nullptr);
    world.set(cds("D"), eds_cluster("D", "D-eds"));
    CHECK(world.config == nullptr);

    WHEN("the last leaf has its endpoints") {
      THEN("the configuration goes out, once and whole") {
        CHECK(world.set(eds("D-eds"), endpoints({{locality("l", {"1"})}})) == Lines{"config"});
      }
    }
    WHEN("the last leaf turns out to have none") {
      THEN("that is an answer, too") {
        CHECK(world.gone(eds("D-eds")) == Lines{"config"});
      }
    }
    WHEN("the aggregate grows once it is in use") {
      world.gone(eds("D-eds"));
      const XdsConfigPtr before = world.config;
      CHECK(world.set(cds("C"), aggregate("C", {"D", "F"})) == Lines{"watch CDS F"});
      THEN("the configuration in use stays until the new leaf is known") {
        CHECK(world.config == before);
        world.add_leaf("F");
        CHECK(world.leaves("A") == Names{"B", "D", "F"});
      }
    }
  }
}

SCENARIO("A37: a cluster that appears twice keeps its earliest place", "[spec][A37-8]") {
  GIVEN("A of C and B, C of B and D") {
    DependencyWorld world;
    world.route_to({"A"});
    world.set(cds("A"), aggregate("A", {"C", "B"}));
    world.set(cds("C"), aggregate("C", {"D", "B"}));
    world.add_leaf("B");
    world.add_leaf("D");
    THEN("B stands once, where it comes first") {
      CHECK(world.leaves("A") == Names{"D", "B"});
    }
  }
}

SCENARIO("A37: a loop in the graph ends", "[spec][A37-9][B10]") {
  GIVEN("A of B, B of A") {
    DependencyWorld world;
    world.route_to({"A"});
    world.set(cds("A"), aggregate("A", {"B"}));
    WHEN("there is nothing else") {
      CHECK(world.set(cds("B"), aggregate("B", {"A"})) == Lines{"config"});
      THEN("there is no leaf, and calls fail UNAVAILABLE") {
        CHECK(world.cluster_error("A").code() == absl::StatusCode::kUnavailable);
      }
    }
    WHEN("B also has a leaf") {
      world.set(cds("B"), aggregate("B", {"A", "C"}));
      world.add_leaf("C");
      THEN("the leaf serves") {
        CHECK(world.leaves("A") == Names{"C"});
      }
    }
  }
}

SCENARIO("A37: a cluster used directly and through an aggregate is subscribed to once",
         "[spec][A37-10]") {
  GIVEN("one target that uses B both ways") {
    DependencyWorld world;
    CHECK(world.route_to({"A", "B"}) == Lines{"watch CDS A", "watch CDS B"});
    THEN("it is watched once, and both uses see each change") {
      CHECK(world.set(cds("A"), aggregate("A", {"B"})).empty());
      world.add_leaf("B");
      CHECK(world.leaves("A") == Names{"B"});
      CHECK(world.leaf("B").endpoints != nullptr);
      world.gone(cds("B"));
      CHECK_FALSE(world.cluster_error("A").ok());
      CHECK_FALSE(world.cluster_error("B").ok());
    }
  }
  GIVEN("two targets that use B, each in its way") {
    ClientCore client({});
    const auto subscriptions = [&](const ClientEvent& event) {
      std::size_t count = 0;
      for (const ClientEffect& effect : client.step(event, Instant{}, WallTime{}))
        count += std::holds_alternative<AskServer>(effect) ? 1 : 0;
      return count;
    };
    CHECK(subscriptions(WatchesChanged{1, {Watch{cds("B")}}}) == 1);
    CHECK(subscriptions(WatchesChanged{2, {Watch{cds("B")}}}) == 0);
    THEN("both are told") {
      std::vector<WatcherId> told;
      const ResourcesReceived response{
          ResourceType::kCluster, "1", {{"B", Resource{eds_cluster("B", "e")}}}, {}};
      for (const ClientEffect& effect :
           client.step(ServerReported{0, response}, Instant{}, WallTime{})) {
        if (const auto* notify = std::get_if<NotifyWatcher>(&effect))
          told.push_back(notify->watcher);
      }
      CHECK(told == std::vector<WatcherId>{1, 2});
    }
  }
}

SCENARIO("A37: the graph is at most 16 clusters deep", "[spec][A37-12][B10]") {
  DependencyWorld world;
  WHEN("a path has 16 clusters, the leaf included") {
    build_path(world, 16);
    THEN("it resolves") {
      CHECK(world.leaves("c1") == Names{"c16"});
    }
  }
  WHEN("a path has 17 clusters") {
    build_path(world, 17);
    THEN("the root fails, and the 17th is not even watched") {
      REQUIRE(world.config != nullptr);
      CHECK(world.cluster_error("c1").code() == absl::StatusCode::kUnavailable);
      CHECK(absl::StrContains(world.cluster_error("c1").message(), "deeper than 16"));
      CHECK_FALSE(world.clusters().contains("c17"));
    }
    AND_WHEN("another route leads to its second cluster") {
      const Lines lines = world.route_to({"c1", "c2"});
      THEN("that one resolves") {
        CHECK(lines == Lines{"watch CDS c17"});
        world.add_leaf("c17");
        CHECK(world.leaves("c2") == Names{"c17"});
        CHECK_FALSE(world.cluster_error("c1").ok());
      }
    }
  }
}

SCENARIO("A37: a graph that is too deep is so in any order of a list", "[spec][A37-51]") {
  const std::string near = GENERATE("c16", "c15", "c9");
  const bool long_first = GENERATE(true, false);
  CAPTURE(near, long_first);
  GIVEN("an aggregate of a path of 16 clusters and of a short cut into it") {
    DependencyWorld world;
    build_path(world, 16);
    world.route_to({"agg", "c1"});
    world.set(cds("agg"), aggregate("agg", long_first ? Names{"c1", near} : Names{near, "c1"}));
    THEN("it fails, and what is below it serves") {
      REQUIRE(world.config != nullptr);
      CHECK(absl::StrContains(world.cluster_error("agg").message(), "deeper than 16"));
      CHECK(world.leaves("c1") == Names{"c16"});
    }
  }
}

SCENARIO("A37: clusters that are referred to no longer are unwatched", "[spec][A37-15]") {
  GIVEN("A of B and C, C of D and a name") {
    DependencyWorld world;
    world.route_to({"A"});
    world.set(cds("A"), aggregate("A", {"B", "C"}));
    world.set(cds("C"), aggregate("C", {"D", "E"}));
    world.add_leaf("B");
    world.add_leaf("D");
    world.set(cds("E"), dns_cluster("E", "e:1"));
    world.resolve("e:1", {"1"});

    WHEN("A drops C") {
      const Lines lines = world.set(cds("A"), aggregate("A", {"B"}));
      THEN("all below C is unwatched") {
        CHECK(
            lines ==
            Lines{
                "unwatch CDS C", "unwatch CDS D", "unwatch CDS E", "unwatch EDS D-eds", "config"});
        CHECK(world.leaves("A") == Names{"B"});
      }
      AND_THEN("what still arrives of it is dropped") {
        CHECK(world.set(cds("D"), eds_cluster("D", "other")).empty());
        CHECK(world.set(eds("D-eds"), endpoints({})).empty());
        CHECK(world.resolve("e:1", {"2"}).empty());
      }
    }
    WHEN("D is used by A itself, too, and then C goes") {
      world.set(cds("A"), aggregate("A", {"B", "C", "D"}));
      const Lines lines = world.set(cds("A"), aggregate("A", {"B", "D"}));
      THEN("D stays") {
        CHECK(lines == Lines{"unwatch CDS C", "unwatch CDS E", "config"});
        CHECK(world.leaves("A") == Names{"B", "D"});
      }
    }
  }
}

// --- A74 and A75 ------------------------------------------------------------------

SCENARIO("A75: the failure of one leaf's resource spoils no other leaf", "[spec][A75-11][A74]") {
  GIVEN("an aggregate of two leaves that serve") {
    DependencyWorld world;
    world.route_to({"A"});
    world.set(cds("A"), aggregate("A", {"B", "C"}));
    world.add_leaf("B");
    world.add_leaf("C");
    const XdsConfigPtr before = world.config;

    WHEN("one of them cannot be had any more") {
      world.gone(cds("B"));
      THEN("it holds its error, UNAVAILABLE, and the other is untouched") {
        CHECK(world.cluster_error("B").code() == absl::StatusCode::kUnavailable);
        CHECK(world.leaves("A") == Names{"C"});
        const ClusterName other{"C"};
        CHECK(*world.config->clusters.at(other) == *before->clusters.at(other));
      }
    }
  }
}

SCENARIO("A75: a leaf that moves in the aggregate is still the same leaf", "[spec][A75-13]") {
  GIVEN("A of B, C and D") {
    DependencyWorld world;
    world.route_to({"A"});
    world.set(cds("A"), aggregate("A", {"B", "C", "D"}));
    for (const char* name : {"B", "C", "D"})
      world.add_leaf(name);
    const XdsConfigPtr before = world.config;

    WHEN("the order is turned around") {
      world.set(cds("A"), aggregate("A", {"D", "C", "B"}));
      THEN("the list is, and the leaves themselves have not changed") {
        CHECK(world.leaves("A") == Names{"D", "C", "B"});
        for (const char* name : {"B", "C", "D"}) {
          CHECK(*world.config->clusters.at(ClusterName{name}) ==
                *before->clusters.at(ClusterName{name}));
        }
      }
    }
  }
}

}  // namespace signalbox::xds
