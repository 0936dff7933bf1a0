// SPDX-License-Identifier: Apache-2.0
#include "xds/depend/cluster_graph.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
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

  // Each of c1, c2, … is an aggregate of the next cluster. c<length> is a leaf.
  Graph& path(std::size_t length) {
    for (std::size_t i = 1; i < length; ++i)
      add(aggregate(absl::StrCat("c", i), {absl::StrCat("c", i + 1)}));
    return leaf(absl::StrCat("c", length));
  }

  const absl::StatusOr<ClusterPtr>* operator()(const ClusterName& name) const {
    ++lookups_;
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

  std::string error(const std::string& root, MissingLeaf missing = MissingLeaf::kSkip) const {
    const auto flat = leaves(root, missing);
    REQUIRE(flat.status().code() == absl::StatusCode::kUnavailable);
    return std::string(flat.status().message());
  }

  /// How often the graph looked a cluster up since the last call of this function.
  std::size_t take_lookups() const { return std::exchange(lookups_, 0); }

  std::set<std::string> reached(const std::string& root) const {
    std::set<std::string> names;
    for (const ClusterName& name : explore({ClusterName{root}}, *this).reached)
      names.insert(name.str());
    return names;
  }

 private:
  std::map<ClusterName, absl::StatusOr<ClusterPtr>> known_;
  mutable std::size_t lookups_ = 0;
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

TEST_CASE("cluster graph: without a usable leaf it is UNAVAILABLE, and says why",
          "[xds][graph][A37-9][A75-12][B1][B10]") {
  struct Row {
    const char* when;
    Graph graph;
    const char* why;
  };

  const std::string none = "aggregate cluster A has no usable leaf cluster: ";
  const std::vector<Row> rows = {
      {"it lists itself alone",
       Graph().add(aggregate("A", {"A"})),
       "all that it leads to are aggregates"},
      {"a loop of two",
       Graph().add(aggregate("A", {"B"})).add(aggregate("B", {"A"})),
       "all that it leads to are aggregates"},
      {"its only leaf does not exist",
       Graph().add(aggregate("A", {"B"})).fail("B"),
       "underlying cluster B is missing: gone"},
      {"its only leaf has not answered",
       Graph().add(aggregate("A", {"B"})),
       "underlying cluster B is missing: not received yet"},
      {"a loop beside leaves that are missing",
       Graph().add(aggregate("A", {"B", "C", "A"})).fail("B").add(aggregate("C", {"A", "D"})),
       "underlying cluster B is missing: gone, and 1 more"},
  };
  for (const Row& row : rows) {
    DYNAMIC_SECTION(row.when) {
      CHECK(row.graph.error("A") == none + row.why);
    }
  }
}

TEST_CASE(
    "cluster graph: a loop spoils only who has nothing else, and what is outside of it nothing",
    "[xds][graph][A37-9][A75-11][B10]") {
  const Graph graph = Graph()
                          .add(aggregate("A", {"B"}))
                          .add(aggregate("B", {"C", "leaf"}))
                          .add(aggregate("C", {"A"}))
                          .add(aggregate("lost", {"own"}))
                          .add(aggregate("own", {"lost"}))
                          .add(aggregate("over", {"lost", "leaf"}))
                          .leaf("leaf");
  for (const char* root : {"A", "B", "C", "over", "leaf"}) {
    INFO(root);
    const auto leaves = graph.leaves(root);
    REQUIRE(leaves.ok());
    CHECK(*leaves == Names{"leaf"});
  }
  CHECK(absl::StrContains(graph.error("lost"), "cluster lost has no usable leaf"));
  CHECK(absl::StrContains(graph.error("own"), "cluster own has no usable leaf"));
}

TEST_CASE("cluster graph: where so configured, a missing cluster fails the aggregate",
          "[xds][graph][A37-13][D2]") {
  struct Row {
    const char* when;
    Graph graph;
    const char* why;
  };

  const std::vector<Row> rows = {
      {"a leaf", Graph().add(aggregate("A", {"B", "C"})).leaf("B").fail("C"), "C is missing: gone"},
      {"a leaf that is not needed as long as the first serves",
       Graph().add(aggregate("A", {"B", "C", "D"})).leaf("B").leaf("C").fail("D"),
       "D is missing: gone"},
      {"below another aggregate",
       Graph().add(aggregate("A", {"B", "C"})).leaf("B").add(aggregate("C", {"B", "D"})).fail("D"),
       "D is missing: gone"},
      {"an aggregate",
       Graph().add(aggregate("A", {"B", "C"})).leaf("B"),
       "C is missing: not received yet"},
  };
  for (const Row& row : rows) {
    DYNAMIC_SECTION(row.when) {
      CHECK(absl::StrContains(row.graph.error("A", MissingLeaf::kFailAggregate), row.why));
      CHECK(row.graph.leaves("A").ok());
      CHECK(row.graph.leaves("B", MissingLeaf::kFailAggregate).ok());
    }
  }
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

TEST_CASE("cluster graph: the order of a list does not decide whether a graph is too deep",
          "[xds][graph][A37-12][A37-51][B10]") {
  // c1 ▷ … ▷ c16 (each lists the next) is as deep as allowed, so a cluster above c1 makes the graph
  // too deep.
  const std::string too_deep = "deeper than 16 at cluster c16";
  for (const bool long_first : {true, false}) {
    INFO(long_first);
    const auto list = [&](const char* near) {
      return long_first ? Names{"c1", near} : Names{near, "c1"};
    };
    Graph graph = Graph().path(16);
    graph.add(aggregate("near leaf", list("c16")))
        .add(aggregate("near aggregate", list("c15")))
        .add(aggregate("halfway", list("c8")))
        .add(aggregate("short way in another aggregate", list("shortcut")))
        .add(aggregate("shortcut", {"c14"}));
    for (const char* root :
         {"near leaf", "near aggregate", "halfway", "short way in another aggregate"}) {
      INFO(root);
      CHECK(absl::StrContains(graph.error(root), too_deep));
      // c16 is still watched, because a shorter path leads to it, too.
      CHECK(graph.reached(root).contains("c16"));
    }
    // A cluster below the root does not fail if its own paths are not too deep.
    CHECK(*graph.leaves("c1") == Names{"c16"});
    CHECK(*graph.leaves("shortcut") == Names{"c16"});
    graph.add(aggregate("sixteen", long_first ? Names{"c2", "c16"} : Names{"c16", "c2"}));
    CHECK(*graph.leaves("sixteen") == Names{"c16"});
  }
}

TEST_CASE("cluster graph: a loop is not deep, but the way through it may be",
          "[xds][graph][A37-9][A37-12][A37-51][B10]") {
  const auto resolves = [](const Graph& graph, const char* root) {
    return graph.leaves(root).ok();
  };
  // Each root leads to every cluster of a ring of 100 clusters. Steps along the ring do not count,
  // because they do not lead away from the root.
  Graph ring;
  Names all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(absl::StrCat("r", i));
    ring.add(aggregate(all.back(), {absl::StrCat("r", (i + 1) % 100), "leaf"}));
  }
  ring.leaf("leaf").add(aggregate("forwards", all));
  std::ranges::reverse(all);
  ring.add(aggregate("backwards", all));
  CHECK(*ring.leaves("forwards") == Names{"leaf"});
  CHECK(*ring.leaves("backwards") == Names{"leaf"});
  CHECK_FALSE(resolves(ring, "r0"));  // The path from r0 to r16 has 17 clusters.

  // c1 ▷ … ▷ c15 (each lists the next) resolves if c15 lists c1 and a leaf. If c16 leads back to
  // c1, the graph is too deep: as in C-core, the 16th cluster must be a leaf.
  CHECK(resolves(Graph().path(15).add(aggregate("c15", {"c1", "leaf"})).leaf("leaf"), "c1"));
  CHECK(resolves(Graph().path(15).add(aggregate("c15", {"leaf", "c1"})).leaf("leaf"), "c1"));
  const auto back = [](const Names& fifteenth) {
    return Graph()
        .path(16)
        .add(aggregate("c15", fifteenth))
        .add(aggregate("c16", {"c1"}))
        .leaf("leaf");
  };
  CHECK_FALSE(resolves(back({"c16", "leaf"}), "c1"));
  CHECK_FALSE(resolves(back({"leaf", "c16"}), "c1"));

  // Clusters behind a loop count as they would without the loop. Here c1 and c2 list each other, c2
  // also lists c3, and c3 leads to c17.
  Graph behind = Graph().path(17);
  behind.add(aggregate("c2", {"c1", "c3"}));
  CHECK(absl::StrContains(behind.error("c1"), "deeper than 16 at cluster c17"));
  CHECK(resolves(behind, "c3"));
}

TEST_CASE("cluster graph: any order of any list resolves to the same leaves, or is too deep alike",
          "[xds][graph][A37-12][A37-51][B10]") {
  std::mt19937 chance(20240602);
  const auto draw = [&](unsigned bound) { return static_cast<unsigned>(chance() % bound); };
  unsigned too_deep = 0;
  for (int round = 0; round < 500; ++round) {
    // Most steps lead to clusters with higher numbers, so that graphs are about 16 deep. Some lead
    // back.
    const unsigned size = 20 + draw(20);
    const auto name = [](unsigned i) { return absl::StrCat("c", i); };
    std::vector<Names> lists;
    for (unsigned i = 0; i + 1 < size; ++i) {
      Names children = {name(i + 1 + draw(std::min(4U, size - i - 1)))};
      for (unsigned edges = draw(3); edges > 0; --edges)
        children.push_back(name(draw(20) == 0 ? draw(size) : i + 1 + draw(size - i - 1)));
      lists.push_back(children);
    }
    std::optional<std::set<std::string>> first;
    for (int order = 0; order < 4; ++order) {
      Graph graph;
      for (unsigned i = 0; i + 1 < size; ++i) {
        std::ranges::shuffle(lists[i], chance);
        graph.add(aggregate(name(i), lists[i]));
      }
      graph.leaf(name(size - 1));
      const auto leaves = graph.leaves("c0");
      std::set<std::string> found;
      if (leaves.ok()) found = {leaves->begin(), leaves->end()};
      if (!first) first = found;
      REQUIRE(found == *first);
    }
    too_deep += first->empty() ? 1 : 0;
  }
  CHECK(too_deep > 50);
  CHECK(too_deep < 450);
}

TEST_CASE("cluster graph: a path of a hundred thousand clusters takes no stack",
          "[xds][graph][A37-12][B10]") {
  // The root leads to every cluster, so each is within the depth that is looked up. Each cluster
  // also leads to the next one.
  Graph graph;
  Names all;
  for (int i = 0; i < 100'000; ++i)
    all.push_back(absl::StrCat("c", i));
  for (int i = 0; i < 100'000; ++i)
    graph.add(aggregate(all[i], {all[(i + 1) % 100'000]}));
  graph.add(aggregate("root", all));
  CHECK(absl::StrContains(graph.error("root"), "all that it leads to are aggregates"));
}

TEST_CASE("cluster graph: a diamond on a diamond is walked once, not along its 2^n paths",
          "[xds][graph][A37-8][B10]") {
  // d1 lists a1 and b1, which both list d2, and so on to d8: 2^7 paths of 15 clusters.
  Graph graph;
  for (int i = 1; i <= 7; ++i) {
    const std::string next = absl::StrCat("d", i + 1);
    graph.add(aggregate(absl::StrCat("d", i), {absl::StrCat("a", i), absl::StrCat("b", i)}));
    graph.add(aggregate(absl::StrCat("a", i), {next})).add(aggregate(absl::StrCat("b", i), {next}));
  }
  graph.leaf("d8");
  CHECK(*graph.leaves("d1") == Names{"d8"});
  CHECK(graph.take_lookups() == 22);
  CHECK(graph.reached("d1").size() == 22);
  CHECK(graph.take_lookups() == 22);

  // Every cluster of a layer leads to every cluster of the next layer: 40^14 paths to each leaf.
  Graph dense;
  for (int layer = 1; layer <= 15; ++layer) {
    Names below;
    for (int i = 0; i < 40; ++i)
      below.push_back(absl::StrCat("l", layer + 1, "-", i));
    for (int i = 0; i < 40; ++i)
      dense.add(aggregate(absl::StrCat("l", layer, "-", i), below));
  }
  for (int i = 0; i < 40; ++i)
    dense.leaf(absl::StrCat("l16-", i));
  dense.take_lookups();
  CHECK(dense.leaves("l1-0")->size() == 40);
  CHECK(dense.take_lookups() == 1 + 15 * 40);
  CHECK(dense.reached("l1-0").size() == 1 + 15 * 40);
  CHECK(dense.take_lookups() == 1 + 15 * 40);
}

TEST_CASE("cluster graph: thousands of clusters are looked at once each, for all roots together",
          "[xds][graph][A37-6]") {
  Graph graph;
  Names all;
  std::set<ClusterName> roots;
  for (int i = 0; i < 5'000; ++i)
    all.push_back(absl::StrCat("leaf", i));
  for (const std::string& name : all)
    graph.leaf(name);
  for (int i = 0; i < 20; ++i) {
    graph.add(aggregate(absl::StrCat("agg", i), all));
    roots.emplace(absl::StrCat("agg", i));
  }
  CHECK(*graph.leaves("agg0") == all);
  CHECK(graph.take_lookups() == 5'001);
  CHECK(explore(roots, std::cref(graph)).reached.size() == 5'020);
  CHECK(graph.take_lookups() == 5'020);
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
  // The first of two equally good virtual hosts is chosen.
  config.virtual_hosts.push_back(VirtualHost{"second", {"FOO.*"}, {}});
  CHECK(chosen("Foo.org") == "foo.*");
  config.virtual_hosts.erase(config.virtual_hosts.begin());
  CHECK(chosen("elsewhere") == "none");
  CHECK(chosen(".com") == "none");
}

}  // namespace signalbox::xds
