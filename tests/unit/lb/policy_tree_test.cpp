// SPDX-License-Identifier: Apache-2.0
//
// The whole tree under random events. Once it is quiet, calls go exactly where the present
// configuration and network say. One seed is one history. One test has the seats of sessions.
#include <optional>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/session/seats.hpp"
#include "lb/session/session_cookie.hpp"
#include "tests/support/child_policies.hpp"
#include "tests/support/session_tree.hpp"
#include "tests/support/tree_harness.hpp"
#include "tests/support/xds_world.hpp"

using namespace signalbox;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

class History {
 public:
  History(std::uint64_t seed, std::vector<ChildPolicy> policies)
      : policies_(std::move(policies)), seed_(seed) {
    for (const std::string& address : kAddresses)
      flip(address);
    for (const std::string& leaf : kLeaves)
      configure(leaf);
    reorder();
    apply();
  }

  void step() {
    switch (below(8)) {
      case 0:
        configure(one_of(kLeaves));
        return apply();
      case 1:
        lose(one_of(kLeaves));
        return apply();
      case 2:
        reorder();
        return apply();
      case 3:
        tree_.advance(std::chrono::seconds(below(1200)));
        return;
      default:
        return flip(one_of(kAddresses));
    }
  }

  /// Where calls should go: to all endpoints that are up in the first priority that has one. If
  /// there is none, they should fail.
  Texts expected() const {
    for (const std::string& leaf : order_) {
      for (const Texts& priority : leaves_.at(leaf)) {
        Texts up;
        for (const std::string& address : priority) {
          if (up_.at(address)) up.push_back(address);
        }
        std::ranges::sort(up);
        if (!up.empty()) return up;
      }
    }
    return {};
  }

  /// The endpoints that calls reach. A call may wait for a connection that it asks for, as under
  /// ring_hash, so calls repeat while some of them wait.
  Texts reached() {
    Texts reached = tree_.reached("orders");
    for (int again = 0; again < 12 && std::ranges::count(reached, "queue") != 0; ++again)
      reached = tree_.reached("orders");
    const bool failed = std::ranges::all_of(
        reached, [](const std::string& answer) { return answer.starts_with("fail UNAVAILABLE"); });
    return failed ? Texts{} : reached;
  }

  bool applied() {
    const Texts log = tree_.take_log();
    const std::string text = "applied " + std::to_string(generation_);
    return std::ranges::count(log, text) == 1;
  }

  bool just_applied() { return std::exchange(applied_now_, false); }

 private:
  static inline const Texts kAddresses = {"a", "b", "c", "d", "e", "f"};
  static inline const Texts kLeaves = {"one", "two", "three"};

  std::uint64_t below(std::uint64_t bound) {
    return draw_below(seed_, Salt::kEndpoint, bound, ++draws_);
  }

  std::string one_of(const Texts& texts) { return texts[below(texts.size())]; }

  void flip(const std::string& address) {
    up_[address] = below(2) == 0;
    up_[address] ? tree_.up(address) : tree_.down(address);
  }

  // Deals some of the addresses out to up to three priorities. Each address has a zone of its own,
  // so localities move between priorities.
  void configure(const std::string& leaf) {
    std::vector<Texts> priorities(below(4));
    XdsWorld::Priorities texts(priorities.size());
    for (const std::string& address : kAddresses) {
      const std::uint64_t chosen = below(5);
      if (chosen >= priorities.size()) continue;
      priorities[chosen].push_back(address);
      absl::StrAppend(&texts[chosen], " ", address, ":", address);
    }
    // The endpoints' policy changes its type now and then, and calls should never notice.
    world_.eds(leaf, texts, policies_[below(policies_.size())].config);
    leaves_[leaf] = std::move(priorities);
  }

  void lose(const std::string& leaf) {
    world_.error(leaf, absl::NotFoundError(leaf + " does not exist"));
    leaves_[leaf].clear();
  }

  // "orders" is mostly an aggregate of some leaves in some order, and at times a leaf itself.
  void reorder() {
    order_.clear();
    if (below(4) == 0) {
      configure("orders");
      order_.emplace_back("orders");
      return;
    }
    Texts left = kLeaves;
    left.resize(below(left.size() + 1));
    while (!left.empty()) {
      const auto at = left.begin() + static_cast<std::ptrdiff_t>(below(left.size()));
      order_.push_back(*at);
      left.erase(at);
    }
    world_.aggregate("orders", order_);
  }

  void apply() {
    ++generation_;
    applied_now_ = true;
    tree_.take_log();
    tree_.apply(manager_of({"orders"}), world_.config());
  }

  const std::vector<ChildPolicy> policies_;
  std::uint64_t seed_;
  std::uint64_t draws_ = 0;
  Generation generation_ = 0;
  bool applied_now_ = false;
  XdsWorld world_;
  TreeHarness tree_;
  Texts order_;
  std::map<std::string, std::vector<Texts>> leaves_;
  std::map<std::string, bool> up_;
};

/// Policies that spread calls over all endpoints, and connect without being asked.
std::vector<ChildPolicy> that_reach_all() {
  std::vector<ChildPolicy> policies = child_policies();
  std::erase_if(policies, [](const ChildPolicy& policy) {
    return policy.connects_when_asked || policy.name == "pick_first";
  });
  return policies;
}

/// Policies that connect only when a pick asks for it, such as ring_hash.
std::vector<ChildPolicy> that_connect_when_asked() {
  std::vector<ChildPolicy> policies = child_policies();
  std::erase_if(policies, [](const ChildPolicy& policy) { return !policy.connects_when_asked; });
  return policies;
}

}  // namespace

TEST_CASE("policy tree: the seats of sessions are seen from above, through all policies",
          "[lb][policy_tree][A55-36]") {
  SessionTree world;
  if (GENERATE(false, true)) {
    world.extras.outlier_detection.emplace();
    world.extras.outlier_detection->failure_percentage = OutlierDetection::FailurePercentage{};
  }
  world.tree.up("a");
  world.apply({":a,b"});
  const lb::Seats* const seats = lb::seats_of(world.tree.picker()->session_hint());
  REQUIRE(seats != nullptr);
  const lb::Seat* const seat = seats->find(lb::CookieKey(lb::plain_cookie("a", "orders")), nullptr);
  REQUIRE(seat != nullptr);
  CHECK(seat->connection->address() == Address("a"));
  CHECK(*seat->hosts == "a");
  CHECK(seats->find(lb::CookieKey(lb::plain_cookie("b", "orders")), nullptr) == nullptr);
}

TEST_CASE("policy tree: calls go where configuration and network say, after any history",
          "[lb][property][A56][A75-1][A75-13]") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    History history(seed, that_reach_all());
    for (int step = 0; step < 40; ++step) {
      history.step();
      INFO("seed " << seed << ", step " << step);
      REQUIRE(history.reached() == history.expected());
      if (history.just_applied()) REQUIRE(history.applied());
    }
  }
}

TEST_CASE(
    "policy tree: calls that ask for connections go where all others would, after any history",
    "[lb][property][ring_hash][A42][A56][A75-1]") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    History history(seed, that_connect_when_asked());
    for (int step = 0; step < 40; ++step) {
      history.step();
      INFO("seed " << seed << ", step " << step);
      REQUIRE(history.reached() == history.expected());
      if (history.just_applied()) REQUIRE(history.applied());
    }
  }
}
