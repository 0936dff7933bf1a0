// SPDX-License-Identifier: Apache-2.0
//
// gRFC A74, "xDS Config Tears": the watches of the dependency manager, the clusters that an error
// belongs to, and the values that stay when a resource goes (A88).

#include <memory>
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
using Names = std::vector<std::string>;

bool contains(absl::string_view text, absl::string_view part) {
  return absl::StrContains(text, part);
}

// The first host of the first priority.
std::string host_of(const LeafEndpoints& leaf) {
  return leaf.endpoints->priorities[0].localities[0]->endpoints[0].addresses[0].str();
}

EndpointsPtr one_host(const std::string& address) {
  return endpoints({{locality("l", {address})}});
}

}  // namespace

// --- clusters that calls refer to -------------------------------------------------

SCENARIO("A74: a cluster that calls refer to stays, although the routes have dropped it",
         "[spec][A74][A37-15]") {
  GIVEN("calls to a and b") {
    DependencyWorld world;
    world.route_to({"a", "b"});
    world.add_leaf("a");
    world.add_leaf("b");
    CHECK(world.reference({"a", "b"}).empty());

    WHEN("the routes drop b") {
      CHECK(world.route_to({"a"}) == Lines{"config"});
      THEN("it is watched and updated as before") {
        CHECK(world.clusters() == std::set<std::string>{"a", "b"});
        CHECK(world.set(eds("b-eds"), one_host("new:1")) == Lines{"config"});
        CHECK(host_of(world.leaf("b")) == "new:1");
      }
      THEN("it goes with the last call") {
        CHECK(world.reference({"a"}) == Lines{"unwatch CDS b", "unwatch EDS b-eds", "config"});
        CHECK(world.clusters() == std::set<std::string>{"a"});
      }
      AND_WHEN("the routes name it again") {
        THEN("nothing is watched twice, nor again") {
          const auto known = world.config->clusters.at(ClusterName{"b"});
          CHECK(world.route_to({"a", "b"}) == Lines{"config"});
          CHECK(*world.config->clusters.at(ClusterName{"b"}) == *known);
          CHECK(world.reference({"a"}).empty());
          CHECK(world.clusters() == std::set<std::string>{"a", "b"});
        }
      }
    }
    WHEN("b goes, and is referred to again after that") {
      world.route_to({"a"});
      world.reference({"a"});
      THEN("it is asked for anew") {
        CHECK(world.reference({"a", "b"}) == Lines{"watch CDS b"});
        world.add_leaf("b");
        CHECK(world.clusters() == std::set<std::string>{"a", "b"});
      }
    }
    WHEN("b does not exist any more") {
      world.route_to({"a"});
      world.gone(cds("b"));
      THEN("its calls are told so, and stay watched for") {
        CHECK(world.cluster_error("b").code() == absl::StatusCode::kUnavailable);
        CHECK(contains(world.cluster_error("b").message(), "CDS resource \"b\": does not exist"));
        world.add_leaf("b");
        CHECK(host_of(world.leaf("b")) == "b:1");
      }
    }
    WHEN("the listener is gone") {
      const Lines lines = world.gone(lds("orders"));
      THEN("what calls refer to is watched on, for when it comes back") {
        CHECK(lines == Lines{"error"});
        CHECK(world.route_to({"a", "b"}) == Lines{"config"});
      }
    }
  }
}

SCENARIO("A74: a cluster that no route names can be subscribed to by its name", "[spec][A74]") {
  GIVEN("routes to a") {
    DependencyWorld world;
    world.route_to({"a"});
    world.add_leaf("a");

    WHEN("an aggregate is subscribed to") {
      CHECK(world.reference({"dynamic"}) == Lines{"watch CDS dynamic"});
      CHECK(world.set(cds("dynamic"), aggregate("dynamic", {"b", "a"})) == Lines{"watch CDS b"});
      THEN("it joins the configuration when it is complete, leaves and all") {
        CHECK_FALSE(world.clusters().contains("dynamic"));
        world.add_leaf("b");
        CHECK(world.leaves("dynamic") == Names{"b", "a"});
      }
      AND_WHEN("the subscription ends") {
        world.add_leaf("b");
        CHECK(world.reference({}) ==
              Lines{"unwatch CDS b", "unwatch CDS dynamic", "unwatch EDS b-eds", "config"});
        THEN("what the routes need as well stays") {
          CHECK(world.clusters() == std::set<std::string>{"a"});
        }
      }
    }
    WHEN("one is subscribed to that does not exist") {
      world.reference({"dynamic"});
      CHECK(world.gone(cds("dynamic")) == Lines{"config"});
      THEN("it has its error, and nobody else has") {
        CHECK(world.cluster_error("dynamic").code() == absl::StatusCode::kUnavailable);
        CHECK(world.cluster_error("a").ok());
      }
    }
    WHEN("it is a name") {
      world.reference({"dynamic"});
      CHECK(world.set(cds("dynamic"), dns_cluster("dynamic", "h:1")) == Lines{"resolve h:1"});
      CHECK(world.resolve("h:1", {"10.0.0.1:1"}) == Lines{"config"});
      THEN("it is resolved again with all others") {
        world.now += 30s;
        CHECK(world.step(ReresolutionRequested{}) == Lines{"resolve h:1"});
      }
    }
  }
}

// --- errors -------------------------------------------------------------------------

SCENARIO("A74: whatever is wrong with one cluster is its own, and UNAVAILABLE",
         "[spec][A74][A75-11][A88]") {
  struct Row {
    const char* when;
    ResourceKey key;
    absl::Status status;
    bool spoils_cluster;
    const char* text;
  };

  const auto row = GENERATE(values<Row>({
      {"the cluster does not exist",
       cds("a"),
       absl::NotFoundError("does not exist"),
       true,
       "CDS resource \"a\": does not exist"},
      {"the cluster was refused",
       cds("a"),
       absl::InvalidArgumentError("type: not supported"),
       true,
       "CDS resource \"a\": type: not supported"},
      {"the cluster is not for us",
       cds("a"),
       absl::PermissionDeniedError("not yours"),
       true,
       "CDS resource \"a\": not yours"},
      {"its endpoints do not exist",
       eds("a-eds"),
       absl::NotFoundError("does not exist"),
       false,
       "EDS resource \"a-eds\": does not exist"},
  }));
  GIVEN(row.when) {
    DependencyWorld world;
    world.route_to({"a", "b", "agg"});
    world.set(cds("agg"), aggregate("agg", {"a", "b"}));
    world.add_leaf("a");
    world.add_leaf("b");
    const XdsConfigPtr before = world.config;
    world.fail(row.key, row.status);
    REQUIRE(world.config != nullptr);
    THEN("it says so itself") {
      if (row.spoils_cluster) {
        CHECK(world.cluster_error("a").code() == absl::StatusCode::kUnavailable);
        CHECK(contains(world.cluster_error("a").message(), row.text));
        CHECK(world.leaves("agg") == Names{"b"});
      } else {
        CHECK(world.leaf("a").endpoints == nullptr);
        CHECK(contains(world.leaf("a").resolution_note, row.text));
        CHECK(world.leaves("agg") == Names{"a", "b"});
      }
    }
    THEN("its neighbour is the very same") {
      const ClusterName other{"b"};
      CHECK(*world.config->clusters.at(other) == *before->clusters.at(other));
    }
    THEN("and all is well when it is back") {
      world.add_leaf("a");
      CHECK(world.leaves("agg") == Names{"a", "b"});
      CHECK(host_of(world.leaf("a")) == "a:1");
    }
  }
}

SCENARIO("A88: errors beside good values are notes, of each cluster its own", "[spec][A88][A74]") {
  GIVEN("an aggregate of five leaves, and a name") {
    DependencyWorld world;
    world.route_to({"agg", "own", "name"});
    const Names leaves = {"a", "b", "c", "d", "e"};
    world.set(cds("agg"), aggregate("agg", leaves));
    for (const std::string& leaf : leaves)
      world.add_leaf(leaf);
    world.add_leaf("own");
    world.set(cds("name"), dns_cluster("name", "h:1"));
    world.resolve("h:1", {"10.0.0.1:1"});
    const XdsConfigPtr config = world.config;
    CHECK(world.notes->node == "node ID: node-1");
    CHECK(world.notes->target.empty());
    CHECK(world.notes->clusters.empty());
    const absl::Status lost = absl::UnavailableError("refused");

    WHEN("one leaf's endpoints are old") {
      world.ambient(eds("b-eds"), lost);
      THEN("the aggregate's calls hear of it, and no others") {
        CHECK(world.cluster_note("agg") == "EDS resource \"b-eds\": refused");
        CHECK(world.cluster_note("own").empty());
      }
    }
    WHEN("everything is old") {
      world.ambient(lds("orders"), lost);
      for (const std::string& leaf : leaves)
        world.ambient(eds(leaf + "-eds"), lost);
      world.ambient(cds("agg"), lost);
      world.ambient(cds("own"), lost);
      THEN("an aggregate does not list all of its leaves") {
        CHECK(world.note == "LDS resource \"orders\": refused");
        CHECK(world.cluster_note("own") == "CDS resource \"own\": refused");
        CHECK(world.cluster_note("agg") ==
              "CDS resource \"agg\": refused; EDS resource \"a-eds\": refused; "
              "EDS resource \"b-eds\": refused; EDS resource \"c-eds\": refused; "
              "and 2 clusters more");
      }
      THEN("the configuration is the same as before") {
        CHECK(world.config == config);
      }
      AND_WHEN("it is over") {
        world.ambient(lds("orders"), absl::OkStatus());
        for (const std::string& leaf : leaves)
          world.ambient(eds(leaf + "-eds"), absl::OkStatus());
        world.ambient(cds("agg"), absl::OkStatus());
        CHECK(world.ambient(cds("own"), absl::OkStatus()) == Lines{"config"});
        THEN("there is no note") {
          CHECK(world.note.empty());
          CHECK(world.notes->clusters.empty());
          CHECK(world.config == config);
        }
      }
    }
    WHEN("the name does not resolve any more") {
      world.now += 30s;
      world.step(ReresolutionRequested{});
      world.fail_to_resolve("h:1", "no such host");
      THEN("its addresses stay, with a note") {
        CHECK(world.cluster_note("name") == "DNS resolution of h:1 failed: no such host");
        CHECK(host_of(world.leaf("name")) == "10.0.0.1:1");
        CHECK(world.config == config);
      }
    }
  }
}

SCENARIO("A75: how long a session keeps its endpoint is part of the configuration",
         "[spec][A75-14][A75-21][A75-22]") {
  GIVEN("a cluster with an idle_timeout") {
    const auto with_timeout = [](Duration timeout) {
      Cluster made = *eds_cluster("a", "a-eds");
      made.idle_timeout = timeout;
      return std::make_shared<const Cluster>(std::move(made));
    };
    DependencyWorld world;
    world.route_to({"a", "agg"});
    world.set(cds("agg"), aggregate("agg", {"a"}));
    world.add_leaf("a");
    CHECK(world.cluster("a").cluster->idle_timeout == 1h);
    WHEN("it changes") {
      CHECK(world.set(cds("a"), with_timeout(90s)) == Lines{"config"});
      THEN("it reaches the policies, with everything else of its leaf as it was") {
        CHECK(world.cluster("a").cluster->idle_timeout == 90s);
        CHECK(host_of(world.leaf("a")) == "a:1");
        CHECK(world.leaves("agg") == Names{"a"});
      }
    }
  }
}

// --- names ------------------------------------------------------------------------------

SCENARIO("A74: a request to resolve again reaches all names, whoever asked",
         "[spec][A74][A37-20]") {
  GIVEN("names below a route, below an aggregate and below a reference") {
    DependencyWorld world;
    world.route_to({"a", "agg"});
    world.reference({"c"});
    world.set(cds("agg"), aggregate("agg", {"b"}));
    for (const std::string name : {"a", "b", "c"}) {
      world.set(cds(name), dns_cluster(name, name + ":1"));
      world.resolve(name + ":1", {name});
    }
    REQUIRE(world.config != nullptr);
    THEN("all of them are looked up") {
      world.now += 30s;
      CHECK(world.step(ReresolutionRequested{}) ==
            Lines{"resolve a:1", "resolve b:1", "resolve c:1"});
    }
    AND_WHEN("one is dropped and wanted again while its look-up is under way") {
      world.now += 30s;
      world.step(ReresolutionRequested{});
      CHECK(world.set(cds("a"), eds_cluster("a", "e")) == Lines{"watch EDS e"});
      CHECK(world.set(cds("a"), dns_cluster("a", "a:1")) == Lines{"unwatch EDS e", "resolve a:1"});
      THEN("the configuration that is out keeps serving, and the answer is taken") {
        CHECK(host_of(world.leaf("a")) == "a");
        CHECK(world.resolve("a:1", {"new"}) == Lines{"config"});
        CHECK(host_of(world.leaf("a")) == "new");
      }
    }
  }
}

}  // namespace signalbox::xds
