// SPDX-License-Identifier: Apache-2.0
//
// The Pick API over a real control plane and real connections.
#include <atomic>
#include <future>

#include <catch2/catch.hpp>

#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

using Catch::Matchers::Contains;
using Clock = std::chrono::steady_clock;

const char kPath[] = "/signalbox.demo.v1.Orders/Place";

std::shared_ptr<Router> router_of(Runtime& runtime, const std::string& target = "xds:///orders") {
  auto router = runtime.router(target);
  INFO(router.status().ToString());
  REQUIRE(router.ok());
  return *router;
}

// Picks, and waits, until there is a connection.
Pick pick_until_complete(const Router& router, const CallArgs& args) {
  Pick pick = router.pick(args);
  while (pick.outcome() != PickOutcome::kComplete) {
    REQUIRE(router.wait(pick, Clock::now() + kPatience));
    router.repick(pick, args);
  }
  return pick;
}

}  // namespace

TEST_CASE("router: a pick completes with the address of a backend", "[e2e][runtime][router]") {
  const BackendProcess first("first");
  const BackendProcess second("second");
  const auto plane = start_plane(simple_yaml("orders", "c", {first.address, second.address}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto router = router_of(*runtime);

  CallArgs args{.path = kPath, .seed = 1};
  const Pick pick = pick_until_complete(*router, args);
  REQUIRE(pick.connection() != nullptr);
  REQUIRE(pick.cluster() != nullptr);
  CHECK(pick.cluster()->name() == ClusterName("c"));
  CHECK(pick.status().ok());
  CHECK_FALSE(pick.timeout().has_value());
  std::set<std::string> seen;
  CHECK(eventually([&] {
    ++args.seed;
    const Pick next = router->pick(args);
    if (next.connection() != nullptr) seen.insert(next.connection()->address().str());
    return seen == std::set<std::string>{first.address, second.address};
  }));
}

TEST_CASE("router: what started and finished is counted, by code", "[e2e][runtime][router]") {
  const BackendProcess backend("good");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto router = router_of(*runtime);
  const CallArgs args{.path = kPath, .seed = 1};
  const auto of = [&](const char* name, const std::vector<std::string>& labels = {}) {
    return metric(*runtime, name, labels).value_or(0);
  };
  {
    Pick pick = pick_until_complete(*router, args);
    router->started(pick);
    CHECK(of("signalbox_rpcs_started_total", {"cluster=\"c\"", "target=\"xds:///orders\""}) == 1);
    CHECK(of("signalbox_rpcs_active", {"cluster=\"c\""}) == 1);
    router->finished(pick, 0);
    Pick other = router->pick(args);
    router->started(other);
    router->finished(other, 14);
  }
  CHECK(of("signalbox_rpcs_started_total") == 2);
  CHECK(of("signalbox_rpcs_completed_total", {"code=\"OK\""}) == 1);
  CHECK(of("signalbox_rpcs_completed_total", {"code=\"UNAVAILABLE\""}) == 1);
  CHECK(of("signalbox_rpcs_active") == 0);
  CHECK(of("signalbox_picks_total", {"cluster=\"c\"", "result=\"complete\""}) >= 2);
}

TEST_CASE("router: a call that has finished is not in flight, whoever still holds its pick",
          "[e2e][runtime][router][A32]") {
  const BackendProcess backend("good");
  const std::string limit = ", circuit_breakers: {thresholds: [{max_requests: 1}]}";
  const auto plane =
      start_plane(listener_yaml("orders", "orders") + routes_yaml("orders", "c") +
                  cluster_yaml("c", "", limit) + endpoints_yaml("c", {{backend.address}}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto router = router_of(*runtime);
  const CallArgs args{.path = kPath, .seed = 1};
  Pick pick = pick_until_complete(*router, args);
  router->started(pick);
  CHECK(router->pick(args).outcome() == PickOutcome::kDrop);
  router->finished(pick, 0);
  CHECK(router->pick(args).outcome() == PickOutcome::kComplete);
}

TEST_CASE("router: a queued pick is woken by what it waits for", "[e2e][runtime][router]") {
  const BackendProcess backend("good");
  const auto plane = start_plane("");
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto router = router_of(*runtime);
  const CallArgs args{.path = kPath, .seed = 1};
  Pick pick = router->pick(args);
  REQUIRE(pick.outcome() == PickOutcome::kQueue);
  CHECK(pick.connection() == nullptr);
  CHECK(pick.cluster() == nullptr);
  CHECK_FALSE(router->wait(pick, Clock::now()));  // Nothing has come yet.

  SECTION("by on_change") {
    std::promise<void> changed;
    std::atomic<int> times{0};
    router->on_change(pick, [&] {
      if (++times == 1) changed.set_value();
    });
    CHECK(times == 0);
    plane->set_resources(resources(simple_yaml("orders", "c", {backend.address})));
    REQUIRE(changed.get_future().wait_for(kPatience) == std::future_status::ready);
    while (pick.outcome() != PickOutcome::kComplete) {
      std::promise<void> again;
      router->on_change(pick, [&] { again.set_value(); });
      REQUIRE(again.get_future().wait_for(kPatience) == std::future_status::ready);
      router->repick(pick, args);
    }
    CHECK(times == 1);
  }
  SECTION("by wait") {
    plane->set_resources(resources(simple_yaml("orders", "c", {backend.address})));
    while (pick.outcome() != PickOutcome::kComplete) {
      REQUIRE(router->wait(pick, Clock::now() + kPatience));
      router->repick(pick, args);
    }
  }
  CHECK(pick.connection()->address().str() == backend.address);

  // What has changed before is told at once, by this thread.
  plane->update(resources(cluster_yaml("c", "", ", connect_timeout: 3s")));
  REQUIRE(router->wait(pick, Clock::now() + kPatience));
  bool told = false;
  router->on_change(pick, [&] { told = true; });
  CHECK(told);
}

TEST_CASE("router: a pick that fails says why", "[e2e][runtime][router]") {
  const RefusingAddress nobody;
  const auto plane = start_plane(simple_yaml("orders", "c", {nobody.address()}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto router = router_of(*runtime);
  const CallArgs args{.path = kPath, .seed = 1};
  Pick pick = router->pick(args);
  while (pick.outcome() == PickOutcome::kQueue) {
    REQUIRE(router->wait(pick, Clock::now() + kPatience));
    router->repick(pick, args);
  }
  CHECK(pick.outcome() == PickOutcome::kFail);
  CHECK(pick.status().code() == absl::StatusCode::kUnavailable);
  CHECK_THAT(std::string(pick.status().message()), Contains(nobody.address()));
}

TEST_CASE("router: a pick outlives the runtime, and so does the router", "[e2e][runtime][router]") {
  const BackendProcess backend("good");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  auto runtime = start_runtime(options_for(plane->address()));
  const auto router = router_of(*runtime);
  const CallArgs args{.path = kPath, .seed = 1};
  std::optional<Pick> held = pick_until_complete(*router, args);
  router->started(*held);
  Pick waiting = router->pick(args);
  std::promise<bool> woken;
  std::promise<void> changed;
  std::thread sleeper([&] {
    // Some publication may still come first; the end comes for certain.
    while (router->wait(waiting, Clock::now() + kPatience))
      router->repick(waiting, args);
    woken.set_value(false);
  });
  router->on_change(*held, [&] { changed.set_value(); });
  runtime = nullptr;
  auto end = woken.get_future();
  REQUIRE(end.wait_for(kPatience) == std::future_status::ready);
  sleeper.join();
  CHECK(changed.get_future().wait_for(kPatience) == std::future_status::ready);

  CHECK(held->connection()->address().str() == backend.address);
  router->finished(*held, 0);
  held.reset();
  const Pick late = router->pick(args);
  CHECK(late.outcome() == PickOutcome::kFail);
  CHECK(late.status().code() == absl::StatusCode::kUnavailable);
  CHECK_THAT(std::string(late.status().message()), Contains("shut down"));
  CHECK_FALSE(router->wait(late, Clock::now() + kPatience));
  bool told = false;
  router->on_change(late, [&] { told = true; });
  CHECK(told);
}

TEST_CASE("router: a wrong target is an error that says so", "[e2e][runtime][router]") {
  const RefusingAddress nobody;
  const auto runtime = start_runtime(options_for(nobody.address()));
  for (const char* target : {"", "orders", "dns:///orders", "xds://unknown/orders"}) {
    INFO(target);
    const auto router = runtime->router(target);
    CHECK(router.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(router.status().message()), Contains(target));
  }
}

}  // namespace signalbox::test
