// SPDX-License-Identifier: Apache-2.0
//
// Days of a whole tree: clusters come and go, priorities flap, hosts move. At the end exactly the
// needed objects exist. Without clusters only the root policy exists.
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/support/child_policies.hpp"
#include "tests/support/tree_harness.hpp"
#include "tests/support/xds_world.hpp"

using namespace signalbox;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

class Days {
 public:
  Days(unsigned seed, const lb::PolicyOptions& options, std::vector<ChildPolicy> policies)
      : policies_(std::move(policies)), chance_(seed), tree_(options) {
    for (const std::string& leaf : kLeaves)
      deal(leaf);
    for (const std::string& aggregate : kAggregates)
      compose(aggregate);
    for (const std::string& host : kHosts)
      flip(host);
  }

  /// One to three random events, at times a pick for each routed cluster, and then up to forty
  /// minutes of time.
  void live() {
    for (unsigned left = 1 + draw(3); left > 0; --left)
      happen();
    if (draw(3) == 0) {
      for (const std::string& cluster : routed_)
        tree_.pick(cluster);
    }
    tree_.advance(std::chrono::seconds(draw(2400)));
    tree_.take_log();
    most_.policies = std::max(most_.policies, tree_.population().policies);
  }

  /// Brings all hosts up, gives each leaf endpoints, and routes to two leaves and to both
  /// aggregates. Then an hour passes, which is longer than any timer.
  void settle() {
    for (const std::string& leaf : kLeaves)
      deal(leaf, 1);
    for (const std::string& aggregate : kAggregates)
      compose(aggregate);
    for (const std::string& host : kHosts)
      tree_.up(host);
    routed_ = {"one", "two", "all", "some"};
    retiring_.clear();
    apply();
    tree_.advance(1h);
  }

  /// The endpoints that calls to the routed clusters reach. Calls repeat while some of them wait.
  Texts reached() {
    Texts all;
    for (const std::string& cluster : routed_) {
      Texts answers = tree_.reached(cluster);
      for (int again = 0; again < 12 && std::ranges::count(answers, "queue") != 0; ++again)
        answers = tree_.reached(cluster);
      all.insert(all.end(), answers.begin(), answers.end());
    }
    std::ranges::sort(all);
    return all;
  }

  /// The hosts that need connections after settle(): the first priority of the first leaf of each
  /// routed cluster.
  Texts needed() const {
    Texts needed;
    for (const std::string& cluster : routed_) {
      const auto composed = composed_.find(cluster);
      const std::string& leaf = composed == composed_.end() ? cluster : composed->second.front();
      const Texts& first = dealt_.at(leaf).front();
      needed.insert(needed.end(), first.begin(), first.end());
    }
    std::ranges::sort(needed);
    return needed;
  }

  void end() {
    routed_.clear();
    retiring_.clear();
    apply();
  }

  TreeHarness& tree() { return tree_; }

  std::size_t most_policies() const { return most_.policies; }

 private:
  static inline const Texts kLeaves = {"one", "two", "three", "four"};
  static inline const Texts kAggregates = {"all", "some"};
  static inline const Texts kHosts = {"a", "b", "c", "d", "e", "f", "g", "h"};

  unsigned draw(std::size_t bound) { return static_cast<unsigned>(chance_() % bound); }

  const std::string& one_of(const Texts& texts) { return texts[draw(texts.size())]; }

  void happen() {
    switch (draw(9)) {
      case 0:
        deal(one_of(kLeaves));
        return apply();
      case 1:
        compose(one_of(kAggregates));
        return apply();
      case 2:
        world_.error(one_of(kLeaves), absl::NotFoundError("does not exist"));
        return apply();
      case 3:
        return route();
      case 4:
      case 5:
        return flap(one_of(kHosts));
      default:
        return flip(one_of(kHosts));
    }
  }

  void flip(const std::string& host) { draw(2) == 0 ? tree_.up(host) : tree_.down(host); }

  void flap(const std::string& host) {
    for (unsigned left = 1 + draw(10); left > 0; --left) {
      tree_.down(host);
      tree_.advance(std::chrono::seconds(draw(15)));
      tree_.up(host);
    }
  }

  // Deals about half of the hosts out to priorities. Each host has a zone of its own. The zone has
  // the host's name, with or without a "z" before it, so that localities are also renamed.
  void deal(const std::string& leaf, std::size_t at_least = 0) {
    std::vector<Texts> priorities(at_least + draw(4));
    for (const std::string& host : kHosts) {
      if (priorities.empty() || draw(2) == 0) continue;
      priorities[draw(priorities.size())].push_back(host);
    }
    if (at_least > 0 && priorities.front().empty()) priorities.front().push_back(one_of(kHosts));
    XdsWorld::Priorities texts;
    for (const Texts& hosts : priorities) {
      std::string text;
      for (const std::string& host : hosts)
        absl::StrAppend(&text, draw(2) == 0 ? host : "z" + host, ":", host, " ");
      texts.push_back(text);
    }
    world_.eds(leaf, texts, policies_[draw(policies_.size())].config);
    dealt_[leaf] = std::move(priorities);
  }

  void compose(const std::string& aggregate) {
    Texts leaves = kLeaves;
    std::ranges::shuffle(leaves, chance_);
    leaves.resize(1 + draw(leaves.size()));
    world_.aggregate(aggregate, leaves);
    composed_[aggregate] = std::move(leaves);
  }

  void route() {
    retiring_.clear();
    Texts next;
    for (const auto* names : {&kLeaves, &kAggregates}) {
      for (const std::string& name : *names) {
        if (draw(2) == 0) {
          next.push_back(name);
        } else if (std::ranges::count(routed_, name) != 0) {
          retiring_.push_back(name);
        }
      }
    }
    routed_ = std::move(next);
    apply();
  }

  void apply() { tree_.apply(manager_of(routed_, retiring_), world_.config()); }

  const std::vector<ChildPolicy> policies_;
  std::mt19937 chance_;
  XdsWorld world_;
  TreeHarness tree_;
  Texts routed_;
  Texts retiring_;
  std::map<std::string, std::vector<Texts>> dealt_;
  std::map<std::string, Texts> composed_;
  TreeHarness::Population most_;
};

/// Policies that connect to all endpoints: at once, or only when a pick asks for it. pick_first is
/// left out, because it connects to one endpoint. pick_first below wrr_locality connects to all,
/// because each endpoint here has a locality of its own.
std::vector<ChildPolicy> policies_that(bool connect_when_asked) {
  std::vector<ChildPolicy> policies = child_policies();
  std::erase_if(policies, [&](const ChildPolicy& policy) {
    return policy.connects_when_asked != connect_when_asked || policy.name == "pick_first";
  });
  return policies;
}

}  // namespace

TEST_CASE("policy tree: after days of churn there is what is needed, and after the end nothing",
          "[lb][property][churn][A56][A115][A75-13]") {
  lb::PolicyOptions options;
  options.keep_removed_priorities = GENERATE(false, true);
  const bool when_asked = GENERATE(false, true);
  for (unsigned seed = 1; seed <= 10; ++seed) {
    INFO("seed " << seed);
    Days days(seed, options, policies_that(when_asked));
    for (int step = 0; step < 200; ++step)
      days.live();
    CHECK(days.most_policies() > 20);

    days.settle();
    if (when_asked) CHECK(days.reached() == days.needed());
    CHECK(days.tree().connected() == days.needed());
    CHECK(days.tree().population().subchannels == days.needed().size());
    CHECK(days.tree().population().timers == 0);

    days.end();
    CHECK(days.tree().population() == TreeHarness::Population{.policies = 1});
    days.tree().advance(24h);
    CHECK(days.tree().policies("m") == Texts{"m cluster_manager"});
  }
}
