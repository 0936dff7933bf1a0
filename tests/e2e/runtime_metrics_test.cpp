// SPDX-License-Identifier: Apache-2.0
//
// Metrics of a runtime while its backends come and go.
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <signal.h>

#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

using Labels = std::vector<std::string>;

// A sum without series is 0.
double sum(const Runtime& runtime, const std::string& name, const Labels& labels = {}) {
  return metric(runtime, "signalbox_" + name, labels).value_or(0);
}

}  // namespace

TEST_CASE("runtime: without backends the calls of the application are counted, and no attempts",
          "[e2e][runtime][metrics]") {
  constexpr int kCalls = 20;
  BackendProcess first("first");
  BackendProcess second("second");
  const auto plane = start_plane(simple_yaml("orders", "c", {first.address, second.address}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  const Labels ok{"target=\"xds:///orders\"", "code=\"OK\""};
  const Labels unavailable{"target=\"xds:///orders\"", "code=\"UNAVAILABLE\""};
  CHECK(eventually([&] { return sum(*runtime, "calls_total", ok) == 1; }));
  CHECK(sum(*runtime, "rpcs_started_total") == 1);
  CHECK(sum(*runtime, "calls_total", unavailable) == 0);

  first.process.send_signal(SIGKILL);
  second.process.send_signal(SIGKILL);
  REQUIRE(eventually([&] { return runtime->ready() == false; }));
  wait_for_failure(channel);
  const double failed = sum(*runtime, "calls_total", unavailable);
  const double ended = sum(*runtime, "call_duration_seconds_count");
  const double started = sum(*runtime, "rpcs_started_total");
  const double completed = sum(*runtime, "rpcs_completed_total");
  for (int i = 0; i < kCalls; ++i)
    CHECK(call(channel).status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(sum(*runtime, "calls_total", unavailable) == failed + kCalls);
  CHECK(sum(*runtime, "call_duration_seconds_count") == ended + kCalls);
  CHECK(sum(*runtime, "rpcs_started_total") == started);
  CHECK(sum(*runtime, "rpcs_completed_total") == completed);
  CHECK(sum(*runtime, "calls_total", ok) == 1);
}

}  // namespace signalbox::test
