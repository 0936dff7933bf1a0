// SPDX-License-Identifier: Apache-2.0
//
// gRFC A55, "LB policy changes" (xds_override_host), in the document's order. The tests run whole
// policy trees, from cluster_manager down to round_robin, and make calls with cookies.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <catch2/catch.hpp>

#include "tests/support/property.hpp"
#include "tests/support/session_tree.hpp"

using namespace signalbox;
using namespace signalbox::test;
using namespace std::chrono_literals;

namespace {

using Texts = std::vector<std::string>;

/// One cluster "orders". A connection attempt to an address does not end until up() names the
/// address.
struct Orders : SessionTree {
  using SessionTree::SessionTree;

  void up(const Texts& addresses) {
    for (const std::string& address : addresses)
      tree.up(address);
  }

  std::string visit(std::string cookie) { return tree.visit("orders", cookie); }
};

const HealthStatusSet kAlsoDraining{
    HealthStatus::kUnknown, HealthStatus::kHealthy, HealthStatus::kDraining};

}  // namespace

SCENARIO("A55: where the feature is not used, calls are the child's", "[spec][lb][A55-25]") {
  Orders orders;
  orders.world.sessions(false);
  orders.up({"a", "b"});
  orders.apply({"east:a,b"});
  THEN("the policy is there all the same") {
    const Texts policies = orders.tree.policies("m");
    CHECK(std::ranges::any_of(
        policies, [](const std::string& policy) { return policy.ends_with(" override_host"); }));
    CHECK(orders.visit("a").ends_with("(none)"));
    CHECK(orders.tree.population().timers == 0);
  }
  WHEN("a filter comes, and goes, while the cluster stays as it is") {
    orders.world.sessions(true);
    orders.tree.apply(manager_of({"orders"}), orders.world.config());
    THEN("sessions are kept meanwhile") {
      CHECK(orders.visit("a") == "complete a (hit)");
      CHECK(orders.tree.population().timers == 1);  // The timer of the sweeper.
      orders.world.sessions(false);
      orders.tree.apply(manager_of({"orders"}), orders.world.config());
      CHECK(orders.visit("a").ends_with("(none)"));
      CHECK(orders.tree.population().timers == 0);
    }
  }
}

SCENARIO("A55: the healths that sessions may stay on", "[spec][lb][A55-26][A55-30][A55-31]") {
  Orders orders;
  orders.up({"a", "b"});
  WHEN("DRAINING is one of them") {
    orders.extras.override_host_status = kAlsoDraining;
    orders.apply({"east:a,b"});
    REQUIRE(orders.visit("a") == "complete a (hit)");
    orders.apply({"east:a!,b"});
    THEN("the host that drains keeps its sessions, over the same connection") {
      CHECK(orders.visit("a") == "complete a (hit draining)");
      CHECK(orders.tree.connections("a") == 1);
      AND_THEN("until the server closes it") {
        orders.tree.down("a");
        CHECK(orders.visit("a") == "queue (queued)");
        CHECK(orders.visit("a") == "complete b (unhealthy)");
      }
      AND_THEN("until it has gone from EDS") {
        orders.apply({"east:b"});
        CHECK(orders.visit("a") == "complete b (unknown host)");
        CHECK(orders.tree.connected() == Texts{"b"});
      }
    }
    THEN("one that no session uses is not connected to") {
      orders.apply({"east:a,b!"});
      CHECK(orders.tree.connected() == Texts{"a"});
    }
  }
  WHEN("it is none") {
    orders.apply({"east:a,b"});
    REQUIRE(orders.visit("a") == "complete a (hit)");
    orders.apply({"east:a!,b"});
    THEN("its sessions go elsewhere") {
      CHECK(orders.visit("a") == "complete b (unknown host)");
      CHECK(orders.tree.connected() == Texts{"b"});
    }
  }
  WHEN("none at all is one") {
    orders.extras.override_host_status = {};
    orders.apply({"east:a"});
    THEN("no cookie is followed") {
      CHECK(orders.visit("a") == "complete a (unhealthy)");
    }
  }
}

SCENARIO("A75: a host that drains is kept as any, while sessions use it, and no longer",
         "[spec][lb][A75-29][A75-34][D5]") {
  Orders orders;
  orders.extras.override_host_status = kAlsoDraining;
  orders.extras.idle_timeout = 60s;
  orders.up({"a", "b"});
  orders.apply({"east:a,b"});
  REQUIRE(orders.visit("a") == "complete a (hit)");
  orders.apply({"east:a!,b"});
  orders.tree.advance(30s);
  REQUIRE(orders.visit("a") == "complete a (hit draining)");
  orders.tree.advance(59s);
  CHECK(orders.tree.connected() == Texts{"a", "b"});
  orders.tree.advance(1s);
  CHECK(orders.tree.connected() == Texts{"b"});
}

SCENARIO("A55: the map of addresses follows each update",
         "[spec][lb][A55-27][A55-28][A55-23][A61]") {
  Orders orders;
  orders.up({"a", "b"});
  orders.apply({"east:a+a2,b"});
  std::string cookie = "a";
  REQUIRE(orders.tree.visit("orders", cookie) == "complete a (hit)");
  CHECK(cookie == "a,a2");
  WHEN("one of an endpoint's addresses goes") {
    orders.tree.up("a2");
    orders.apply({"east:a2,b"});
    THEN("the session stays with the endpoint") {
      CHECK(orders.tree.visit("orders", cookie) == "complete a2 (hit)");
      CHECK(cookie == "a2");
    }
  }
}

SCENARIO("A55: the child never hears of DRAINING endpoints", "[spec][lb][A55-29]") {
  Orders orders;
  orders.extras.override_host_status = kAlsoDraining;
  orders.up({"a", "b"});
  orders.apply({"east:a!,b"});
  CHECK(orders.tree.reached("orders") == Texts{"b"});
  CHECK(orders.visit("") == "complete b (new)");
}

SCENARIO("A55: where every leaf of an aggregate drains, sessions of the last one stay",
         "[spec][lb][A55-29][A55-31][A56][A75-1]") {
  Orders orders;
  orders.extras.override_host_status = kAlsoDraining;
  orders.up({"a", "b"});
  const auto apply = [&](const std::string& first, const std::string& last) {
    orders.world.eds("first", {first}, default_lb_policy(), orders.extras);
    orders.world.eds("last", {last}, default_lb_policy(), orders.extras);
    orders.world.aggregate("orders", {"first", "last"});
    orders.tree.apply(manager_of({"orders"}), orders.world.config());
  };
  const auto all_fail = [](const std::string& pick) {
    return pick.starts_with("fail UNAVAILABLE: all 2 priorities failed");
  };
  apply("east:a!", "west:b");
  REQUIRE(orders.visit("b") == "complete b (hit)");
  apply("east:a!", "west:b!");
  THEN("new calls fail, and the session keeps its connection") {
    CHECK(all_fail(orders.tree.pick("orders")));
    CHECK(orders.visit("b") == "complete b (hit draining)");
    CHECK(orders.tree.connections("b") == 1);
  }
  THEN("a session of another leaf has lost its host") {
    CHECK(all_fail(orders.visit("a")));
  }
}

SCENARIO("A55: the newest connection of an address takes the calls", "[spec][lb][A55-32]") {
  Orders orders;
  orders.up({"a", "b"});
  orders.apply({"east:a,b"});
  REQUIRE(orders.visit("a") == "complete a (hit)");
  orders.tree.down("a");
  orders.tree.up("a");
  CHECK(orders.visit("a") == "complete a (hit)");
  CHECK(orders.tree.connections("a") == 2);
}

SCENARIO("A55: what is picked is counted", "[spec][lb][A55-36][D10]") {
  GIVEN("a limit of calls in flight") {
    Orders orders;
    orders.extras.max_concurrent_requests = 1;
    orders.up({"a"});
    orders.apply({"east:a"});
    auto running = orders.tree.begin_visit("orders", "a");
    CHECK(running.answer == "complete a");
    auto refused = orders.tree.begin_visit("orders", "a");
    CHECK(refused.answer.starts_with("drop UNAVAILABLE"));
    TreeHarness::end(running);
  }
  GIVEN("outlier detection") {
    Orders orders;
    auto& settings = orders.extras.outlier_detection.emplace();
    settings.max_ejection_percent = 50;
    settings.failure_percentage = OutlierDetection::FailurePercentage{50, 100, 2, 10};
    orders.up({"a", "b"});
    orders.apply({"east:a,b"});
    orders.tree.answer_badly("a");
    for (const char* host : {"a", "b"}) {
      for (int call = 0; call < 20; ++call) {
        auto begun = orders.tree.begin_visit("orders", host);
        TreeHarness::end(begun);
      }
    }
    orders.tree.advance(10s);
    THEN("a host that fails its sessions' calls is ejected, and gets none of theirs (D10)") {
      CHECK(orders.visit("a") == "complete b (unhealthy)");
      CHECK(orders.tree.connections("a") == 1);
      AND_THEN("until it is well again") {
        orders.tree.advance(60s);
        CHECK(orders.visit("a") == "complete a (hit)");
      }
    }
  }
}

SCENARIO("A55: attempts of one call stay on its host", "[spec][lb][A55-37]") {
  Orders orders;
  orders.up({"a", "b", "c"});
  orders.apply({"east:a,b,c"});
  for (std::uint64_t attempt = 0; attempt < 10; ++attempt) {
    std::string cookie = "b";
    CHECK(orders.tree.visit("orders", cookie, attempt) == "complete b (hit)");
  }
}

SCENARIO("A55: the policy stands above the cluster's priorities", "[spec][lb][A55-38][A75-2]") {
  Orders orders;
  orders.apply({"east:a"});
  const Texts policies = orders.tree.policies("m");
  const auto above = std::ranges::find_if(
      policies, [](const std::string& policy) { return policy.ends_with(" override_host"); });
  REQUIRE(above != policies.end());
  const std::string path = above->substr(0, above->find(' '));
  CHECK(std::ranges::count(policies, path + "/child priority") == 1);
}

// A case is a random list of changes, each of which adds or removes one of eight endpoints. The
// last endpoint is not removed. After each change a call is made for each session that began before
// the change, if its endpoint is present.
TEST_CASE("A55: one endpoint more or less moves no other endpoint's sessions",
          "[spec][lb][A55-44]") {
  const auto spec = [](const std::set<int>& hosts) {
    Texts names;
    for (const int host : hosts)
      names.push_back(absl::StrCat("h", host));
    return XdsWorld::Priorities{"east:" + absl::StrJoin(names, ",")};
  };
  CHECK(holds("sessions stay", 60, [&](const std::vector<std::uint8_t>& changes) {
    Orders orders;
    std::set<int> hosts{1, 2, 3, 4};
    std::map<int, std::string> cookies;
    for (int host = 0; host < 8; ++host)
      orders.tree.up(absl::StrCat("h", host));
    orders.apply(spec(hosts));
    for (const std::uint8_t change : changes) {
      const int changed = change % 8;
      for (const int host : hosts)
        cookies.try_emplace(host, absl::StrCat("h", host));
      if (hosts.contains(changed) && hosts.size() > 1) {
        hosts.erase(changed);
      } else {
        hosts.insert(changed);
      }
      orders.apply(spec(hosts));
      for (auto& [host, cookie] : cookies) {
        if (!hosts.contains(host)) continue;
        const std::string home = absl::StrCat("h", host);
        RC_ASSERT(orders.visit(home) == "complete " + home + " (hit)");
      }
    }
  }));
}
