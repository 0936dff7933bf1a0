// SPDX-License-Identifier: Apache-2.0
//
// The dependency manager and the whole policy tree together: the tests give the control plane's
// answers, and check the picks. The tests B1 and B2 are cases in which other implementations
// crashed.

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include <catch2/catch.hpp>

#include "tests/support/dependency_world.hpp"
#include "tests/support/printed.hpp"
#include "tests/support/tree_harness.hpp"
#include "tests/support/xds_world.hpp"

namespace signalbox::xds {
namespace {

using namespace tests;
using Names = std::vector<std::string>;
using test::manager_of;
using test::TreeHarness;

// --- B1: the order in which resources arrive -------------------------------------------

// The aggregate `agg` lists the leaf `a` and the aggregate `inner`, which lists the leaf `b`. The
// control plane has an Answer for every resource below the routes.
struct Answer {
  ResourceKey key;
  Resource resource;
};

std::vector<Answer> answers_of_the_aggregate() {
  return {{cds("agg"), aggregate("agg", {"a", "inner"})},
          {cds("inner"), aggregate("inner", {"b"})},
          {cds("a"), eds_cluster("a", "a-eds")},
          {cds("b"), eds_cluster("b", "b-eds")},
          {eds("a-eds"), endpoints({{locality("l", {"a:1"})}})},
          {eds("b-eds"), endpoints({{locality("l", {"b:1"})}})}};
}

std::string text_of(const ResourceKey& key) {
  return absl::StrCat(to_string(key.type), " ", key.name);
}

// A control plane that answers watched resources in the given order. After all other answers it
// reports the missing resources as not existing.
class Answers {
 public:
  Answers(DependencyWorld& world, std::set<std::string> missing)
      : world_(world), missing_(std::move(missing)) {}

  /// Answers until a configuration exists; before it, calls wait.
  void run(const std::vector<std::size_t>& order, const std::vector<Answer>& answers) {
    hear(world_.route_to({"agg"}));
    while (true) {
      const auto next = std::ranges::find_if(order, [&](std::size_t at) {
        return is_open(answers[at].key) && !missing_.contains(text_of(answers[at].key));
      });
      if (next == order.end()) break;
      give(answers[*next].key, answers[*next].resource);
    }
    // The missing resources never come, so A57's timers report that they do not exist.
    while (world_.config == nullptr) {
      const auto next =
          std::ranges::find_if(order, [&](std::size_t at) { return is_open(answers[at].key); });
      REQUIRE(next != order.end());
      give(answers[*next].key, absl::NotFoundError("does not exist"));
    }
  }

  /// The answered resources, in the order of arrival.
  const Names& arrivals() const { return arrivals_; }

 private:
  bool is_open(const ResourceKey& key) const {
    return watched_.contains(text_of(key)) && !given_.contains(text_of(key));
  }

  void give(const ResourceKey& key, absl::StatusOr<Resource> answer) {
    REQUIRE(world_.config == nullptr);  // Before the last answer, calls wait.
    given_.insert(text_of(key));
    arrivals_.push_back(text_of(key));
    hear(world_.step(ResourcesChanged{{ResourceChanged{key, std::move(answer)}}}));
  }

  void hear(const Lines& lines) {
    for (const std::string& line : lines) {
      if (absl::StartsWith(line, "watch ")) watched_.insert(line.substr(6));
    }
  }

  DependencyWorld& world_;
  const std::set<std::string> missing_;
  std::set<std::string> watched_;
  std::set<std::string> given_;
  Names arrivals_;
};

// The one outcome of all calls to the aggregate: an address, or the failure with its reason.
std::string outcome_of(const DependencyWorld& world) {
  TreeHarness tree;
  tree.up("a:1");
  tree.up("b:1");
  tree.apply(manager_of({"agg"}), world.config);
  const Names reached = tree.reached("agg");
  REQUIRE(reached.size() == 1);
  return reached.front();
}

// --- B2: hosts and localities that move between priorities ---------------------------------

// One cluster with all of its hosts up, and EDS in a short notation: "x:a,b" is a locality and its
// hosts.
class Moves {
 public:
  Moves() {
    world_.route_to({"c"});
    world_.set(cds("c"), eds_cluster("c", "e"));
    for (const char* host : {"a", "b", "c", "d", "e", "f"})
      tree_.up(host);
  }

  void eds_says(const std::vector<Names>& priorities) {
    std::vector<std::vector<LocalityPtr>> made;
    for (const Names& localities : priorities) {
      made.emplace_back();
      for (const std::string& text : localities) {
        const Names parts = absl::StrSplit(text, ':');
        made.back().push_back(locality(parts[0], Names(absl::StrSplit(parts[1], ','))));
      }
    }
    world_.set(eds("e"), endpoints(made));
    REQUIRE(world_.config != nullptr);
    tree_.apply(manager_of({"c"}), world_.config);
  }

  Names reached() { return tree_.reached("c"); }

  TreeHarness& tree() { return tree_; }

 private:
  DependencyWorld world_;
  TreeHarness tree_;
};

}  // namespace

SCENARIO("A37: an error before there is any configuration is the cluster's failure, and not after",
         "[spec][A37-14][A88]") {
  DependencyWorld world;
  TreeHarness tree;
  tree.up("a:1");
  world.route_to({"a"});
  const absl::Status lost = absl::UnavailableError("stream to the server broke");
  GIVEN("a cluster of which CDS says nothing but an error") {
    world.fail(cds("a"), lost);
    REQUIRE(world.config != nullptr);
    tree.apply(manager_of({"a"}), world.config);
    THEN("calls fail, and say why") {
      CHECK(tree.state("m/a") == ConnectivityState::kTransientFailure);
      CHECK(absl::StartsWith(tree.pick("a"), "fail UNAVAILABLE"));
      CHECK(absl::StrContains(tree.pick("a"), "stream to the server broke"));
    }
    WHEN("the cluster comes after all") {
      world.add_leaf("a");
      tree.apply(manager_of({"a"}), world.config);
      THEN("it serves") {
        CHECK(tree.reached("a") == Names{"a:1"});
      }
    }
  }
  GIVEN("a cluster that serves") {
    world.add_leaf("a");
    tree.apply(manager_of({"a"}), world.config);
    REQUIRE(tree.reached("a") == Names{"a:1"});
    WHEN("CDS has an error") {
      world.ambient(cds("a"), lost);
      tree.apply(manager_of({"a"}), world.config);
      THEN("it serves on, over the same connection") {
        CHECK(tree.reached("a") == Names{"a:1"});
        CHECK(tree.connections("a:1") == 1);
      }
    }
  }
}

TEST_CASE("B1: an aggregate comes up whatever comes first, and whatever never comes",
          "[spec][A74][A37-6][A75-11][B1]") {
  const auto answers = answers_of_the_aggregate();
  const std::vector<ResourceKey> may_miss = {
      cds("a"), cds("b"), cds("inner"), eds("a-eds"), eds("b-eds")};
  for (unsigned subset = 0; subset < 1U << may_miss.size(); ++subset) {
    std::set<std::string> missing;
    for (std::size_t i = 0; i < may_miss.size(); ++i) {
      if ((subset >> i & 1U) != 0) missing.insert(text_of(may_miss[i]));
    }
    INFO("missing: " << absl::StrJoin(missing, ", "));
    const bool has_a = !missing.contains("CDS a");
    const bool has_b = !missing.contains("CDS b") && !missing.contains("CDS inner");
    const bool serves_a = has_a && !missing.contains("EDS a-eds");
    const bool serves_b = has_b && !missing.contains("EDS b-eds");

    std::vector<std::size_t> order = {0, 1, 2, 3, 4, 5};
    std::set<Names> seen;
    do {
      DependencyWorld world;
      Answers given(world, missing);
      given.run(order, answers);
      // Different orders have the same arrivals when they differ only in resources not watched yet.
      if (!seen.insert(given.arrivals()).second) continue;
      INFO("arrived: " << absl::StrJoin(given.arrivals(), ", "));
      if (!has_a && !has_b) {
        REQUIRE(world.cluster_error("agg").code() == absl::StatusCode::kUnavailable);
      } else {
        Names leaves;
        if (has_a) leaves.emplace_back("a");
        if (has_b) leaves.emplace_back("b");
        REQUIRE(world.leaves("agg") == leaves);
        if (has_a) REQUIRE((world.leaf("a").endpoints != nullptr) == serves_a);
        if (has_b) REQUIRE((world.leaf("b").endpoints != nullptr) == serves_b);
      }
      const std::string outcome = outcome_of(world);
      if (serves_a || serves_b) {
        REQUIRE(outcome == (serves_a ? "a:1" : "b:1"));
      } else {
        REQUIRE(absl::StrContains(outcome, "UNAVAILABLE"));
      }
    } while (std::ranges::next_permutation(order).found);
  }
}

TEST_CASE("B2: hosts that move between priorities, and priorities that come and go",
          "[spec][A56][A37-21][B2]") {
  struct Step {
    std::vector<Names> priorities;
    Names reached;
  };

  struct Row {
    const char* when;
    std::vector<Step> steps;
    /// The number of connections made to each host, over all steps. A host keeps its connection
    /// while a started priority has it. A priority stays started for 15 minutes without calls.
    std::map<std::string, int> connections;
  };

  const auto row = GENERATE(values<Row>({
      {"a locality goes down and comes back",
       {{{{"x:a"}, {"y:b"}}, {"a"}}, {{{"y:b"}, {"x:a"}}, {"b"}}, {{{"x:a"}, {"y:b"}}, {"a"}}},
       {{"a", 1}, {"b", 1}}},
      {"a host moves from locality to locality",
       {{{{"x:a,b"}, {"y:c"}}, {"a", "b"}},
        {{{"x:a"}, {"y:b,c"}}, {"a"}},
        {{{"y:b,c"}, {"x:a"}}, {"b", "c"}},
        {{{"x:a,b,c"}}, {"a", "b", "c"}}},
       {{"a", 1}, {"b", 2}, {"c", 1}}},
      {"the middle priority goes, and comes again as another",
       {{{{"x:a"}, {"y:b"}, {"z:c"}}, {"a"}},
        {{{"x:a"}, {"z:c"}}, {"a"}},
        {{{"z:c"}}, {"c"}},
        {{{"x:a"}, {"w:d"}, {"z:c"}}, {"a"}},
        {{{"w:d"}, {"z:c"}}, {"d"}}},
       {{"a", 2}, {"b", 0}, {"c", 1}, {"d", 1}}},
      {"a new first priority pushes all others down",
       {{{{"x:a"}, {"y:b"}}, {"a"}},
        {{{"v:e"}, {"x:a"}, {"y:b"}}, {"e"}},
        {{{"x:a"}, {"y:b"}}, {"a"}}},
       {{"a", 1}, {"b", 0}, {"e", 1}}},
      {"a locality is split over two priorities, and joined again",
       {{{{"x:a,b"}}, {"a", "b"}}, {{{"x:a"}, {"x:b"}}, {"a"}}, {{{"x:a,b"}}, {"a", "b"}}},
       {{"a", 1}, {"b", 2}}},
      {"all priorities become one, and one becomes all",
       {{{{"x:a"}, {"y:b"}, {"z:c"}}, {"a"}},
        {{{"x:a", "y:b", "z:c"}}, {"a", "b", "c"}},
        {{{"z:c"}, {"y:b"}, {"x:a"}}, {"c"}}},
       {{"a", 1}, {"b", 1}, {"c", 1}}},
  }));
  DYNAMIC_SECTION(row.when) {
    Moves moves;
    for (const Step& step : row.steps) {
      moves.eds_says(step.priorities);
      CHECK(moves.reached() == step.reached);
    }
    for (const auto& [host, count] : row.connections) {
      INFO(host);
      CHECK(moves.tree().connections(host) == count);
    }
  }
}

TEST_CASE("B2: without endpoints for a while, and with them again", "[spec][A37-25][B2]") {
  Moves moves;
  moves.eds_says({{"x:a"}, {"y:b"}});
  REQUIRE(moves.reached() == Names{"a"});
  moves.eds_says({});
  REQUIRE(moves.reached().size() == 1);
  CHECK(absl::StrContains(moves.reached().front(), "UNAVAILABLE"));
  moves.eds_says({{"y:b"}, {"x:a"}});
  CHECK(moves.reached() == Names{"b"});
}

TEST_CASE("B2: calls fail over through priorities that have just moved", "[spec][A56][B2]") {
  Moves moves;
  moves.eds_says({{"x:a"}, {"y:b"}, {"z:c"}});
  moves.tree().down("a");
  REQUIRE(moves.reached() == Names{"b"});
  moves.eds_says({{"z:c"}, {"x:a"}, {"y:b"}});
  CHECK(moves.reached() == Names{"c"});
  moves.tree().down("c");
  CHECK(moves.reached() == Names{"b"});
  moves.eds_says({{"z:c"}, {"x:a"}});  // The update removes the serving priority.
  CHECK(absl::StrContains(moves.reached().front(), "UNAVAILABLE"));
  moves.tree().up("a");
  CHECK(moves.reached() == Names{"a"});
  CHECK(moves.tree().connections("b") == 1);
}

TEST_CASE(
    "B2: whatever EDS says, the first priority serves, and who goes on serving keeps its "
    "connection",
    "[spec][A56][A37-21][B2]") {
  std::mt19937 chance(42);
  const auto draw = [&](unsigned bound) { return static_cast<unsigned>(chance() % bound); };
  const Names hosts = {"a", "b", "c", "d", "e", "f"};
  for (int round = 0; round < 20; ++round) {
    Moves moves;
    // Served addresses, and the number of connections made to each.
    std::map<std::string, int> served;
    for (int update = 0; update < 15; ++update) {
      // Each host is in a random priority, or in none. A host is alone in its locality ("of-a"), or
      // in one of three localities that hosts share.
      std::vector<std::map<std::string, Names>> drawn(1 + draw(4));
      for (const std::string& host : hosts) {
        if (draw(4) == 0) continue;
        const unsigned priority = draw(static_cast<unsigned>(drawn.size()));
        drawn[priority][draw(2) == 0 ? "of-" + host : absl::StrCat("p", draw(3))].push_back(host);
      }
      std::vector<Names> priorities;
      for (const auto& localities : drawn) {
        if (localities.empty()) continue;
        priorities.emplace_back();
        for (const auto& [name, members] : localities)
          priorities.back().push_back(absl::StrCat(name, ":", absl::StrJoin(members, ",")));
      }
      if (priorities.empty()) continue;
      moves.eds_says(priorities);

      Names expected;
      for (const std::string& text : priorities.front()) {
        for (const auto host : absl::StrSplit(text.substr(text.find(':') + 1), ','))
          expected.emplace_back(host);
      }
      std::ranges::sort(expected);
      REQUIRE(moves.reached() == expected);
      std::map<std::string, int> serving;
      for (const std::string& host : expected) {
        serving[host] = moves.tree().connections(host);
        INFO(host);
        if (served.contains(host)) REQUIRE(serving[host] == served[host]);
      }
      served = std::move(serving);
    }
  }
}

}  // namespace signalbox::xds
