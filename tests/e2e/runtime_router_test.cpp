// SPDX-License-Identifier: Apache-2.0
//
// The Pick API over a real control plane and real connections.
#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "actors/io/end_mark.hpp"
#include "actors/io/grpc_connector.hpp"
#include "tests/e2e/runtime_world.hpp"
#include "tests/support/recording_observer.hpp"

namespace signalbox::test {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Clock = std::chrono::steady_clock;

const char kPath[] = "/signalbox.demo.v1.Orders/Place";

std::shared_ptr<Router> router_of(Runtime& runtime, const std::string& target = "xds:///orders") {
  auto router = runtime.router(target);
  INFO(router.status().ToString());
  REQUIRE(router.ok());
  return *router;
}

Pick pick_until_complete(const Router& router, const CallArgs& args) {
  Pick pick = router.pick_until(args, Clock::now() + kPatience, OnFail::kWait);
  REQUIRE(pick.outcome() == PickOutcome::kComplete);
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

TEST_CASE("router: calls are counted by endpoint when the program asks for it",
          "[e2e][runtime][router]") {
  const BackendProcess first("first");
  const BackendProcess second("second");
  const auto plane = start_plane(simple_yaml("orders", "c", {first.address, second.address}));
  RuntimeOptions options = options_for(plane->address());
  const bool by_endpoint = GENERATE(true, false);
  if (by_endpoint) options.metrics_detail = MetricsDetail::kEndpoint;
  const auto runtime = start_runtime(std::move(options));
  const auto router = router_of(*runtime);
  const CallArgs args{.path = kPath, .seed = 1};
  Pick pick = pick_until_complete(*router, args);
  const std::string chosen = pick.connection()->address().str();
  router->started(pick);
  router->finished(pick, 14);
  const auto calls = [&](const std::string& address, const char* code) {
    return metric(*runtime,
                  "signalbox_endpoint_rpcs_total",
                  {"cluster=\"c\"", "endpoint=\"" + address + "\"", std::string(code)});
  };
  if (!by_endpoint) {
    CHECK_THAT(runtime->metrics_text(), !Contains("signalbox_endpoint_rpcs_total"));
    return;
  }
  CHECK(calls(chosen, "code=\"UNAVAILABLE\"") == 1);
  CHECK(calls(chosen == first.address ? second.address : first.address, "code=\"OK\"") == 0);
}

TEST_CASE("router: without call metrics calls are made and no series of them exists",
          "[e2e][runtime][router]") {
  const BackendProcess backend("good");
  const std::string session =
      "{name: session, typed_config: {'@type': "
      "type.googleapis.com/envoy.extensions.filters.http.stateful_session.v3.StatefulSession, "
      "session_state: {name: cookie, typed_config: {'@type': "
      "type.googleapis.com/"
      "envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState,"
      " cookie: {name: s, path: /}}}}},";
  const auto plane = start_plane(listener_yaml("orders", "r", session) + routes_yaml("r", "all") +
                                 aggregate_yaml("all", {"c"}) + cluster_yaml("c") +
                                 endpoints_yaml("c", {{backend.address}}));
  auto options = options_for(plane->address());
  options.metrics_detail = MetricsDetail::kNone;
  const auto runtime = start_runtime(std::move(options));
  const auto stub = demo::v1::Orders::NewStub(runtime->channel("xds:///orders"));
  for (int call = 0; call < 3; ++call) {
    grpc::ClientContext context;
    demo::v1::PlaceReply reply;
    CHECK(stub->Place(&context, {}, &reply).ok());
    CHECK(context.GetServerInitialMetadata().contains("set-cookie"));
  }
  const auto router = router_of(*runtime);
  const CallArgs args{.path = kPath, .seed = 1};
  Pick pick = pick_until_complete(*router, args);
  router->started(pick);
  router->finished(pick, 14);
  router->unserved(router->pick(args));
  const auto missing = router_of(*runtime, "xds:///missing");
  const Pick late = missing->pick_until(args, Clock::now(), OnFail::kWait);
  CHECK(late.outcome() != PickOutcome::kComplete);
  missing->started(late);
  missing->unserved(late);
  const auto stub_of_missing = demo::v1::Orders::NewStub(runtime->channel("xds:///missing"));
  grpc::ClientContext context;
  demo::v1::PlaceReply reply;
  context.set_deadline(std::chrono::system_clock::now());
  CHECK_FALSE(stub_of_missing->Place(&context, {}, &reply).ok());

  const std::string metrics = runtime->metrics_text();
  for (const char* name : {"signalbox_calls_total",
                           "signalbox_call_duration_seconds",
                           "signalbox_pick_wait_seconds",
                           "signalbox_rpc",
                           "signalbox_picks_total",
                           "signalbox_retries_total",
                           "signalbox_affinity_picks_total",
                           "signalbox_affinity_cookies_set_total"})
    CHECK_THAT(metrics, !Contains(name));
  CHECK_THAT(metrics, Contains("signalbox_connections_open{cluster=\"c\"}"));
  const auto status = runtime->status();
  REQUIRE_FALSE(status.targets.empty());
  for (const auto& target : status.targets) {
    CHECK(target.calls_succeeded == std::nullopt);
    CHECK(target.calls_failed == std::nullopt);
  }
}

TEST_CASE("router: a call counts once for its caller, with or without an endpoint",
          "[e2e][runtime][router]") {
  const BackendProcess backend("good");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto calls = [&](const char* code) {
    return metric(*runtime, "signalbox_calls_total", {"code=\"" + std::string(code) + "\""})
        .value_or(0);
  };
  const auto router = router_of(*runtime);
  const CallArgs args{.path = kPath, .seed = 1};
  Pick pick = pick_until_complete(*router, args);
  router->started(pick);
  router->finished(pick, 0);
  CHECK(calls("OK") == 1);

  const auto missing = router_of(*runtime, "xds:///missing");
  const Pick late = missing->pick_until(args, Clock::now());
  CHECK(late.outcome() != PickOutcome::kComplete);
  const double without = calls("DEADLINE_EXCEEDED") + calls("UNAVAILABLE");
  CHECK(without == 1);
  const Pick queued = missing->pick(args);
  CHECK(calls("DEADLINE_EXCEEDED") + calls("UNAVAILABLE") == without);
  missing->unserved(queued);
  CHECK(calls("DEADLINE_EXCEEDED") + calls("UNAVAILABLE") == without + 1);
  const double unavailable = calls("UNAVAILABLE");
  // A caller that could not reach the picked endpoint calls unserved().
  router->unserved(router->pick(args));
  CHECK(calls("UNAVAILABLE") == unavailable + 1);
  CHECK(calls("OK") == 1);
  CHECK(metric(*runtime, "signalbox_pick_wait_seconds_count", {"delay_type=\"resolving\""})
            .value_or(0) >= 1);
}

TEST_CASE("router: the runtime's call_observer sees picks that wait, and calls of channels",
          "[e2e][runtime][router][trace]") {
  const BackendProcess backend("good");
  const auto plane = start_plane(simple_yaml("orders", "c", {backend.address}));
  const auto observer = std::make_shared<testing::RecordingObserver>();
  auto options = options_for(plane->address());
  options.call_observer = observer;
  const auto runtime = start_runtime(std::move(options));
  const CallArgs args{.path = kPath, .seed = 1};
  const auto missing = router_of(*runtime, "xds:///missing");
  const std::string waited = absl::StrCat("pick ", kPath, ", call's delay resolving, delay ends, ");
  SECTION("pick_until") {
    missing->pick_until(args, Clock::now(), OnFail::kWait);
    CHECK(absl::StartsWith(observer->events(), waited));
    CHECK(observer->target() == "xds:///missing");
  }
  SECTION("pick_async") {
    std::promise<void> ended;
    const auto picked = [&](const Pick&) { ended.set_value(); };
    missing->pick_async(args, Clock::now(), picked, OnFail::kWait);
    ended.get_future().wait();
    CHECK(absl::StartsWith(observer->events(), waited));
  }
  SECTION("a pick that need not wait") {
    const auto router = router_of(*runtime);
    pick_until_complete(*router, args);
    const std::string before = observer->events();
    pick_until_complete(*router, args);
    CHECK(observer->events() == before);
  }
  SECTION("a call of a channel") {
    const auto stub = demo::v1::Orders::NewStub(runtime->channel("xds:///orders"));
    demo::v1::PlaceReply reply;
    grpc::ClientContext waits;
    CHECK(stub->Place(&waits, {}, &reply).ok());
    const std::string before = observer->events();
    grpc::ClientContext context;
    CHECK(stub->Place(&context, {}, &reply).ok());
    CHECK(observer->events().substr(before.size()) ==
          absl::StrCat(", began ", kPath, ", attempt 0, sent c, attempt ends 0, ends 0"));
    CHECK(observer->target() == "xds:///orders");
    CHECK(observer->endpoint() == backend.address);
  }
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
  CHECK_FALSE(router->wait(pick, Clock::now()));  // The time is up, and nothing was published.

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

  // A change that came before on_change() is reported at once, on this thread.
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
  const Pick pick = router->pick_until(args, Clock::now() + kPatience);
  CHECK(pick.outcome() == PickOutcome::kFail);
  CHECK(pick.status().code() == absl::StatusCode::kUnavailable);
  CHECK_THAT(std::string(pick.status().message()), Contains(nobody.address()));
}

TEST_CASE("router: a pick that nobody can answer waits until its deadline",
          "[e2e][runtime][router]") {
  const auto plane = start_plane("");
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto router = router_of(*runtime);
  const CallArgs args{.path = kPath, .seed = 1};
  const auto deadline = Clock::now() + std::chrono::milliseconds(20);
  CHECK(router->pick_until(args, deadline).outcome() == PickOutcome::kQueue);
  CHECK(Clock::now() >= deadline);

  std::promise<PickOutcome> outcome;
  router->pick_async(args, deadline + std::chrono::milliseconds(20), [&](const Pick& pick) {
    outcome.set_value(pick.outcome());
  });
  auto told = outcome.get_future();
  REQUIRE(told.wait_for(kPatience) == std::future_status::ready);
  CHECK(told.get() == PickOutcome::kQueue);
}

TEST_CASE("router: the route's timeout ends a pick that waits", "[e2e][runtime][router][A31-24]") {
  const BlackHole silent;
  const BackendProcess secondary("secondary");
  const auto plane =
      start_plane(listener_yaml("orders", "routes") +
                  routes_yaml("routes", "c", ", max_stream_duration: {max_stream_duration: 0.2s}") +
                  cluster_yaml("c", "", ", connect_timeout: 600s") +
                  endpoints_yaml("c", {{silent.address()}, {secondary.address}}));
  auto options = options_for(plane->address());
  options.failover_timeout = std::chrono::nanoseconds::max();  // Never.
  const auto runtime = start_runtime(std::move(options));
  const auto router = router_of(*runtime);
  const CallArgs args{.path = kPath, .seed = 1};
  const auto never = Clock::time_point::max();
  const Pick pick = router->pick_until(args, never);
  CHECK(pick.outcome() == PickOutcome::kQueue);
  CHECK(pick.timeout() == std::chrono::milliseconds(200));

  std::promise<PickOutcome> outcome;
  router->pick_async(args, never, [&](const Pick& late) { outcome.set_value(late.outcome()); });
  auto told = outcome.get_future();
  REQUIRE(told.wait_for(kPatience) == std::future_status::ready);
  CHECK(told.get() == PickOutcome::kQueue);
}

TEST_CASE("router: who waits without blocking is called", "[e2e][runtime][router]") {
  const BackendProcess backend("good");
  const auto plane = start_plane("");
  auto runtime = start_runtime(options_for(plane->address()));
  auto router = router_of(*runtime);
  const auto never = Clock::time_point::max();
  std::promise<Pick> picked;
  const auto keep = [&](Pick pick) { picked.set_value(std::move(pick)); };
  auto result = picked.get_future();
  bool is_heard = false;
  router->pick_async({.path = kPath, .seed = 1}, never, nullptr);

  SECTION("when the pick is complete, even if the router has gone") {
    const auto unwanted = router->pick_async(
        {.path = kPath, .seed = 2}, never, [&](const Pick&) { is_heard = true; });
    router->pick_async({.path = std::string(kPath), .seed = 1}, never, keep);
    CHECK(unwanted.cancel());
    router = nullptr;
    plane->set_resources(resources(simple_yaml("orders", "c", {backend.address})));
    REQUIRE(result.wait_for(kPatience) == std::future_status::ready);
    CHECK(result.get().connection()->address().str() == backend.address);
    CHECK_FALSE(unwanted.cancel());
  }
  SECTION("when the runtime ends") {
    router->pick_async({.path = kPath, .seed = 1}, never, keep, OnFail::kWait);
    std::promise<void> begun;
    auto blocked = std::async(std::launch::async, [&] {
      begun.set_value();
      return router->pick_until({.path = kPath, .seed = 1}, never);
    });
    begun.get_future().wait();
    runtime = nullptr;
    REQUIRE(blocked.wait_for(kPatience) == std::future_status::ready);
    CHECK(blocked.get().outcome() == PickOutcome::kFail);
    REQUIRE(result.wait_for(kPatience) == std::future_status::ready);
    const Pick pick = result.get();
    CHECK(pick.outcome() == PickOutcome::kFail);
    CHECK_THAT(std::string(pick.status().message()), Contains("shut down"));
    // When the pick need not wait, the callback is called before pick_async() returns.
    bool told = false;
    const auto registered = router->pick_async(
        {.path = kPath, .seed = 1}, never, [&](const Pick&) { told = true; }, OnFail::kWait);
    CHECK(told);
    CHECK_FALSE(registered.cancel());
    CHECK(router->pick_until({.path = kPath, .seed = 1}, never, OnFail::kWait).outcome() ==
          PickOutcome::kFail);
  }
  CHECK_FALSE(is_heard);
}

TEST_CASE("router: a change that is cancelled is not told", "[e2e][runtime][router]") {
  const BackendProcess backend("good");
  const auto plane = start_plane("");
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto router = router_of(*runtime);
  const CallArgs args{.path = kPath, .seed = 1};
  const Pick pick = router->pick(args);
  bool told = false;
  const Registration registered = router->on_change(pick, [&] { told = true; });
  CHECK(registered.cancel());
  CHECK_FALSE(registered.cancel());
  CHECK_FALSE(Registration().cancel());
  // A null callback is never called, so there is nothing to cancel.
  CHECK_FALSE(router->on_change(pick, nullptr).cancel());
  CHECK_FALSE(router->pick_async(args, Clock::now() + kPatience, nullptr).cancel());
  plane->set_resources(resources(simple_yaml("orders", "c", {backend.address})));
  CHECK(pick_until_complete(*router, args).connection() != nullptr);
  CHECK_FALSE(told);
}

TEST_CASE("router: seeds differ, on one thread and on two", "[runtime][router]") {
  std::set<std::uint64_t> seeds{next_seed(), next_seed(), next_seed()};
  std::thread([&] { seeds.merge(std::set<std::uint64_t>{next_seed(), next_seed()}); }).join();
  CHECK(seeds.size() == 5);
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
    // A publication may wake the pick first. The end of the runtime wakes it for certain.
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

TEST_CASE("router: no pick goes to a connection that has ended", "[e2e][runtime][router]") {
  enum class By { kPick, kPickUntil, kPickAsync };
  const auto by = GENERATE(By::kPick, By::kPickUntil, By::kPickAsync);
  // The next snapshot may come before this thread's next pick, so one round may see nothing.
  const int round = GENERATE(1, 2, 3);
  CAPTURE(static_cast<int>(by), round);
  // pick() looks at connections from sockets only.
  if (by == By::kPick && !actors::environment_allows_sockets()) return;
  auto first = std::make_unique<BackendProcess>("first");
  const BackendProcess second("second");
  const auto plane = start_plane(simple_yaml("orders", "c", {first->address, second.address}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto router = router_of(*runtime);
  CallArgs args{.path = kPath, .seed = 1};
  Pick held;
  REQUIRE(eventually([&] {
    ++args.seed;
    held = router->pick(args);
    return held.connection() != nullptr && held.connection()->address().str() == first->address;
  }));
  const auto next_pick = [&]() -> Pick {
    ++args.seed;
    if (by == By::kPick) return router->pick(args);
    if (by == By::kPickUntil) return router->pick_until(args, Clock::now() + kPatience);
    std::promise<Pick> picked;
    auto answer = picked.get_future();
    router->pick_async(
        args, Clock::now() + kPatience, [&](Pick pick) { picked.set_value(std::move(pick)); });
    return answer.get();
  };
  std::thread killer([&] { first.reset(); });
  for (const auto limit = Clock::now() + kPatience; held.connection()->takes_calls();)
    if (Clock::now() > limit) break;
  // Now the connection knows of its end, and the policies hear of it within a millisecond.
  int to_ended = 0;
  for (const auto end = Clock::now() + 20ms; Clock::now() < end;)
    to_ended += next_pick().connection() == held.connection() ? 1 : 0;
  killer.join();
  CHECK(to_ended == 0);
  // Once snapshots are without the connection, picks need not look, though a call still has it.
  CHECK(eventually([] { return !actors::EndMark::is_any_set(); }));
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
