// SPDX-License-Identifier: Apache-2.0
#include "tools/load/collector.hpp"

#include <chrono>

#include <catch2/catch.hpp>

namespace signalbox::tools::collector_test {
namespace {

constexpr std::int64_t kMs = 1'000'000;

EndedCall failed(std::int64_t ended_ms) {
  return {.due_ns = ended_ms * kMs - 1, .ended_ns = ended_ms * kMs, .code = 14};
}

}  // namespace

TEST_CASE("collector: a call is held until an act before it has come", "[load][collector]") {
  LoadRecorder recorder("signalbox", 0, std::chrono::seconds(1));
  Collector collector(recorder);
  collector.add({}, {failed(10), failed(20)}, {});
  collector.advance(105 * kMs);
  CHECK(recorder.take_second().failed == 0);
  // The act of the script arrives late, but before the calls after it are recorded.
  collector.add_act(15 * kMs, true);
  collector.advance(110 * kMs);
  CHECK(recorder.take_second().failed == 1);
  collector.add({}, {failed(30)}, {});
  collector.add_act(40 * kMs, true);
  collector.flush();
  CHECK(recorder.take_second().failed == 2);
  const LoadSide side = recorder.finish(std::chrono::seconds(1), kMostLatenessP99Ns, {});
  REQUIRE(side.faults.size() == 2);
  CHECK(side.faults[0].lost == 2);
  CHECK(side.faults[1].lost == 0);
}

}  // namespace signalbox::tools::collector_test
