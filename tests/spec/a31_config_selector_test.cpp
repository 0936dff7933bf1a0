// SPDX-License-Identifier: Apache-2.0
//
// gRFC A31, "New Functionality in gRPC" and "Implementation for xDS RouteAction Support": the
// config selector as calls see it, in the document's order. Timeouts: a31_timeouts_test.cpp.

#include <chrono>
#include <map>
#include <string>

#include <catch2/catch.hpp>

#include "tests/support/router_fixture.hpp"

namespace signalbox::lb {
namespace {

using namespace signalbox::testing;
using namespace std::chrono_literals;

class CountingSelector final : public ConfigSelector {
 public:
  explicit CountingSelector(ConfigSelectorPtr inner) : inner_(std::move(inner)) {}

  std::variant<Selection, absl::Status> select(const PickArgs& args) const override {
    ++asked;
    return inner_->select(args);
  }

  mutable int asked = 0;

 private:
  ConfigSelectorPtr inner_;
};

PickerPtr queueing() {
  return answering([](const PickArgs&) { return result(Queue{}); });
}

SCENARIO("A31: the config selector is asked once, at the beginning of a call",
         "[spec][A31][A31-1]") {
  GIVEN("a call that arrives before the first configuration") {
    RouterFixture channel;
    Pick pick = channel.router.pick({"/s/M"});
    REQUIRE(pick.cluster() == nullptr);

    WHEN("a configuration comes, and the call has to pick several times") {
      const XdsConfig config = all_to(to("orders"));
      channel.refs = refs_for(config);
      const auto selector =
          std::make_shared<CountingSelector>(make_config_selector(config, channel.refs));
      for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) {
        auto snapshot = std::make_unique<Snapshot>();
        snapshot->selector = selector;
        snapshot->picker = queueing();
        snapshot->sequence = sequence;
        const auto old = channel.cell->exchange(std::move(snapshot));
        channel.router.repick(pick, {"/s/M"});
        SnapshotCell::wait_for_readers();
      }
      THEN("the selector was asked once") {
        CHECK(selector->asked == 1);
        CHECK(pick.cluster() == &channel.ref("orders"));
      }
    }
  }
}

SCENARIO("A31: the selector sees the method and the headers", "[spec][A31][A31-2]") {
  GIVEN("routes by method and by header") {
    Route canary = route(prefix("/s/"), to("canary"));
    canary.match.headers = {{"env", exact("canary"), false}};
    const XdsConfig config =
        config_of({canary, route(exact("/s/A"), to("a")), route(prefix(""), to("rest"))});
    RouterFixture channel;
    channel.publish(config, queueing());
    const auto cluster_of = [&](const char* path, const HeaderSource* headers) {
      return channel.router.pick({path, headers}).cluster()->name().str();
    };
    THEN("both decide") {
      const TestHeaders env_canary{{"env", "canary"}};
      const TestHeaders env_prod{{"env", "prod"}};
      CHECK(cluster_of("/s/A", &env_canary) == "canary");
      CHECK(cluster_of("/s/A", &env_prod) == "a");
      CHECK(cluster_of("/s/B", &env_prod) == "rest");
      CHECK(cluster_of("/t/A", &env_canary) == "rest");
    }
  }
}

SCENARIO("A31: the selector gives each call its configuration", "[spec][A31][A31-3]") {
  GIVEN("routes with limits of their own, and one without") {
    ForwardAction quick = to("orders");
    quick.max_stream_duration = 1s;
    ForwardAction slow = to("orders");
    slow.max_stream_duration = 9s;
    RouterFixture channel;
    channel.publish(config_of({route(exact("/s/Quick"), quick),
                               route(exact("/s/Slow"), slow),
                               route(prefix(""), to("orders"))}),
                    queueing());
    THEN("calls to the same cluster have what their route says") {
      CHECK(channel.router.pick({"/s/Quick"}).timeout() == std::optional<Duration>(1s));
      CHECK(channel.router.pick({"/s/Slow"}).timeout() == std::optional<Duration>(9s));
    }
    THEN("where it says nothing, the application's own settings stand") {
      CHECK(channel.router.pick({"/s/Other"}).timeout() == std::nullopt);
    }
  }
}

SCENARIO("A31: what a call holds of its cluster is let go once, after its last pick",
         "[spec][A31][A31-4]") {
  GIVEN("a call that waits in a cluster") {
    RouterFixture channel;
    channel.publish(all_to(to("orders")), queueing());
    auto pick = std::make_unique<Pick>(channel.router.pick({"/s/M"}));

    WHEN("it picks again and again, is bound, loses its connection, and is bound again") {
      THEN("it holds the cluster all the time, once") {
        const auto complete =
            answering([&](const PickArgs&) { return result(Complete{channel.backend.get()}); });
        for (const PickerPtr& picker : {queueing(), complete, queueing(), complete}) {
          channel.publish(all_to(to("orders")), picker);
          channel.router.repick(*pick, {"/s/M"});
          CHECK(channel.ref("orders").uses() == 1);
        }
        pick->put_off();
        CHECK(channel.ref("orders").uses() == 1);
        AND_THEN("with its end it lets go of it, though other calls go on") {
          const Pick other = channel.router.pick({"/s/M"});
          pick->end(0);
          pick = nullptr;
          CHECK(channel.ref("orders").uses() == 1);
        }
      }
    }
    WHEN("it fails") {
      channel.publish(all_to(to("orders")), answering([](const PickArgs&) {
                        return result(Drop{absl::UnavailableError("overload")});
                      }));
      channel.router.repick(*pick, {"/s/M"});
      THEN("it holds the cluster until it is told") {
        CHECK(channel.ref("orders").uses() == 1);
        pick = nullptr;
        CHECK_FALSE(channel.ref("orders").in_use());
      }
    }
  }
}

SCENARIO("A31: what the selector chose is passed to the pick", "[spec][A31][A31-5]") {
  GIVEN("a route to a cluster") {
    RouterFixture channel;
    PickArgs seen;
    channel.publish(all_to(to("orders")), answering([&](const PickArgs& args) {
                      seen = args;
                      return result(Queue{});
                    }));
    WHEN("a call picks") {
      const TestHeaders headers{{"env", "canary"}};
      const Pick pick = channel.router.pick({"/s/M", &headers, 42});
      THEN("the picker is told the cluster, with the call's own path, headers and seed") {
        REQUIRE(seen.cluster != nullptr);
        CHECK(*seen.cluster == ClusterName("orders"));
        CHECK(seen.path == "/s/M");
        CHECK(seen.headers == &headers);
        CHECK(seen.seed == 42);
      }
    }
  }
}

SCENARIO("A31: a call that cannot be routed ends with a status", "[spec][A31][A31-6][A28]") {
  GIVEN("a virtual host that does not know the method") {
    RouterFixture channel;
    bool asked = false;
    channel.publish(config_of({route(exact("/s/A"), to("a")),
                               route(exact("/s/Redirect"), UnsupportedAction{"redirect"})}),
                    answering([&](const PickArgs&) {
                      asked = true;
                      return result(Complete{channel.backend.get()});
                    }));
    const auto path = GENERATE(as<std::string>{}, "/s/Unknown", "/s/Redirect");
    WHEN("it is called: " + path) {
      const Pick pick = channel.router.pick({path});
      THEN("the call ends UNAVAILABLE, and nothing was picked") {
        CHECK(pick.outcome() == PickOutcome::kDrop);
        CHECK(pick.status().code() == absl::StatusCode::kUnavailable);
        CHECK_FALSE(asked);
      }
    }
  }
}

SCENARIO("A31: weighted clusters are chosen by weight, whatever their state",
         "[spec][A31][A31-8][A31-9]") {
  GIVEN("two clusters of equal weight, one of which can serve nobody") {
    RouterFixture channel;
    channel.publish(all_to(to({{"good", 1}, {"bad", 1}})), answering([&](const PickArgs& args) {
                      if (*args.cluster == ClusterName("bad"))
                        return result(Fail{absl::UnavailableError("all endpoints are down")});
                      return result(Complete{channel.backend.get()});
                    }));
    WHEN("many calls pick") {
      std::map<std::string, int> share;
      for (std::uint64_t seed = 0; seed < 20'000; ++seed)
        ++share[channel.router.pick({"/s/M", nullptr, seed}).cluster()->name().str()];
      THEN("half of them are sent to the bad one") {
        CHECK(share["bad"] == Approx(10'000).epsilon(0.05));
        CHECK(share["bad"] + share["good"] == 20'000);
      }
    }
  }
}

SCENARIO("A31: a call stays with its cluster", "[spec][A31][A31-10]") {
  GIVEN("a call that chose a cluster, and waits") {
    RouterFixture channel;
    ForwardAction first = to("first");
    first.max_stream_duration = 3s;
    channel.publish(all_to(first), queueing());
    Pick pick = channel.router.pick({"/s/M"});

    WHEN("the route moves to another cluster with another timeout, and the call picks again") {
      ForwardAction second = to("second");
      second.max_stream_duration = 9s;
      std::string asked_for;
      channel.publish(all_to(second), answering([&](const PickArgs& args) {
                        asked_for = args.cluster->str();
                        return result(Complete{channel.backend.get()});
                      }));
      channel.router.repick(pick, {"/s/M"});
      THEN("it picks from the cluster it chose, and keeps its timeout") {
        CHECK(asked_for == "first");
        CHECK(pick.cluster() == &channel.ref("first"));
        CHECK(pick.timeout() == std::optional<Duration>(3s));
        CHECK(pick.outcome() == PickOutcome::kComplete);
      }
      THEN("a new call goes where the route leads now") {
        CHECK(channel.router.pick({"/s/M"}).cluster() == &channel.ref("second"));
      }
    }
  }
}

SCENARIO("A31: a cluster is in use from the start of a call to its end", "[spec][A31][A31-13]") {
  GIVEN("a route to a cluster that no call has chosen") {
    RouterFixture channel;
    channel.publish(all_to(to("orders")), queueing());
    REQUIRE_FALSE(channel.ref("orders").in_use());

    WHEN("two calls choose it, and then the route to it is deleted") {
      auto first = std::make_unique<Pick>(channel.router.pick({"/s/M"}));
      auto second = std::make_unique<Pick>(channel.router.pick({"/s/M"}));
      channel.publish(all_to(to("other")), queueing());
      THEN("it is in use until both have ended") {
        CHECK(channel.ref("orders").uses() == 2);
        first.reset();
        CHECK(channel.ref("orders").in_use());
        second.reset();
        CHECK_FALSE(channel.ref("orders").in_use());
      }
      THEN("no new call chooses it") {
        const Pick late = channel.router.pick({"/s/M"});
        CHECK(channel.ref("orders").uses() == 2);
      }
    }
  }
}

}  // namespace
}  // namespace signalbox::lb
