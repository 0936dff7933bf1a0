// SPDX-License-Identifier: Apache-2.0
//
// EndpointTransport::kTcp: applications with connections of their own pick endpoints, which need
// not speak gRPC.
#include "tests/e2e/attempt_record.hpp"
#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test::runtime_transport_test {
namespace {

using Catch::Matchers::Contains;
using Clock = Router::Clock;

const CallArgs kCall{.path = "/orders/7", .seed = 1};

std::unique_ptr<Runtime> start_tcp_runtime(const ControlPlane& plane) {
  auto options = options_for(plane.address());
  options.transport = EndpointTransport::kTcp;
  options.keepalive_time = std::chrono::seconds(60);
  return start_runtime(std::move(options));
}

std::shared_ptr<Router> router_of(Runtime& runtime) {
  auto router = runtime.router("xds:///orders");
  REQUIRE(router.ok());
  return *router;
}

std::string picked(const Router& router) {
  const Pick pick = router.pick_until(kCall, Clock::now() + kPatience, OnFail::kWait);
  return pick.connection() == nullptr ? "" : pick.connection()->address().str();
}

}  // namespace

TEST_CASE("runtime: what says nothing can be picked over TCP, not over gRPC",
          "[e2e][runtime][transport]") {
  MuteSocket mute;
  mute.listen();
  const auto plane = start_plane(simple_yaml("orders", "c", {mute.address().str()}));
  const auto over_grpc = start_runtime(options_for(plane->address()));
  const auto never = router_of(*over_grpc);
  const auto over_tcp = start_tcp_runtime(*plane);
  CHECK(picked(*router_of(*over_tcp)) == mute.address().str());
  const auto a_moment = Clock::now() + std::chrono::milliseconds(50);
  CHECK(never->pick_until(kCall, a_moment).outcome() == PickOutcome::kQueue);

  const Answer answer = call(over_tcp->channel("xds:///orders"), {.wait_for_ready = true});
  CHECK(answer.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(answer.status.error_message(), Contains("RuntimeOptions::transport is not kGrpc"));
}

TEST_CASE("runtime: over TCP, too, the next priority takes over", "[e2e][runtime][transport]") {
  auto first = std::make_unique<HoldingBackend>("first");
  HoldingBackend second("second");
  const std::string preferred = first->address();
  const auto plane =
      start_plane(listener_yaml("orders", "orders") + routes_yaml("orders", "c") +
                  cluster_yaml("c") + endpoints_yaml("c", {{preferred}, {second.address()}}));
  const auto runtime = start_tcp_runtime(*plane);
  const auto router = router_of(*runtime);
  CHECK(picked(*router) == preferred);
  first.reset();
  CHECK(eventually([&] { return picked(*router) == second.address(); }));
}

TEST_CASE("runtime: over TCP an endpoint that cannot be reached is said to be",
          "[e2e][runtime][transport]") {
  const BlackHole silent;
  const RefusingAddress refusing;
  const bool refuses = GENERATE(true, false);
  const auto plane =
      start_plane(listener_yaml("orders", "orders") + routes_yaml("orders", "c") +
                  cluster_yaml("c", "", ", connect_timeout: 0.2s") +
                  endpoints_yaml("c", {{refuses ? refusing.address() : silent.address()}}));
  const auto runtime = start_tcp_runtime(*plane);
  const Pick pick = router_of(*runtime)->pick_until(kCall, Clock::now() + kPatience);
  CHECK(pick.outcome() == PickOutcome::kFail);
  CHECK_THAT(
      std::string(pick.status().message()),
      Contains(refuses ? "Connection refused" : "it was not made within 200 ms (connect_timeout)"));
}

}  // namespace signalbox::test::runtime_transport_test
