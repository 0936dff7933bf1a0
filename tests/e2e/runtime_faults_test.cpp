// SPDX-License-Identifier: Apache-2.0
//
// The fault filter (gRFC A33) on calls of a runtime, through the drop-in channel and the Pick API.
#include <future>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using Clock = std::chrono::steady_clock;

const char kAll[] = "percentage: {numerator: 100}";
// A delay of an hour outlasts every test.
const std::string kLongDelay = absl::StrCat("delay: {fixed_delay: 3600s, ", kAll, "}");
const std::string kShortDelay = absl::StrCat("delay: {fixed_delay: 0.05s, ", kAll, "}");
const std::string kByHeader =
    absl::StrCat("delay: {header_delay: {}, ", kAll, "}, abort: {header_abort: {}, ", kAll, "}");

std::string fault_config(const std::string& fields) {
  return absl::StrCat(
      "{\"@type\": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault",
      fields.empty() ? "" : ", ",
      fields,
      "}");
}

std::string fault(const std::string& fields) {
  return absl::StrCat("{name: fault, typed_config: ", fault_config(fields), "}, ");
}

// Calls to "orders" pass a fault filter. `more`: further fields of the route's action.
struct FaultyWorld {
  explicit FaultyWorld(const std::string& fields, const std::string& more = "")
      : plane(start_plane(listener_yaml("orders", "orders", fault(fields)) +
                          routes_yaml("orders", "c", more) + cluster_yaml("c") +
                          endpoints_yaml("c", {{backend.address()}}))),
        runtime(start_runtime(options_for(plane->address()))),
        channel(runtime->channel("xds:///orders")) {}

  // Changes the filter's configuration, and returns when it is in use.
  void set_fault(const std::string& fields) {
    const auto before = metric(*runtime, "signalbox_config_generation");
    plane->update(resources(listener_yaml("orders", "orders", fault(fields))));
    REQUIRE(eventually([&] { return metric(*runtime, "signalbox_config_generation") > before; }));
  }

  double injected(const std::string& kind) const {
    return metric(
               *runtime, "signalbox_faults_injected_total", {absl::StrCat("kind=\"", kind, "\"")})
        .value_or(-1);
  }

  bool some_wait(double calls = 1) const {
    return eventually([&] { return injected("delay") == calls; });
  }

  HoldingBackend backend{"c"};
  std::unique_ptr<ControlPlane> plane;
  std::unique_ptr<Runtime> runtime;
  std::shared_ptr<grpc::ChannelInterface> channel;
};

}  // namespace

TEST_CASE("faults: a call is aborted with the code that its header says",
          "[e2e][runtime][fault][A33]") {
  FaultyWorld world(kByHeader);
  REQUIRE(call(world.channel).ok());
  CHECK(world.injected("abort") == 0);
  for (int code = 1; code <= 16; ++code) {
    const Answer answer = call(
        world.channel, {.headers = {{"x-envoy-fault-abort-grpc-request", std::to_string(code)}}});
    CHECK(answer.status.error_code() == code);
    CHECK_THAT(answer.status.error_message(),
               StartsWith("xds:///orders: cluster c: Fault injected ("));
  }
  CHECK(world.injected("abort") == 16);
  const auto by_http = [&](const std::string& status) {
    return call(world.channel,
                {.wait_for_ready = true, .headers = {{"x-envoy-fault-abort-request", status}}})
        .status.error_code();
  };
  CHECK(by_http("503") == grpc::StatusCode::UNAVAILABLE);
  CHECK(by_http("200") == grpc::StatusCode::UNKNOWN);
  CHECK(by_http("nonsense") == grpc::StatusCode::OK);
  CHECK(by_http("-503") == grpc::StatusCode::OK);
}

TEST_CASE("faults: OK ends a call as if the server had answered with nothing else",
          "[e2e][runtime][fault][A33]") {
  FaultyWorld world(absl::StrCat("abort: {grpc_status: 0, ", kAll, "}"));
  const Answer answer = call(world.channel);
  CHECK(answer.status.error_code() == grpc::StatusCode::UNIMPLEMENTED);
  CHECK_THAT(answer.status.error_message(), Contains("No message returned"));
  CHECK(world.injected("abort") == 1);
}

TEST_CASE("faults: a call is delayed, and then as any other", "[e2e][runtime][fault][A33]") {
  FaultyWorld world(kByHeader);
  REQUIRE(call(world.channel).ok());
  const auto began = Clock::now();
  CHECK(call(world.channel, {.headers = {{"x-envoy-fault-delay-request", "50"}}}).ok());
  CHECK(Clock::now() - began >= 50ms);
  CHECK(world.injected("delay") == 1);
  CHECK(world.injected("abort") == 0);
  const Answer both = call(world.channel,
                           {.headers = {{"x-envoy-fault-delay-request", "1"},
                                        {"x-envoy-fault-abort-grpc-request", "5"}}});
  CHECK(both.status.error_code() == grpc::StatusCode::NOT_FOUND);
  CHECK(world.injected("delay") == 2);
  CHECK(world.injected("abort") == 1);
}

TEST_CASE("faults: many calls are delayed at once, and none is held up by another",
          "[e2e][runtime][fault][A33]") {
  FaultyWorld world(kShortDelay);
  Calls calls(world.channel);
  calls.start(200, {});
  for (const Answer& answer : calls.finish())
    CHECK(answer.ok());
  CHECK(world.injected("delay") == 200);
}

TEST_CASE("faults: a first call is delayed that waits for its configuration",
          "[e2e][runtime][fault][A33]") {
  FaultyWorld world(kShortDelay);
  const auto began = Clock::now();
  CHECK(call(world.channel).ok());
  CHECK(Clock::now() - began >= 50ms);
}

TEST_CASE("faults: a call can be cancelled while it is delayed", "[e2e][runtime][fault][A33]") {
  FaultyWorld world(kLongDelay);
  const auto stub = demo::v1::Orders::NewStub(world.channel);
  grpc::ClientContext context;
  auto status = std::async(std::launch::async, [&] {
    demo::v1::PlaceReply reply;
    return stub->Place(&context, {}, &reply);
  });
  REQUIRE(world.some_wait());
  context.TryCancel();
  const grpc::Status ended = status.get();
  CHECK(ended.error_code() == grpc::StatusCode::CANCELLED);
}

TEST_CASE("faults: deadline and route timeout count while a call is delayed",
          "[e2e][runtime][fault][A33][A31-24]") {
  const bool by_route = GENERATE(false, true);
  INFO((by_route ? "the route's" : "the application's"));
  FaultyWorld world(kLongDelay,
                    by_route ? ", max_stream_duration: {max_stream_duration: 0.1s}" : "");
  for (int i = 0; i < 2; ++i) {  // The first call begins before there is a configuration.
    const Answer answer = call(world.channel, {.timeout = by_route ? kPatience : 100ms});
    CHECK(answer.status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
    if (i > 0) CHECK_THAT(answer.status.error_message(), Contains("while delayed by a filter"));
  }
}

TEST_CASE("faults: a delayed call ends with the runtime", "[e2e][runtime][fault][A33]") {
  FaultyWorld world(kLongDelay);
  Calls calls(world.channel);
  calls.start(3, {});
  REQUIRE(world.some_wait(3));
  world.runtime = nullptr;
  for (const Answer& answer : calls.finish())
    CHECK(answer.status.error_code() == grpc::StatusCode::UNAVAILABLE);
}

TEST_CASE("faults: publications do not concern a delayed call, and its route stays",
          "[e2e][runtime][fault][A33][A31-1]") {
  FaultyWorld world(kLongDelay);
  Calls calls(world.channel);
  calls.start(1, {});
  REQUIRE(world.some_wait());
  world.set_fault("");
  CHECK(call(world.channel).ok());
  CHECK(calls.running() == 1);
  world.runtime = nullptr;
  calls.finish();
}

TEST_CASE("faults: so many are active in the whole process", "[e2e][runtime][fault][A33]") {
  FaultyWorld world(kLongDelay + ", max_active_faults: 2");
  FaultyWorld other(kLongDelay + ", max_active_faults: 2");
  {
    Calls calls(world.channel);
    calls.start(2, {});
    REQUIRE(world.some_wait(2));
    CHECK(call(world.channel).ok());
    CHECK(call(other.channel).ok());
    CHECK(other.injected("delay") == 0);
    world.runtime = nullptr;
    calls.finish();
  }
  Calls calls(other.channel);
  calls.start(2, {});
  CHECK(other.some_wait(2));
  other.runtime = nullptr;
}

TEST_CASE("faults: a virtual host, a route and a weighted cluster have their own",
          "[e2e][runtime][fault][A39]") {
  const auto own = [](int code) {
    return absl::StrCat(", typed_per_filter_config: {fault: ",
                        fault_config(absl::StrCat("abort: {grpc_status: ", code, ", ", kAll, "}")),
                        "}");
  };
  const auto match = [](const std::string& level) {
    return absl::StrCat(
        "match: {prefix: \"\", headers: [{name: level, string_match: {exact: ", level, "}}]}, ");
  };
  const std::string routes = absl::StrCat(
      "  - {\"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: orders, "
      "virtual_hosts: [{name: all, domains: [\"*\"]",
      own(3),
      ", routes: [{",
      match("route"),
      "route: {cluster: c}",
      own(5),
      "}, {",
      match("cluster"),
      "route: {weighted_clusters: {clusters: [{name: c, weight: 1",
      own(6),
      "}]}}",
      own(5),
      "}, {",
      match("none"),
      "route: {cluster: c}, typed_per_filter_config: {fault: {\"@type\": "
      "type.googleapis.com/envoy.config.route.v3.FilterConfig, disabled: true}}}, "
      "{match: {prefix: \"\"}, route: {cluster: c}}]}]}\n");
  const BackendProcess backend("c");
  const auto plane = start_plane(listener_yaml("orders", "orders", fault("")) + routes +
                                 cluster_yaml("c") + endpoints_yaml("c", {{backend.address}}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  const auto code = [&](const std::string& level) {
    return call(channel, {.headers = {{"level", level}}}).status.error_code();
  };
  CHECK(code("host") == 3);
  CHECK(code("route") == 5);
  CHECK(code("cluster") == 6);
  CHECK(code("none") == 0);
}

// --- Pick API -------------------------------------------------------------------------

TEST_CASE("faults: a pick says how long it waits, and the router waits so long",
          "[e2e][runtime][router][fault][A33]") {
  FaultyWorld world(kByHeader);
  REQUIRE(call(world.channel).ok());

  struct OneHeader final : HeaderSource {
    void each(absl::string_view name,
              absl::FunctionRef<void(absl::string_view)> visit) const override {
      if (name == "x-envoy-fault-delay-request") visit(delay);
    }

    std::string delay = "50";
  } headers;

  const auto router = *world.runtime->router("xds:///orders");
  const CallArgs args{.path = "/signalbox.demo.v1.Orders/Place", .headers = &headers, .seed = 1};

  SECTION("it is picked when it has waited") {
    const auto began = Clock::now();
    Pick pick = router->pick(args);
    CHECK(pick.outcome() == PickOutcome::kQueue);
    CHECK(pick.delay() == 50ms);
    CHECK(pick.due() >= began + 50ms);
    CHECK(router->wait(pick, Clock::now() + kPatience));
    CHECK(Clock::now() >= pick.due());
    router->repick(pick, args);
    CHECK(pick.outcome() == PickOutcome::kComplete);
  }
  SECTION("before that it stays as it is") {
    headers.delay = "3600000";
    Pick pick = router->pick(args);
    CHECK_FALSE(router->wait(pick, Clock::now()));
    router->repick(pick, args);
    CHECK(pick.outcome() == PickOutcome::kQueue);
    CHECK(pick.delay() == 1h);
  }
  SECTION("it is told when it has waited") {
    Pick pick = router->pick(args);
    std::promise<Clock::time_point> told;
    router->on_change(pick, [&] { told.set_value(Clock::now()); });
    auto when = told.get_future();
    REQUIRE(when.wait_for(kPatience) == std::future_status::ready);
    CHECK(router->wait(pick, Clock::now() + kPatience));
    router->repick(pick, args);
    CHECK(pick.outcome() == PickOutcome::kComplete);
  }
  SECTION("it comes by itself when it has waited") {
    const auto began = Clock::now();
    std::promise<PickOutcome> came;
    router->pick_async(
        args, Clock::time_point::max(), [&](const Pick& pick) { came.set_value(pick.outcome()); });
    auto outcome = came.get_future();
    REQUIRE(outcome.wait_for(kPatience) == std::future_status::ready);
    CHECK(outcome.get() == PickOutcome::kComplete);
    CHECK(Clock::now() >= began + 50ms);
  }
  SECTION("it is told of the end of the runtime, and of nothing before") {
    headers.delay = "3600000";
    const Pick pick = router->pick(args);
    std::atomic<int> told{0};
    router->on_change(pick, [&] { ++told; });
    world.set_fault("");
    CHECK(call(world.channel).ok());
    CHECK(told == 0);
    world.runtime = nullptr;
    CHECK(told == 1);
    CHECK_FALSE(router->wait(pick, Clock::now() + kPatience));
  }
}

}  // namespace signalbox::test
