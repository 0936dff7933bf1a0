// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/outlier_endpoints.hpp"

#include <string>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/unit/lb/leaf_harness.hpp"

namespace signalbox::lb {
namespace {

using namespace std::chrono_literals;
using Strings = std::vector<std::string>;
using Counts = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

constexpr auto kByRate = DetectionMethod::kSuccessRate;
constexpr auto kByFailures = DetectionMethod::kFailurePercentage;
const Instant kStart = Instant{} + 1h;

Counts tally(OutlierEndpoints& endpoints) {
  Counts counts;
  for (const CallTally& it : endpoints.tally())
    counts.emplace_back(it.successes, it.failures);
  return counts;
}

void call(const OutlierEndpoints& endpoints, const std::string& address, std::optional<int> code) {
  endpoints.trackers()->at(Address{address})->ended({code});
}

Strings ejected(const OutlierEndpoints& endpoints) {
  Strings addresses;
  if (const auto table = endpoints.unhealthy()) {
    for (const auto& [address, why] : *table)
      addresses.push_back(address.str());
  }
  return addresses;
}

OutlierEndpoints of(const Strings& endpoints) {
  OutlierEndpoints judged(nullptr);
  judged.update(slice_of(endpoints));
  return judged;
}

}  // namespace

TEST_CASE("outlier_endpoints: a call has failed unless it is OK, or says nothing",
          "[lb][outlier_detection][A50]") {
  OutlierEndpoints endpoints = of({"a"});
  call(endpoints, "a", 0);
  for (const int code : {1, 4, 14, 16})  // CANCELLED (1) counts as a failure, too.
    call(endpoints, "a", code);
  call(endpoints, "a", std::nullopt);
  CHECK(tally(endpoints) == Counts{{1, 4}});
}

TEST_CASE("outlier_endpoints: a tally has the calls that ended since the one before",
          "[lb][outlier_detection][A50]") {
  OutlierEndpoints endpoints = of({"a", "b"});
  call(endpoints, "a", 0);
  call(endpoints, "b", 2);
  CHECK(tally(endpoints) == Counts{{1, 0}, {0, 1}});
  CHECK(tally(endpoints) == Counts{{0, 0}, {0, 0}});
  call(endpoints, "a", 2);
  CHECK(tally(endpoints) == Counts{{0, 1}, {0, 0}});
}

TEST_CASE("outlier_endpoints: no call is lost between threads and tallies",
          "[lb][outlier_detection][A50]") {
  constexpr int kThreads = 3;
  constexpr int kCalls = 20'000;
  OutlierEndpoints endpoints = of({"a"});
  const CallTrackerPtr tracker = endpoints.trackers()->at(Address{"a"});
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int at = 0; at < kCalls; ++at)
        tracker->ended({at % 4 == 0 ? 14 : 0});
    });
  }
  std::uint64_t successes = 0;
  std::uint64_t failures = 0;
  const auto add = [&] {
    for (const CallTally& it : endpoints.tally()) {
      successes += it.successes;
      failures += it.failures;
    }
  };
  for (int i = 0; i < 100; ++i)
    add();
  for (std::thread& thread : threads)
    thread.join();
  add();
  CHECK(successes == kThreads * kCalls * 3 / 4);
  CHECK(failures == kThreads * kCalls / 4);
}

TEST_CASE("outlier_endpoints: an endpoint is the set of its addresses",
          "[lb][outlier_detection][A61][A50]") {
  OutlierEndpoints endpoints = of({"a,b", "c"});
  REQUIRE(endpoints.size() == 2);
  call(endpoints, "a", 14);
  call(endpoints, "b", 14);
  CHECK(tally(endpoints) == Counts{{0, 2}, {0, 0}});
  endpoints.eject(0, kStart, kByRate);
  CHECK(ejected(endpoints) == Strings{"a", "b"});

  SECTION("in any order") {
    endpoints.update(slice_of({"c", "b,a,b"}));
    CHECK(ejected(endpoints) == Strings{"a", "b"});
    CHECK(endpoints.multiplier(1) == 1);
  }
  SECTION("and another set is another endpoint") {
    endpoints.update(slice_of({"a", "b", "c"}));
    CHECK(ejected(endpoints).empty());
  }
}

TEST_CASE("outlier_endpoints: those of all priorities stand in one list, each once",
          "[lb][outlier_detection][A75-3]") {
  Endpoints slice = *slice_of({"a", "b"});
  slice.priorities.push_back(slice_of({"c", "a"})->priorities.front());
  OutlierEndpoints endpoints(nullptr);
  endpoints.update(std::make_shared<const Endpoints>(slice));
  CHECK(endpoints.size() == 3);
  CHECK(endpoints.trackers()->size() == 3);
  call(endpoints, "c", 0);
  CHECK(tally(endpoints) == Counts{{0, 0}, {0, 0}, {1, 0}});
}

TEST_CASE("outlier_endpoints: who stays keeps counts and ejection; who leaves is forgotten",
          "[lb][outlier_detection][A50]") {
  OutlierEndpoints endpoints = of({"a", "b"});
  const CallTrackerPtr before = endpoints.trackers()->at(Address{"b"});
  endpoints.eject(0, kStart, kByRate);
  endpoints.eject(1, kStart, kByFailures);
  call(endpoints, "b", 0);
  endpoints.update(slice_of({"b", "c"}));
  CHECK(ejected(endpoints) == Strings{"b"});
  CHECK(endpoints.trackers()->at(Address{"b"}) == before);
  CHECK(tally(endpoints) == Counts{{1, 0}, {0, 0}});
  endpoints.update(slice_of({"a", "b"}));
  CHECK(ejected(endpoints) == Strings{"b"});
  CHECK(endpoints.multiplier(0) == 0);
  endpoints.update(nullptr);
  CHECK(endpoints.trackers() == nullptr);
  CHECK(endpoints.unhealthy() == nullptr);
}

TEST_CASE("outlier_endpoints: a call that runs outlives its endpoint",
          "[lb][outlier_detection][A50]") {
  struct Waiting final : Retirement {
    void retire(std::unique_ptr<const Tracked> object) override {
      retired.push_back(std::move(object));
    }

    std::vector<std::unique_ptr<const Tracked>> retired;
  };

  const auto waiting = std::make_shared<Waiting>();
  OutlierEndpoints endpoints(waiting);
  endpoints.update(slice_of({"a"}));
  TrackerList named;
  named.add(*endpoints.trackers()->at(Address{"a"}));
  Tracking call(named);
  endpoints.update(nullptr);
  REQUIRE(waiting->retired.size() == 1);
  CHECK(waiting->retired.front()->in_use());
  call.end({14});
  CHECK_FALSE(waiting->retired.front()->in_use());
}

TEST_CASE("outlier_endpoints: an ejection says by which algorithm",
          "[lb][outlier_detection][A50]") {
  OutlierEndpoints endpoints = of({"a", "b"});
  endpoints.eject(0, kStart, kByRate);
  endpoints.eject(1, kStart, kByFailures);
  CHECK(endpoints.unhealthy()->at(Address{"a"}) ==
        absl::UnavailableError("ejected by outlier detection (success rate)"));
  CHECK(endpoints.unhealthy()->at(Address{"b"}) ==
        absl::UnavailableError("ejected by outlier detection (failure percentage)"));
}

TEST_CASE("outlier_endpoints: an ejection ends after its time, and the multiplier falls after that",
          "[lb][outlier_detection][A50]") {
  OutlierDetection settings;
  settings.base_ejection_time = 30s;
  settings.max_ejection_time = 70s;
  OutlierEndpoints endpoints = of({"a"});

  struct Row {
    Duration at;
    bool eject;
    bool is_ejected;
    std::uint32_t multiplier;
  };

  const std::vector<Row> rows = {
      {10s, true, true, 1},
      // The ejection lasts 30 s, and has not ended exactly 30 s after its begin.
      {40s, false, true, 1},
      {40s + 1ns, false, false, 1},  // The sweep that ends an ejection keeps the multiplier.
      {50s, true, true, 2},
      {110s, false, true, 2},
      {110s + 1ns, false, false, 2},
      {120s, true, true, 3},
      {190s, false, true, 3},
      {190s + 1ns, false, false, 3},  // The third ejection lasts 70 s, the maximum, not 3 × 30 s.
      {200s, false, false, 2},
      {210s, true, true, 3},
      {300s, false, false, 3},
      {310s, false, false, 2},
      {320s, false, false, 1},
      {330s, false, false, 0},
      {340s, false, false, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.at.count());
    const Instant now = Instant{} + row.at;
    if (row.eject) endpoints.eject(0, now, kByRate);
    endpoints.age(settings, now);
    CHECK(!ejected(endpoints).empty() == row.is_ejected);
    CHECK(endpoints.multiplier(0) == row.multiplier);
  }
}

TEST_CASE("outlier_endpoints: say when there is something to tell", "[lb][outlier_detection]") {
  OutlierEndpoints endpoints(nullptr);
  const auto changes = [&] {
    const bool trackers = endpoints.take_tracker_changes();
    return std::pair(trackers, endpoints.take_health_changes());
  };
  // Trackers and health count as changed at first: an earlier incarnation of the policy may have
  // ejected endpoints.
  CHECK(changes() == std::pair(true, true));
  CHECK(changes() == std::pair(false, false));
  endpoints.update(slice_of({"a", "b"}));
  CHECK(changes() == std::pair(true, false));
  endpoints.update(slice_of({"b", "a"}));
  CHECK(changes() == std::pair(false, false));
  endpoints.eject(0, kStart, kByRate);
  CHECK(changes() == std::pair(false, true));
  endpoints.age(OutlierDetection{}, kStart + 1s);
  CHECK(changes() == std::pair(false, false));
  endpoints.age(OutlierDetection{}, kStart + 31s);
  CHECK(changes() == std::pair(false, true));
  endpoints.eject(1, kStart, kByRate);
  changes();
  endpoints.update(slice_of({"b"}));
  CHECK(changes() == std::pair(true, true));
}

}  // namespace signalbox::lb
