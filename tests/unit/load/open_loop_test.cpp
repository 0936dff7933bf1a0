// SPDX-License-Identifier: Apache-2.0
#include "tools/load/open_loop.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::tools::open_loop_test {
namespace {

using namespace std::chrono_literals;
using Clock = OpenLoop::Clock;

// An engine without threads: the test begins and ends each call.
class StillEngine final : public OpenLoop {
 public:
  using OpenLoop::OpenLoop;

  std::chrono::nanoseconds own_cpu() const override { return 0ns; }

  std::optional<Clock::time_point> due() { return next_due(); }

  // Begins a call that was due so long ago. nullopt: it was dropped.
  std::optional<EndedCall> call(std::chrono::nanoseconds ago = 0ns, std::uint64_t number = 0) {
    const auto begun = begin(Clock::now() - ago, number);
    if (!begun) return std::nullopt;
    return ended_call(*begun, 0);
  }

  void end(const EndedCall& call) { leave(call.is_closed_loop); }

 private:
  void launch() override {}
};

// The engine is on the heap: its rings are too large for a stack.
std::unique_ptr<StillEngine> engine_of(CallPlan plan, Clock::time_point begin = Clock::now()) {
  plan.profile = {{.from = 100, .to = 100}};
  plan.arrivals = Arrivals::kEven;
  auto engine = std::make_unique<StillEngine>(std::move(plan));
  engine->start(begin);
  return engine;
}

}  // namespace

TEST_CASE("open loop: calls are due until the end, or until it stops", "[load][open_loop]") {
  const auto begin = Clock::now();
  const auto engine = engine_of({.warmup = 20ms, .duration = 15ms}, begin);
  CHECK(engine->due() == begin + 10ms);
  CHECK(engine->due() == begin + 20ms);
  CHECK(engine->due() == begin + 30ms);
  CHECK(engine->due() == std::nullopt);  // The end is after 35 ms.
  const auto other = engine_of({});
  CHECK(other->due().has_value());
  other->stop();
  CHECK(other->due() == std::nullopt);
}

TEST_CASE("open loop: a call is dropped when too many are in flight", "[load][open_loop]") {
  const auto engine = engine_of({.max_in_flight = 2});
  const auto first = engine->call();
  REQUIRE(first.has_value());
  CHECK(engine->call().has_value());
  CHECK_FALSE(engine->call().has_value());
  engine->end(*first);
  CHECK(engine->call().has_value());
  std::vector<bool> dropped;
  for (const SentCall& sent : engine->drain().sent)
    dropped.push_back(sent.is_dropped);
  CHECK(dropped == std::vector<bool>{false, false, true, false});
}

TEST_CASE("open loop: a call is dropped when its timeout passed before its turn",
          "[load][open_loop]") {
  const auto engine = engine_of({.call_timeout = 1h});
  CHECK(engine->call(30min).has_value());
  CHECK_FALSE(engine->call(61min).has_value());
  const auto sent = engine->drain().sent;
  REQUIRE(sent.size() == 2);
  CHECK_FALSE(sent[0].is_dropped);
  CHECK(sent[1].is_dropped);
}

TEST_CASE("open loop: a closed loop makes a call only when one of its callers is free",
          "[load][open_loop]") {
  const auto engine = engine_of({.closed_loop_callers = 2});
  const auto first = engine->call();
  CHECK(first->is_closed_loop);
  CHECK(engine->call()->is_closed_loop);
  const auto third = engine->call();
  CHECK_FALSE(third->is_closed_loop);
  engine->end(*third);  // No caller of the closed loop waited for this call.
  CHECK_FALSE(engine->call()->is_closed_loop);
  engine->end(*first);
  CHECK(engine->call()->is_closed_loop);
  CHECK_FALSE(engine->call()->is_closed_loop);
}

TEST_CASE("open loop: sessions take turns", "[load][open_loop]") {
  const auto engine = engine_of({.sessions = 2});
  CHECK(engine->call(0ns, 4)->session == 0);
  CHECK(engine->call(0ns, 5)->session == 1);
  CHECK(engine_of({})->call()->session == EndedCall::kNoSession);
}

}  // namespace signalbox::tools::open_loop_test
