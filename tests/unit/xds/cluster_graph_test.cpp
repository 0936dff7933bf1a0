// SPDX-License-Identifier: Apache-2.0
#include "xds/depend/cluster_graph.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/support/xds_resources.hpp"
#include "xds/depend/virtual_host.hpp"

namespace signalbox::xds {
namespace {

using tests::aggregate;
using tests::dns_cluster;
using tests::eds_cluster;

class Graph {
 public:
  Graph& add(const ClusterPtr& cluster) {
    known_[cluster->name] = cluster;
    return *this;
  }

  Graph& leaf(const std::string& name) { return add(eds_cluster(name, name)); }

  Graph& fail(const std::string& name) {
    known_[ClusterName{name}] = absl::NotFoundError("gone");
    return *this;
  }

  // The clusters c1 ▷ c2 ▷ … ▷ c<length>, of which the last is a leaf.
  Graph& path(std::size_t length) {
    for (std::size_t i = 1; i < length; ++i)
      add(aggregate(absl::StrCat("c", i), {absl::StrCat("c", i + 1)}));
    return leaf(absl::StrCat("c", length));
  }

  const absl::StatusOr<ClusterPtr>* operator()(const ClusterName& name) const {
    const auto found = known_.find(name);
    return found == known_.end() ? nullptr : &found->second;
  }

  absl::StatusOr<std::vector<std::string>> leaves(const std::string& root,
                                                  MissingLeaf missing = MissingLeaf::kSkip) const {
    const auto flat = flatten(ClusterName{root}, *this, missing);
    if (!flat.ok()) return flat.status();
    std::vector<std::string> names;
    for (const ClusterName& name : *flat)
      names.push_back(name.str());
    return names;
  }

  std::set<std::string> reached(const std::string& root) const {
    std::set<std::string> names;
    for (const ClusterName& name : explore({ClusterName{root}}, *this).reached)
      names.insert(name.str());
    return names;
  }

 private:
  std::map<ClusterName, absl::StatusOr<ClusterPtr>> known_;
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("cluster graph: an aggregate is the list of its leaves, depth-first",
          "[xds][graph][A37-7][A37-8][A37-9][A75-9]") {
  struct Row {
    const char* when;
    Graph graph;
    Names leaves;
  };

  const std::vector<Row> rows = {
      {"a leaf stands for itself", Graph().leaf("A"), {"A"}},
      {"nested aggregates are flattened",
       Graph()
           .add(aggregate("A", {"B", "C"}))
           .leaf("B")
           .add(aggregate("C", {"D", "E"}))
           .leaf("D")
           .add(dns_cluster("E", "e:1")),
       {"B", "D", "E"}},
      {"a leaf that comes twice stands at its earliest place",
       Graph()
           .add(aggregate("A", {"C", "B", "D"}))
           .add(aggregate("C", {"D", "B"}))
           .leaf("B")
           .leaf("D"),
       {"D", "B"}},
      {"a diamond",
       Graph()
           .add(aggregate("A", {"B", "C"}))
           .add(aggregate("B", {"D"}))
           .add(aggregate("C", {"D", "E"}))
           .leaf("D")
           .leaf("E"),
       {"D", "E"}},
      {"a loop ends",
       Graph().add(aggregate("A", {"B", "A", "C"})).add(aggregate("B", {"A"})).leaf("C"),
       {"C"}},
      {"a missing leaf is skipped",
       Graph().add(aggregate("A", {"B", "C"})).fail("B").leaf("C"),
       {"C"}},
      {"a missing aggregate is skipped", Graph().add(aggregate("A", {"B", "C"})).leaf("C"), {"C"}},
  };
  for (const Row& row : rows) {
    DYNAMIC_SECTION(row.when) {
      const auto leaves = row.graph.leaves("A");
      REQUIRE(leaves.ok());
      CHECK(*leaves == row.leaves);
    }
  }
}

TEST_CASE("cluster graph: without a usable leaf it is UNAVAILABLE", "[xds][graph][A37-9][A75-12]") {
  const auto graph = GENERATE(values<Graph>({
      Graph().add(aggregate("A", {"A"})),
      Graph().add(aggregate("A", {"B"})).add(aggregate("B", {"A"})),
      Graph().add(aggregate("A", {"B"})).fail("B"),
      Graph().add(aggregate("A", {"B"})),
  }));
  const auto leaves = graph.leaves("A");
  CHECK(leaves.status().code() == absl::StatusCode::kUnavailable);
  CHECK(absl::StrContains(leaves.status().message(), "A has no usable leaf"));
}

TEST_CASE("cluster graph: where so configured, a missing leaf fails the aggregate",
          "[xds][graph][A37-13]") {
  const Graph graph = Graph().add(aggregate("A", {"B", "C"})).leaf("B").fail("C");
  const auto leaves = graph.leaves("A", MissingLeaf::kFailAggregate);
  CHECK(leaves.status().code() == absl::StatusCode::kUnavailable);
  CHECK(absl::StrContains(leaves.status().message(), "C"));
  CHECK(absl::StrContains(leaves.status().message(), "gone"));
  CHECK(graph.leaves("B", MissingLeaf::kFailAggregate).ok());
}

TEST_CASE("cluster graph: a path of 16 clusters is allowed, a 17th is not",
          "[xds][graph][A37-12][B10]") {
  const auto sixteen = Graph().path(16).leaves("c1");
  REQUIRE(sixteen.ok());
  CHECK(*sixteen == Names{"c16"});

  const Graph graph = Graph().path(17);
  CHECK(graph.leaves("c1").status().code() == absl::StatusCode::kUnavailable);
  CHECK(absl::StrContains(graph.leaves("c1").status().message(), "c17"));
  CHECK(graph.leaves("c2").ok());
  CHECK_FALSE(graph.reached("c1").contains("c17"));
}

TEST_CASE("cluster graph: what has to be watched is all that is reached", "[xds][graph][A37-6]") {
  const Graph graph = Graph()
                          .add(aggregate("A", {"B", "C", "A"}))
                          .leaf("B")
                          .add(aggregate("C", {"D", "X"}))
                          .fail("D");
  const auto found = explore({ClusterName{"A"}, ClusterName{"Y"}}, graph);
  CHECK(graph.reached("A") == std::set<std::string>{"A", "B", "C", "D", "X"});
  CHECK(found.reached.size() == 6);
  CHECK(found.unanswered == std::set<ClusterName>{ClusterName{"X"}, ClusterName{"Y"}});
}

TEST_CASE("cluster graph: walks of any graph end, without duplicates",
          "[xds][graph][A37-8][A37-9][B10]") {
  std::mt19937 chance(20240601);
  const auto draw = [&](unsigned bound) { return static_cast<unsigned>(chance() % bound); };
  for (int round = 0; round < 500; ++round) {
    Graph graph;
    const unsigned size = 1 + draw(40);
    const auto name = [&](unsigned i) { return absl::StrCat("c", i); };
    for (unsigned i = 0; i < size; ++i) {
      const unsigned kind = draw(10);
      if (kind == 0) graph.fail(name(i));
      if (kind <= 1) continue;
      if (kind < 5) {
        graph.leaf(name(i));
        continue;
      }
      Names children;
      for (unsigned edges = 1 + draw(6); edges > 0; --edges)
        children.push_back(name(draw(size)));
      graph.add(aggregate(name(i), children));
    }
    const auto leaves = graph.leaves("c0");
    const auto reached = graph.reached("c0");
    if (!leaves.ok()) {
      REQUIRE(leaves.status().code() == absl::StatusCode::kUnavailable);
      continue;
    }
    REQUIRE(!leaves->empty());
    REQUIRE(std::set<std::string>(leaves->begin(), leaves->end()).size() == leaves->size());
    for (const std::string& leaf : *leaves) {
      REQUIRE(reached.contains(leaf));
      const auto* known = graph(ClusterName{leaf});
      REQUIRE(known != nullptr);
      REQUIRE(std::holds_alternative<EdsDiscovery>((**known)->discovery));
    }
  }
}

TEST_CASE("virtual host: the most specific domain serves, whatever the case", "[xds][A27]") {
  RouteConfig config;
  const auto add = [&](const std::string& domain) {
    config.virtual_hosts.push_back(VirtualHost{domain, {domain}, {}});
  };
  for (const char* domain : {"*", "foo.*", "foo.bar.*", "*.com", "*.bar.com", "foo.bar.com", "x-*"})
    add(domain);
  const auto chosen = [&](const char* authority) {
    const VirtualHost* host = find_virtual_host(config, authority);
    return host == nullptr ? std::string("none") : host->name;
  };
  CHECK(chosen("foo.bar.com") == "foo.bar.com");
  CHECK(chosen("FOO.Bar.com") == "foo.bar.com");
  CHECK(chosen("a.bar.com") == "*.bar.com");
  CHECK(chosen("a.b.COM") == "*.com");
  CHECK(chosen("foo.com") == "*.com");
  CHECK(chosen("foo.bar.org") == "foo.bar.*");
  CHECK(chosen("Foo.org") == "foo.*");
  CHECK(chosen("x-") == "*");
  CHECK(chosen("elsewhere") == "*");
  // Among equals the first serves.
  config.virtual_hosts.push_back(VirtualHost{"second", {"FOO.*"}, {}});
  CHECK(chosen("Foo.org") == "foo.*");
  config.virtual_hosts.erase(config.virtual_hosts.begin());
  CHECK(chosen("elsewhere") == "none");
  CHECK(chosen(".com") == "none");
}

}  // namespace signalbox::xds
