// SPDX-License-Identifier: Apache-2.0
//
// gRFC A56 with each real policy as the child of priorities, and for all combinations of the states
// of three priorities' hosts.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/child_policies.hpp"
#include "tests/support/tree_harness.hpp"
#include "tests/support/xds_world.hpp"

using namespace signalbox;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

enum class Host { kSilent, kUp, kDown };

constexpr Host kHosts[] = {Host::kSilent, Host::kUp, Host::kDown};
const Texts kAddresses = {"a", "b", "c"};

/// One cluster with a host in each of its three priorities.
class Priorities {
 public:
  explicit Priorities(const LbConfigPtr& policy) {
    world_.eds("orders", {"x:a", "y:b", "z:c"}, policy);
  }

  void set(std::size_t priority, Host host) {
    if (host == Host::kUp) tree_.up(kAddresses[priority]);
    if (host == Host::kDown) tree_.down(kAddresses[priority]);
  }

  void apply() { tree_.apply(manager_of({"orders"}), world_.config()); }

  void advance(Duration time) { tree_.advance(time); }

  /// The outcome of the last of several picks: an address, "queue" or "fail". One pick is not
  /// enough, because the first ones may only ask for a connection.
  std::string answer() {
    std::string last;
    for (int i = 0; i < 4; ++i)
      last = tree_.pick("orders");
    if (last.starts_with("complete ")) return last.substr(9);
    return last.substr(0, last.find(' '));
  }

  /// Lets the failover windows of all priorities pass. Picks after each window, as a waiting call
  /// does: a policy such as ring_hash connects only when a pick asks for it.
  void wait() {
    answer();
    for (std::size_t window = 0; window < kAddresses.size(); ++window) {
      advance(10s);
      answer();
    }
  }

  TreeHarness& tree() { return tree_; }

 private:
  XdsWorld world_;
  TreeHarness tree_;
};

/// The expected outcome of calls at `time` after the start. A priority starts when the priority
/// before it has failed, or has not answered for ten seconds (kSilent).
std::string expected(const std::vector<Host>& hosts, Duration time) {
  Duration begun{};
  for (std::size_t place = 0; place < hosts.size(); ++place) {
    if (hosts[place] == Host::kUp) return kAddresses[place];
    if (hosts[place] == Host::kDown) continue;
    begun += 10s;
    if (time < begun) return "queue";
  }
  return std::ranges::count(hosts, Host::kSilent) > 0 ? "queue" : "fail";
}

std::string to_text(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host host : hosts)
    text += host == Host::kUp ? "up " : host == Host::kDown ? "down " : "silent ";
  return text;
}

std::vector<std::vector<Host>> all_hosts() {
  std::vector<std::vector<Host>> all;
  for (const Host first : kHosts) {
    for (const Host second : kHosts) {
      for (const Host third : kHosts)
        all.push_back({first, second, third});
    }
  }
  return all;
}

/// The addresses that calls reach after an earlier call has made IDLE endpoints connect.
Texts reached_by_who_waits(TreeHarness& tree) {
  tree.pick("orders");
  return tree.reached("orders");
}

std::string name_of(const ConnectivityState state) {
  return std::string(to_string(state));
}

}  // namespace

TEST_CASE("B3: over every child policy, in every permutation of states, the same child is used",
          "[spec][lb][priority][A56][B3][B5]") {
  for (const ChildPolicy& policy : child_policies()) {
    for (const std::vector<Host>& hosts : all_hosts()) {
      INFO(policy.name << ": " << to_text(hosts));
      Priorities priorities(policy.config);
      for (std::size_t place = 0; place < hosts.size(); ++place)
        priorities.set(place, hosts[place]);
      priorities.apply();
      Duration time{};
      for (const Duration next : {Duration(0s),
                                  Duration(5s),
                                  Duration(10s - 1ns),
                                  Duration(10s),
                                  Duration(20s - 1ns),
                                  Duration(20s),
                                  Duration(30s),
                                  Duration(1h)}) {
        priorities.advance(next - time);
        time = next;
        INFO("after " << std::chrono::duration<double>(time).count() << " s");
        const std::string wanted = expected(hosts, time);
        CHECK(priorities.answer() == wanted);
        // A priority that waits for an answer has not failed.
        if (wanted == "queue") CHECK(name_of(priorities.tree().state("m/orders")) == "CONNECTING");
        priorities.apply();  // The same configuration changes nothing and starts no window.
        CHECK(priorities.answer() == wanted);
      }
    }
  }
}

TEST_CASE("B3: from every permutation of states into every other, the same child is used",
          "[spec][lb][priority][A56][B3]") {
  for (const ChildPolicy& policy : child_policies()) {
    for (const std::vector<Host>& from : all_hosts()) {
      for (const std::vector<Host>& to : all_hosts()) {
        // set() cannot make a host silent again, so such changes are left out.
        bool possible = true;
        for (std::size_t place = 0; place < to.size(); ++place)
          possible = possible && (to[place] != Host::kSilent || from[place] == Host::kSilent);
        if (!possible) continue;
        INFO(policy.name << ": " << to_text(from) << "to " << to_text(to));
        Priorities priorities(policy.config);
        for (std::size_t place = 0; place < from.size(); ++place)
          priorities.set(place, from[place]);
        priorities.apply();
        priorities.wait();
        REQUIRE(priorities.answer() == expected(from, 1h));
        for (std::size_t place = 0; place < to.size(); ++place) {
          if (from[place] != to[place]) priorities.set(place, to[place]);
        }
        priorities.wait();
        CHECK(priorities.answer() == expected(to, 1h));
      }
    }
  }
}

TEST_CASE("B3: a child that was usable and connects again has a window, whatever its policy",
          "[spec][lb][priority][A56][B3]") {
  for (const ChildPolicy& policy : child_policies()) {
    INFO(policy.name);
    XdsWorld world;
    TreeHarness tree;
    world.eds("orders", {"x:a", "y:b"}, policy.config);
    tree.up("a");
    tree.up("b");
    tree.apply(manager_of({"orders"}), world.config());
    REQUIRE(reached_by_who_waits(tree) == Texts{"a"});
    // The first priority's host is replaced by a host that does not answer.
    world.eds("orders", {"x:d", "y:b"}, policy.config);
    tree.apply(manager_of({"orders"}), world.config());
    CHECK(tree.reached("orders") == Texts{"queue"});
    tree.advance(10s - 1ns);
    CHECK(tree.reached("orders") == Texts{"queue"});
    tree.advance(1ns);
    CHECK(reached_by_who_waits(tree) == Texts{"b"});
  }
}

TEST_CASE("B4: configurations that keep a child connecting do not put failover off",
          "[spec][lb][priority][A56][B4]") {
  for (const ChildPolicy& policy : child_policies()) {
    // A policy that connects only when a pick asks is IDLE with each new endpoint, and CONNECTING
    // after the pick. So each update opens a new failover window (A56).
    if (policy.connects_when_asked) continue;
    INFO(policy.name);
    XdsWorld world;
    TreeHarness tree;
    tree.up("b");
    for (int update = 0; update < 100; ++update) {
      world.eds("orders", {"x:a" + std::to_string(update), "y:b"}, policy.config);
      tree.apply(manager_of({"orders"}), world.config());
      CHECK(tree.reached("orders") == Texts{"queue"});
      tree.advance(99ms);
    }
    tree.advance(100ms - 1ns);
    CHECK(tree.reached("orders") == Texts{"queue"});
    tree.advance(1ns);
    CHECK(tree.reached("orders") == Texts{"b"});
  }
}

TEST_CASE("S12: a priority that flaps moves the calls once for each change, and fails none",
          "[spec][lb][priority][A56][S12]") {
  XdsWorld world;
  TreeHarness tree;
  world.eds("orders", {"x:a", "y:b"});
  tree.up("a");
  tree.up("b");
  tree.apply(manager_of({"orders"}), world.config());
  tree.take_log();
  const auto moves = [&] {
    const Texts log = tree.take_log();
    return std::ranges::count_if(
        log, [](const std::string& line) { return line.starts_with("failover orders"); });
  };
  for (int flap = 0; flap < 300; ++flap) {
    tree.down("a");
    REQUIRE(tree.reached("orders") == Texts{"b"});
    REQUIRE(moves() == 1);
    tree.advance(2s);
    tree.up("a");
    REQUIRE(tree.reached("orders") == Texts{"a"});
    REQUIRE(moves() == 1);
    tree.advance(2s);
  }
  CHECK(tree.connections("b") == 1);
}

TEST_CASE("S12: a priority that is drained host by host serves until the last, then the next does",
          "[spec][lb][priority][A56][S12]") {
  XdsWorld world;
  TreeHarness tree;
  for (const char* address : {"a", "b", "c", "d"})
    tree.up(address);
  const auto calls_go = [&](const XdsWorld::Priorities& endpoints, const Texts& hosts) {
    world.eds("orders", endpoints);
    tree.apply(manager_of({"orders"}), world.config());
    CHECK(tree.reached("orders") == hosts);
  };
  calls_go({"x:a,b,c", "y:d"}, {"a", "b", "c"});
  calls_go({"x:a!,b,c", "y:d"}, {"b", "c"});
  calls_go({"x:a!,b!,c", "y:d"}, {"c"});
  calls_go({"x:a!,b!,c!", "y:d"}, {"d"});
  calls_go({"x:a,b!,c!", "y:d"}, {"a"});
  for (const std::string& line : tree.take_log())
    CHECK_FALSE(line.starts_with("publish TRANSIENT_FAILURE"));
}
