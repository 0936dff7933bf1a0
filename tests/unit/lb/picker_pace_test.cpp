// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/picker_pace.hpp"

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/leaf/least_request.hpp"
#include "lb/leaf/maglev.hpp"
#include "lb/leaf/ring_hash.hpp"
#include "lb/leaf/round_robin.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

using namespace std::chrono_literals;

namespace signalbox::lb {
namespace {

using Need = PickerPace::Need;
using Order = PickerPace::Order;

const Order kNothing{};
const Order kBuild{true, std::nullopt};

Order timer(Duration delay) {
  return {false, delay};
}

Instant at(Duration since_start) {
  return Instant{} + since_start;
}

// A leaf in virtual time. It runs RebuildSoon and the timers of the pace as a shell does.
class PacedLeaf {
 public:
  template <typename Config>
  explicit PacedLeaf(const Config& config, Duration cost = 0ns)
      : leaf(make_leaf(config, context())), cost_(cost) {}

  // Each of these functions makes one event, and then ends the burst.
  void ready(const std::string& address) { settle(leaf.ready(address)); }

  void fail(const std::string& address) { settle(leaf.fail(address)); }

  void unhealthy(const std::string& address) { settle(leaf.unhealthy(address)); }

  void connecting(const std::string& address) { settle(leaf.connecting(address)); }

  void ask_for(const std::string& address) {
    settle(leaf.step(PickAsked{PickAsk{PickAsk::Kind::kConnect, Address{address}}}));
  }

  void update(const std::vector<std::string>& endpoints, LbConfigPtr config = nullptr) {
    settle(leaf.update(endpoints, std::move(config)));
  }

  // Lets the time pass, and fires the timers that are due.
  void pass(Duration duration) {
    const Instant end = leaf.now + duration;
    while (!due_.empty() && due_.front().first <= end) {
      const auto [when, timer] = due_.front();
      due_.erase(due_.begin());
      leaf.now = when;
      settle(leaf.step(TimerFired{timer}));
    }
    leaf.now = end;
  }

  // The number of pickers since published() was last called.
  std::size_t published() {
    const std::size_t before = std::exchange(seen_, leaf.published.size());
    return leaf.published.size() - before;
  }

  LeafHarness leaf;

 private:
  static PolicyContext context() {
    PolicyContext context{PolicyPath{"p"}, 1, std::make_shared<const DeafTarget>()};
    context.options.picker_interval = kPickerInterval;
    return context;
  }

  void settle(const LbEffects& effects) {
    for (const LbEffect& effect : effects) {
      if (const auto* start = std::get_if<StartTimer>(&effect)) {
        due_.emplace_back(leaf.now + start->delay, start->timer);
      } else if (std::holds_alternative<RebuildSoon>(effect)) {
        settle(leaf.step(RebuildDue{cost_}));
      }
    }
  }

  Duration cost_;
  std::vector<std::pair<Instant, TimerId>> due_;  // The pace has one timer at most.
  std::size_t seen_ = 0;
};

std::vector<std::string> numbered(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < count; ++at)
    names.push_back(absl::StrCat("e", at));
  return names;
}

}  // namespace

TEST_CASE("picker pace: an order follows from need, time and cost", "[lb][picker_pace]") {
  struct Row {
    const char* what;
    Need need;
    Duration since_built;
    Duration cost;
    Order order;
  };

  const auto row = GENERATE(values<Row>({
      {"nothing is needed", Need::kNone, 1h, 0ns, kNothing},
      {"at once, however young the picker", Need::kNow, 0ns, 0ns, kBuild},
      {"at once, however dear the picker", Need::kNow, 1ns, 50ms, kBuild},
      {"it may wait: the interval", Need::kMayWait, 0ns, 0ns, timer(5ms)},
      {"the rest of the interval", Need::kMayWait, 2ms, 0ns, timer(3ms)},
      {"the interval is over", Need::kMayWait, 5ms, 0ns, kBuild},
      {"a cheap picker waits no less", Need::kMayWait, 1ms, 100us, timer(4ms)},
      {"20 times the cost", Need::kMayWait, 5ms, 1ms, timer(15ms)},
      {"20 times the cost are over", Need::kMayWait, 20ms, 1ms, kBuild},
      {"a pause was measured as a cost", Need::kMayWait, 0ns, 3s, timer(1s)},
      {"no overflow", Need::kMayWait, 0ns, Duration::max(), timer(1s)},
  }));
  INFO(row.what);
  PickerPace pace(kPickerInterval);
  pace.built(at(1s));
  pace.need(row.need);
  CHECK(pace.burst_ended(at(1s) + row.since_built, row.cost) == row.order);
  CHECK(pace.waits() == row.order.timer.has_value());
  CHECK(pace.awaits_burst() == row.order.build);
}

TEST_CASE("picker pace: the first picker never waits", "[lb][picker_pace]") {
  PickerPace pace(kPickerInterval);
  pace.need(Need::kMayWait);
  CHECK(pace.burst_ended(at(0ns), 1s) == kBuild);
}

TEST_CASE("picker pace: with interval and cost 0 each burst has its picker", "[lb][picker_pace]") {
  PickerPace pace(Duration::zero());
  pace.built(at(0ns));
  pace.need(Need::kMayWait);
  CHECK(pace.burst_ended(at(0ns), 0ns) == kBuild);
}

TEST_CASE("picker pace: one timer for all needs that wait", "[lb][picker_pace]") {
  PickerPace pace(kPickerInterval);
  pace.built(at(0ns));
  pace.need(Need::kMayWait);
  CHECK(pace.burst_ended(at(1ms), 0ns) == timer(4ms));
  pace.need(Need::kMayWait);
  CHECK_FALSE(pace.awaits_burst());
  // A burst that ends for another reason, for example a re-resolution, starts no second timer.
  CHECK(pace.burst_ended(at(2ms), 0ns) == kNothing);
  CHECK(pace.timer_fired(at(5ms)) == kBuild);
}

TEST_CASE("picker pace: an urgent need overtakes the timer", "[lb][picker_pace]") {
  PickerPace pace(kPickerInterval);
  pace.built(at(0ns));
  pace.need(Need::kMayWait);
  CHECK(pace.burst_ended(at(1ms), 0ns) == timer(4ms));
  pace.need(Need::kNow);
  pace.need(Need::kMayWait);  // A weaker need changes nothing.
  CHECK(pace.awaits_burst());
  CHECK_FALSE(pace.waits());
  CHECK(pace.burst_ended(at(2ms), 0ns) == kBuild);
  pace.built(at(2ms));

  SECTION("the timer fires for nothing") {
    CHECK(pace.timer_fired(at(5ms)) == kNothing);
    pace.need(Need::kMayWait);
    CHECK(pace.awaits_burst());
  }
  SECTION("the timer fires too early for the next need, which gets the rest of its time") {
    pace.need(Need::kMayWait);
    CHECK_FALSE(pace.awaits_burst());
    CHECK(pace.timer_fired(at(5ms)) == timer(2ms));
    CHECK(pace.timer_fired(at(7ms)) == kBuild);
  }
}

TEST_CASE("picker pace: 10,000 endpoints that become READY one by one are few pickers",
          "[lb][picker_pace][scale]") {
  struct Row {
    Duration between;
    Duration cost;
    std::size_t most;
  };

  // `most` is one picker an interval, and two more: CONNECTING, and the first READY at once.
  const auto row = GENERATE(values<Row>({
      {100us, 0ns, 1'000'000 / 5'000 + 2},
      {100us, 1ms, 1'000'000 / 20'000 + 2},
      {0ns, 1ms, 3},
  }));
  const std::vector<std::string> endpoints = numbered(10'000);
  PacedLeaf paced(RoundRobinConfig{}, row.cost);
  paced.update(endpoints);
  for (const std::string& endpoint : endpoints) {
    paced.ready(endpoint);
    paced.pass(row.between);
  }
  paced.pass(1s);
  CHECK(paced.published() <= row.most);
  CHECK(paced.leaf.published.back().hosts->priorities.front().healthy.hosts == 10'000);
  // The last picker has all endpoints.
  std::set<std::string> picked;
  for (std::size_t call = 0; call < endpoints.size(); ++call)
    picked.insert(paced.leaf.pick());
  CHECK(picked.size() == endpoints.size());
}

TEST_CASE("picker pace: a gain waits, and what may lead calls wrong does not",
          "[lb][picker_pace][round_robin]") {
  PacedLeaf paced(RoundRobinConfig{});
  paced.update({"a", "b", "c"});
  CHECK(paced.published() == 1);  // CONNECTING
  paced.ready("a");
  CHECK(paced.published() == 1);  // The first READY: a change of the state.
  paced.ready("b");
  CHECK(paced.published() == 0);

  SECTION("the gain is published when the interval is over") {
    paced.pass(5ms);
    CHECK(paced.published() == 1);
    paced.pass(1h);
    CHECK(paced.published() == 0);
  }
  SECTION("a loss is published at once, and the gain with it") {
    paced.fail("a");
    CHECK(paced.published() == 1);
    CHECK(paced.leaf.pick() == "b");
    paced.pass(1h);
    CHECK(paced.published() == 0);
  }
  SECTION("the last loss is a change of the state") {
    paced.fail("b");
    paced.fail("c");
    paced.published();
    paced.fail("a");
    CHECK(paced.published() == 1);
    CHECK(paced.leaf.state() == ConnectivityState::kTransientFailure);
  }
  SECTION("an endpoint that a judge finds unfit takes no more calls") {
    paced.unhealthy("a");
    CHECK(paced.published() == 1);
    CHECK(paced.leaf.pick() == "b");
  }
  SECTION("another connection of the same endpoint is used at once") {
    paced.ready("a");
    CHECK(paced.published() == 1);
  }
  SECTION("an endpoint that leaves the list takes no more calls") {
    paced.update({"b", "c"});
    CHECK(paced.published() == 1);
    CHECK(paced.leaf.pick() == "b");
  }
}

TEST_CASE("picker pace: another text of the same failure waits", "[lb][picker_pace]") {
  PacedLeaf paced(RoundRobinConfig{});
  paced.update({"a", "b"});
  paced.fail("a");
  paced.fail("b");
  CHECK(paced.leaf.state() == ConnectivityState::kTransientFailure);
  paced.published();
  for (int round = 0; round < 100; ++round) {
    paced.fail("a");
    paced.fail("b");
  }
  CHECK(paced.published() == 0);
  paced.pass(5ms);
  CHECK(paced.published() == 1);
  paced.ready("a");
  CHECK(paced.published() == 1);
  CHECK(paced.leaf.state() == ConnectivityState::kReady);
}

TEST_CASE("picker pace: another configuration does not wait", "[lb][picker_pace][least_request]") {
  PacedLeaf paced(LeastRequestConfig{2});
  const auto config = [](std::uint32_t choices) {
    return std::make_shared<const LbConfig>(LeastRequestConfig{choices});
  };
  paced.update({"a", "b"}, config(2));
  paced.ready("a");
  paced.published();
  paced.update({"a", "b"}, config(4));
  CHECK(paced.published() == 1);
}

TEST_CASE("picker pace: more fit hosts are reported with their picker", "[lb][picker_pace]") {
  PacedLeaf paced(RoundRobinConfig{});
  const auto fit = [&] {
    return paced.leaf.published.back().hosts->priorities.front().healthy.hosts;
  };
  paced.update({"a", "b", "c"});
  paced.fail("a");
  paced.fail("b");
  paced.ready("c");
  paced.published();
  CHECK(fit() == 1);
  paced.ready("a");
  CHECK(paced.published() == 0);
  CHECK(fit() == 1);

  SECTION("later") {
    paced.pass(5ms);
    CHECK(paced.published() == 1);
    CHECK(fit() == 2);
  }
  SECTION("a configuration is reported as applied with its own count") {
    paced.update({"a", "c"});
    CHECK(paced.leaf.applied == 2);
    CHECK(paced.leaf.published.back().hosts->priorities.front().total.hosts == 2);
    CHECK(fit() == 2);
  }
}

TEST_CASE("picker pace: fewer fit hosts are reported while a picker waits", "[lb][picker_pace]") {
  PacedLeaf paced(RoundRobinConfig{});
  paced.update({"a", "b", "c"});
  paced.connecting("c");
  paced.ready("a");
  paced.ready("b");
  paced.published();
  const PickerPtr picker = paced.leaf.published.back().picker;
  paced.fail("c");
  REQUIRE(paced.published() == 1);
  CHECK(paced.leaf.published.back().hosts->priorities.front().healthy.hosts == 2);
  CHECK(paced.leaf.published.back().picker == picker);
  paced.pass(5ms);
  CHECK(paced.published() == 1);
  CHECK(paced.leaf.published.back().picker != picker);
}

TEST_CASE("picker pace: maglev's calls follow another list at once, and another state may wait",
          "[lb][picker_pace][maglev]") {
  const auto config = std::make_shared<const LbConfig>(MaglevConfig{251});
  PacedLeaf paced(MaglevConfig{251});
  const auto picker = [&] { return paced.leaf.published.back().picker; };
  paced.update({"a", "b"}, config);
  paced.ready("a");
  paced.ready("b");
  paced.pass(5ms);
  PickerPtr before = picker();
  paced.update({"a", "b", "c"}, config);
  CHECK(picker() != before);

  before = picker();
  paced.fail("c");
  CHECK(picker() == before);
  paced.pass(5ms);
  CHECK(picker() != before);
}

TEST_CASE("picker pace: calls may wait for ring_hash's endpoints, so each burst has its picker",
          "[lb][picker_pace][ring_hash]") {
  PacedLeaf paced(RingHashConfig{});
  paced.update({"a", "b"}, std::make_shared<const LbConfig>(RingHashConfig{}));
  for (const char* address : {"a", "b"}) {
    paced.ask_for(address);
    paced.connecting(address);
    paced.published();
    paced.ready(address);
    CHECK(paced.published() == 1);
  }
}

}  // namespace signalbox::lb
