// SPDX-License-Identifier: Apache-2.0
// gRFC A50, as A61 and A75 changed it. The tests run whole policy trees, from cluster_manager down
// to the leaf policy (round_robin, unless a test says otherwise).
#include <algorithm>

#include <catch2/catch.hpp>

#include "tests/support/printed.hpp"
#include "tests/support/tree_harness.hpp"
#include "tests/support/xds_world.hpp"

using namespace signalbox;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

/// Ejects an endpoint that fails more than half of its calls. Only endpoints with ten calls or more
/// are judged, and only if there are three or more of them. At most half of all are ejected.
OutlierDetection detection() {
  OutlierDetection settings;
  settings.max_ejection_percent = 50;
  settings.failure_percentage = OutlierDetection::FailurePercentage{50, 100, 3, 10};
  return settings;
}

/// A cluster, of two priorities unless a test says otherwise; all its endpoints are up.
struct Orders {
  XdsWorld world;
  TreeHarness tree;

  explicit Orders(const XdsWorld::Priorities& priorities = {"east:a,b,c", "west:d,e,f"},
                  const std::optional<OutlierDetection>& settings = detection(),
                  const LbConfigPtr& lb_policy = default_lb_policy()) {
    world.eds("orders", priorities, lb_policy, {.outlier_detection = settings});
    for (const char* address : {"a", "b", "c", "d", "e", "f"})
      tree.up(address);
    apply();
  }

  void apply() { tree.apply(manager_of({"orders"}), world.config()); }

  void call(int times) {
    for (int i = 0; i < times; ++i)
      tree.call("orders", ++calls_);
  }

  Texts reached() { return tree.reached("orders"); }

 private:
  std::uint64_t calls_ = 0;
};

const LbConfigPtr kPickFirst = make_lb_config(PickFirstConfig{});

}  // namespace

SCENARIO("A50: an endpoint that fails its calls is set aside, and comes back",
         "[spec][lb][outlier_detection][A50][A61]") {
  GIVEN("a priority of three, of which one answers badly") {
    Orders orders;
    orders.tree.answer_badly("b");
    REQUIRE(orders.reached() == Texts{"a", "b", "c"});
    orders.call(60);
    orders.tree.take_log();
    WHEN("the interval is over") {
      orders.tree.advance(10s);
      THEN("the others take its calls, and its connection stays") {
        CHECK(orders.reached() == Texts{"a", "c"});
        CHECK(orders.tree.take_log() ==
              Texts{"outliers orders 1 by failures, ejected", "publish READY 1"});
        CHECK(orders.tree.state("m/orders") == kReady);
      }
      AND_WHEN("its time is over") {
        orders.tree.answer_badly("b", false);
        orders.call(60);
        orders.tree.advance(40s);
        THEN("it serves again, on the connection that it had") {
          CHECK(orders.reached() == Texts{"a", "b", "c"});
          CHECK(orders.tree.connections("b") == 1);
        }
      }
      AND_WHEN("it is ejected a second time") {
        orders.tree.advance(40s);
        REQUIRE(orders.reached() == Texts{"a", "b", "c"});
        orders.call(60);
        orders.tree.advance(10s);
        THEN("it stays away for longer") {
          orders.tree.advance(60s);
          CHECK(orders.reached() == Texts{"a", "c"});
          orders.tree.advance(10s);
          CHECK(orders.reached() == Texts{"a", "b", "c"});
        }
      }
      AND_WHEN("outlier detection is taken out of the cluster") {
        orders.world.eds("orders", {"east:a,b,c", "west:d,e,f"});
        orders.apply();
        THEN("it serves at once") {
          CHECK(orders.reached() == Texts{"a", "b", "c"});
          CHECK(orders.tree.connections("b") == 1);
        }
      }
      AND_WHEN("it leaves the cluster and is back") {
        orders.world.eds("orders", {"east:a,c", "west:d,e,f"}, default_lb_policy(), {detection()});
        orders.apply();
        orders.world.eds(
            "orders", {"east:a,b,c", "west:d,e,f"}, default_lb_policy(), {detection()});
        orders.apply();
        THEN("it is as good as new") {
          CHECK(orders.reached() == Texts{"a", "b", "c"});
        }
      }
    }
  }
}

SCENARIO("A50: who is ejected and loses its connection stays ejected",
         "[spec][lb][outlier_detection][A50][A61]") {
  Orders orders;
  orders.tree.answer_badly("b");
  orders.call(60);
  orders.tree.advance(10s);
  orders.tree.down("b");
  orders.tree.up("b");
  CHECK(orders.tree.connections("b") == 2);
  CHECK(orders.reached() == Texts{"a", "c"});
  orders.tree.answer_badly("b", false);
  orders.tree.advance(40s);
  CHECK(orders.reached() == Texts{"a", "b", "c"});
}

SCENARIO("A75: the endpoints of all priorities are judged together",
         "[spec][lb][outlier_detection][A75-2][A75-3][A50]") {
  GIVEN("two priorities; all of the first answer badly") {
    Orders orders;
    for (const char* address : {"a", "b", "c"})
      orders.tree.answer_badly(address);
    orders.call(60);
    WHEN("half of all six may be ejected") {
      orders.tree.advance(10s);
      THEN("all three are, and the second priority takes over") {
        CHECK(orders.reached() == Texts{"d", "e", "f"});
      }
      AND_WHEN("the second answers badly too") {
        for (const char* address : {"d", "e", "f"})
          orders.tree.answer_badly(address);
        orders.call(60);
        orders.tree.advance(10s);
        THEN("none of it is ejected: the first has used up the percentage of the cluster") {
          CHECK(orders.reached() == Texts{"d", "e", "f"});
        }
      }
      AND_WHEN("their time is over") {
        for (const char* address : {"a", "b", "c"})
          orders.tree.answer_badly(address, false);
        orders.tree.advance(40s);
        THEN("the first priority serves again, on its old connections") {
          CHECK(orders.reached() == Texts{"a", "b", "c"});
          CHECK(orders.tree.connections("a") == 1);
        }
      }
    }
  }
  GIVEN("a first priority of two, where three hosts are the minimum") {
    Orders orders({"east:a,b", "west:c"});
    orders.tree.answer_badly("b");
    WHEN("the second priority's host had its calls in the same interval") {
      orders.tree.down("a");
      orders.tree.down("b");
      REQUIRE(orders.reached() == Texts{"c"});
      orders.call(10);
      orders.tree.up("a");
      orders.tree.up("b");
      REQUIRE(orders.reached() == Texts{"a", "b"});
      orders.call(60);
      orders.tree.advance(10s);
      THEN("it counts") {
        CHECK(orders.reached() == Texts{"a"});
      }
    }
  }
  GIVEN("an ejected endpoint that moves to the other priority") {
    Orders orders;
    orders.tree.answer_badly("b");
    orders.call(60);
    orders.tree.advance(10s);
    orders.world.eds("orders", {"east:a,d", "west:b,c,e,f"}, default_lb_policy(), {detection()});
    orders.apply();
    orders.tree.down("a");
    orders.tree.down("d");
    THEN("it stays ejected there") {
      CHECK(orders.reached() == Texts{"c", "e", "f"});
    }
  }
}

SCENARIO("A50: where all are ejected, calls fail and say so",
         "[spec][lb][outlier_detection][A50][A61]") {
  OutlierDetection all = detection();
  all.max_ejection_percent = 100;
  Orders orders({"east:a,b,c"}, all);
  for (const char* address : {"a", "b", "c"})
    orders.tree.answer_badly(address);
  orders.call(60);
  orders.tree.advance(10s);
  CHECK(orders.tree.state("m/orders") == kFailure);
  const std::string answer = orders.tree.pick("orders");
  CHECK_THAT(answer, Catch::StartsWith("fail UNAVAILABLE"));
  CHECK_THAT(answer, Catch::Contains("ejected by outlier detection (failure percentage)"));
}

SCENARIO("A50: minimum_hosts counts the endpoints that had enough calls, in both algorithms",
         "[spec][lb][outlier_detection][A50]") {
  const auto settings = GENERATE(values<OutlierDetection>({
      [] {
        OutlierDetection failures;
        failures.failure_percentage = OutlierDetection::FailurePercentage{50, 100, 3, 10};
        return failures;
      }(),
      [] {
        OutlierDetection rates;
        rates.success_rate = OutlierDetection::SuccessRate{500, 100, 3, 10};
        return rates;
      }(),
  }));
  GIVEN("two endpoints with calls and one of a lower priority without; three are the minimum") {
    Orders orders({"east:a,b", "west:c"}, settings);
    orders.tree.answer_badly("b");
    orders.call(60);
    orders.tree.advance(10s);
    THEN("no endpoint is judged") {
      CHECK(orders.reached() == Texts{"a", "b"});
    }
  }
  GIVEN("three endpoints with calls") {
    Orders orders({"east:a,b,d", "west:c"}, settings);
    orders.tree.answer_badly("b");
    WHEN("one of them had fewer than request_volume") {
      orders.call(29);
      orders.tree.advance(10s);
      THEN("no endpoint is judged") {
        CHECK(orders.reached() == Texts{"a", "b", "d"});
      }
    }
    WHEN("all had enough") {
      orders.call(60);
      orders.tree.advance(10s);
      THEN("the one that fails is ejected") {
        CHECK(orders.reached() == Texts{"a", "d"});
      }
    }
  }
}

SCENARIO("A50: the success rates of all are compared", "[spec][lb][outlier_detection][A50]") {
  OutlierDetection settings;
  settings.max_ejection_percent = 100;
  settings.success_rate = OutlierDetection::SuccessRate{1900, 100, 5, 20};
  Orders orders({"east:a,b,c,d,e"}, settings);
  orders.tree.answer_badly("e");
  orders.call(100);
  orders.tree.advance(10s);
  CHECK(orders.reached() == Texts{"a", "b", "c", "d"});
}

// Four rates of 100 % and one of 0 % have a mean of 80 and a deviation of 40, so the threshold is
// 80 - 1.9 × 40 = 4 %. For the second priority's three endpoints alone the threshold would be
// negative.
SCENARIO("A75: success rates are compared over the endpoints of all priorities",
         "[spec][lb][outlier_detection][A75-2][A75-3][A50]") {
  OutlierDetection settings;
  settings.max_ejection_percent = 100;
  settings.success_rate = OutlierDetection::SuccessRate{1900, 100, 3, 20};
  Orders orders({"east:a,b", "west:c,d,e"}, settings);
  orders.tree.answer_badly("e");
  const auto fail_over = [&] {
    orders.tree.down("a");
    orders.tree.down("b");
    REQUIRE(orders.reached() == Texts{"c", "d", "e"});
    orders.call(90);
    orders.tree.advance(10s);
  };
  GIVEN("calls on both priorities within one interval") {
    orders.call(60);
    fail_over();
    THEN("the one that fails is an outlier among all five") {
      CHECK(orders.reached() == Texts{"c", "d"});
    }
  }
  GIVEN("calls on the second priority only") {
    fail_over();
    THEN("it is none among three") {
      CHECK(orders.reached() == Texts{"c", "d", "e"});
    }
  }
}

// Calls are counted, and the endpoint is ejected, but pick_first does not learn of that (A61).
SCENARIO("A61: pick_first as the cluster's own policy does not mind an ejection",
         "[spec][lb][outlier_detection][A61]") {
  OutlierDetection all = detection();
  all.max_ejection_percent = 100;
  all.failure_percentage->minimum_hosts = 1;  // Only one endpoint has calls.
  Orders orders({"east:a,b,c"}, all, kPickFirst);
  orders.tree.answer_badly("a");
  orders.call(60);
  orders.tree.take_log();
  orders.tree.advance(10s);
  CHECK(orders.tree.take_log() == Texts{"outliers orders 1 by failures, ejected"});
  CHECK(orders.reached() == Texts{"a"});
}
