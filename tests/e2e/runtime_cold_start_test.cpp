// SPDX-License-Identifier: Apache-2.0
//
// Many targets at once: the control plane gets few requests, and no call fails because the control
// plane is slow. And a runtime ends soon although its control plane floods it with frames.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "actors/io/grpc_ads_transport.hpp"
#include "tests/e2e/flooding_server.hpp"
#include "tests/e2e/runtime_world.hpp"
#include "tests/e2e/slow_plane.hpp"

namespace signalbox::test {
namespace {

using namespace std::chrono_literals;

constexpr int kTargets = 200;

// A sanitized runtime subscribes to names more slowly than the control plane answers, so it sends
// more requests.
#if defined(__SANITIZE_ADDRESS__)
constexpr int kMostRequests = 100;
#else
constexpr int kMostRequests = 30;
#endif

}  // namespace

TEST_CASE(
    "runtime: 200 targets at once need few requests, and no call fails however slow the "
    "control plane",
    "[e2e][runtime][A57]") {
  const BackendProcess backend("c");
  std::string yaml;
  for (int i = 0; i < kTargets; ++i) {
    yaml += simple_yaml(absl::StrCat("t", i), absl::StrCat("c", i), {backend.address});
  }
  SlowPlane plane(resources(yaml), 20ms);
  const auto runtime = start_runtime(options_for(plane.address()));
  std::vector<std::unique_ptr<Calls>> calls;
  for (int i = 0; i < kTargets; ++i) {
    calls.push_back(std::make_unique<Calls>(runtime->channel(absl::StrCat("xds:///t", i))));
    calls.back()->start(1, {.timeout = 60s});
  }
  for (const auto& call : calls) {
    for (const Answer& answer : call->finish()) {
      INFO(answer.text());
      CHECK(answer.ok());
    }
  }
  CHECK(plane.requests() <= kMostRequests);
}

TEST_CASE("runtime: it ends soon, whatever the control plane floods it with",
          "[e2e][runtime][S11]") {
  // ~Runtime waits for the calls of the ADS transport, at most for kMostWaitForCalls. Closing a
  // socket can take the kernel 15 to 20 s, for which ~Runtime must not wait. kSoon lies between the
  // two times.
  STATIC_REQUIRE(actors::kMostWaitForCalls <= 2s);
  constexpr auto kSoon = 10s;
  const std::string frame = GENERATE(http2_ping(), http2_settings(), std::string());
  FloodingServer server(frame);
  auto runtime = start_runtime(options_for(server.address()));
  {
    const auto channel = runtime->channel("xds:///orders");
    Calls calls(channel);
    calls.start(1, {.timeout = 60s});
    REQUIRE(eventually([&] { return server.is_held_up(); }));
    const auto begun = std::chrono::steady_clock::now();
    runtime.reset();
    CHECK(std::chrono::steady_clock::now() - begun < kSoon);
    for (const Answer& answer : calls.finish())
      CHECK_FALSE(answer.ok());
  }
}

}  // namespace signalbox::test
