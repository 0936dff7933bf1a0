// SPDX-License-Identifier: Apache-2.0
//
// Properties of outlier detection with random settings and tallies, and in random histories of
// calls, updates and time.
#include <map>
#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "lb/tree/outlier_detection.hpp"
#include "lb/tree/outlier_endpoints.hpp"
#include "lb/tree/outlier_rules.hpp"
#include "tests/support/policy_harness.hpp"
#include "tests/support/property.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

namespace outlier_properties_test {

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

std::uint32_t percent() {
  return *rc::gen::inRange<std::uint32_t>(0, 101);
}

OutlierDetection any_settings() {
  OutlierDetection settings;
  settings.interval = std::chrono::seconds(*rc::gen::inRange(1, 20));
  settings.base_ejection_time = std::chrono::seconds(*rc::gen::inRange(0, 60));
  settings.max_ejection_time = std::chrono::seconds(*rc::gen::inRange(0, 200));
  settings.max_ejection_percent = percent();
  if (*rc::gen::arbitrary<bool>()) {
    settings.success_rate =
        OutlierDetection::SuccessRate{*rc::gen::inRange<std::uint32_t>(500, 2000),
                                      percent(),
                                      *rc::gen::inRange<std::uint32_t>(0, 4),
                                      *rc::gen::inRange<std::uint32_t>(0, 5)};
  }
  if (*rc::gen::arbitrary<bool>()) {
    settings.failure_percentage =
        OutlierDetection::FailurePercentage{percent(),
                                            percent(),
                                            *rc::gen::inRange<std::uint32_t>(0, 4),
                                            *rc::gen::inRange<std::uint32_t>(0, 5)};
  }
  return settings;
}

std::vector<CallTally> any_tallies() {
  const auto size = *rc::gen::inRange<std::size_t>(0, 30);
  std::vector<CallTally> tallies;
  for (std::size_t i = 0; i < size; ++i) {
    tallies.push_back({*rc::gen::inRange<std::uint64_t>(0, 50),
                       *rc::gen::inRange<std::uint64_t>(0, 50),
                       *rc::gen::inRange(0, 5) == 0});
  }
  return tallies;
}

/// The limit of ejected endpoints: `percent` of them, rounded up, and at least one.
std::size_t most_ejected(std::size_t endpoints, std::uint32_t percent) {
  return std::max<std::size_t>(1, (endpoints * percent + 99) / 100);
}

std::size_t count_ejected(const std::vector<CallTally>& tallies) {
  return static_cast<std::size_t>(std::ranges::count_if(tallies, &CallTally::ejected));
}

LbConfigPtr config(const OutlierDetection& settings) {
  return make_lb_config(
      OutlierDetectionConfig{make_lb_config(RoundRobinConfig{}), ClusterName("orders"), settings});
}

/// A policy, and the ejections that it has told the subchannel map.
struct History {
  explicit History(std::uint64_t seed) : policy(make_outlier_detection({PolicyPath("p"), seed})) {}

  void configure(const OutlierDetection& next, const Texts& addresses) {
    settings = next;
    endpoints = addresses;
    policy.update(config(settings), nullptr, slice_of(endpoints));
    hear();
  }

  void advance(Duration duration) {
    policy.advance(duration);
    hear();
  }

  void call(const std::string& address, int code) const {
    if (trackers != nullptr) trackers->at(Address(address))->ended({code});
  }

  std::size_t ejected() const { return unhealthy == nullptr ? 0 : unhealthy->size(); }

  PolicyHarness policy;
  OutlierDetection settings;
  Texts endpoints;
  std::shared_ptr<const TrackEndpoints::Table> trackers;
  std::shared_ptr<const UnhealthyEndpoints> unhealthy;

 private:
  void hear() {
    for (; heard < policy.effects().size(); ++heard) {
      const LbEffect& effect = policy.effects()[heard];
      if (const auto* track = std::get_if<TrackEndpoints>(&effect)) trackers = track->trackers;
      if (const auto* health = std::get_if<SetEndpointHealth>(&effect))
        unhealthy = health->unhealthy;
    }
  }

  std::size_t heard = 0;
};

Texts some_endpoints() {
  Texts endpoints;
  for (const char* address : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    if (*rc::gen::inRange(0, 4) != 0) endpoints.emplace_back(address);
  }
  return endpoints;
}

}  // namespace

TEST_CASE("outlier_rules: never are more ejected than one, or the percentage",
          "[lb][outlier_detection][A50]") {
  CHECK(holds("the ejected are few", 1'000, [] {
    const OutlierDetection settings = any_settings();
    const std::vector<CallTally> tallies = any_tallies();
    const std::size_t before = count_ejected(tallies);
    const std::size_t most = most_ejected(tallies.size(), settings.max_ejection_percent);
    std::set<std::size_t> ejected;
    const auto draw = [] { return std::uint64_t{percent() % 100}; };
    for (const Detection& found : detect_outliers(settings, tallies, draw)) {
      RC_ASSERT(!tallies[found.endpoint].ejected);
      if (found.outcome == DetectionOutcome::kEjected)
        RC_ASSERT(ejected.insert(found.endpoint).second);
    }
    RC_ASSERT(before + ejected.size() <= std::max(before, most));
  }));
}

TEST_CASE("outlier_rules: equals are never outliers of each other",
          "[lb][outlier_detection][A50]") {
  CHECK(holds("equals are alike",
              500,
              [](std::uint8_t successes, std::uint8_t failures, std::uint8_t size) {
                const std::vector<CallTally> tallies(size, {successes, failures, false});
                RC_ASSERT(success_rate_outliers({1000, 100, 1, 0}, tallies).empty());
              }));
}

TEST_CASE(
    "outlier_rules: the best is never an outlier by success rate, nor the spotless by failures",
    "[lb][outlier_detection][A50]") {
  CHECK(holds("the best stay", 1'000, [] {
    OutlierDetection::SuccessRate rate;
    rate.stdev_factor = *rc::gen::inRange<std::uint32_t>(100, 3000);
    rate.minimum_hosts = rate.request_volume = 1;
    const std::vector<CallTally> tallies = any_tallies();
    const auto better = [&](const CallTally& left, const CallTally& right) {
      return left.successes * right.volume() > right.successes * left.volume();
    };
    for (const std::size_t outlier : success_rate_outliers(rate, tallies)) {
      RC_ASSERT(std::ranges::any_of(
          tallies, [&](const CallTally& it) { return better(it, tallies[outlier]); }));
    }
    OutlierDetection::FailurePercentage failures;
    failures.threshold_percent = percent();
    failures.minimum_hosts = failures.request_volume = 0;
    for (const std::size_t outlier : failure_percentage_outliers(failures, tallies))
      RC_ASSERT(tallies[outlier].failures > 0);
  }));
}

TEST_CASE("outlier_endpoints: the multiplier rises with each ejection, falls with each clean sweep",
          "[lb][outlier_detection][A50]") {
  CHECK(holds("multipliers", 1'000, [](const std::vector<bool>& fails) {
    const OutlierDetection settings = any_settings();
    OutlierEndpoints endpoints(nullptr);
    endpoints.update(slice_of({"a"}));
    Instant now{};
    for (const bool fail : fails) {
      now += 10s;
      const std::uint32_t before = endpoints.multiplier(0);
      const bool was_ejected = endpoints.unhealthy() != nullptr;
      if (fail && !was_ejected) endpoints.eject(0, now, DetectionMethod::kSuccessRate);
      endpoints.age(settings, now);
      const std::uint32_t after = endpoints.multiplier(0);
      if (fail && !was_ejected) {
        RC_ASSERT(after == before + 1);
      } else if (was_ejected) {
        RC_ASSERT(after == before);
      } else {
        RC_ASSERT(after == (before == 0 ? 0 : before - 1));
      }
    }
  }));
}

TEST_CASE("outlier_rules: a longer ejection follows a larger multiplier, within base and maximum",
          "[lb][outlier_detection][A50]") {
  CHECK(holds("ejection times", 1'000, [](std::uint32_t left, std::uint32_t right) {
    const OutlierDetection settings = any_settings();
    const auto [fewer, more] = std::minmax({left, right});
    RC_ASSERT(ejection_time(settings, fewer) <= ejection_time(settings, more));
    RC_ASSERT(ejection_time(settings, more) <=
              std::max(settings.base_ejection_time, settings.max_ejection_time));
    RC_ASSERT(ejection_time(settings, 1) == settings.base_ejection_time);
  }));
}

TEST_CASE(
    "outlier_detection: whatever happened, the ejected are few and of the list, and once calls "
    "succeed everybody is back",
    "[lb][outlier_detection][A50]") {
  CHECK(holds("histories", 1'000, [](std::uint64_t seed) {
    History history(seed);
    history.configure(any_settings(), some_endpoints());
    const int steps = *rc::gen::inRange(0, 40);
    for (int i = 0; i < steps; ++i) {
      const std::size_t before = history.ejected();
      const int kind = *rc::gen::inRange(0, 8);
      if (kind == 0) history.configure(any_settings(), history.endpoints);
      if (kind == 1) history.configure(history.settings, some_endpoints());
      if (kind == 2) history.advance(std::chrono::seconds(*rc::gen::inRange(0, 60)));
      if (kind > 2) {
        for (const std::string& address : history.endpoints)
          history.call(address, *rc::gen::element(0, 0, 0, 14));
      }
      // An update may leave more endpoints ejected than its limit allows; no further one is
      // ejected.
      const std::size_t most =
          most_ejected(history.endpoints.size(), history.settings.max_ejection_percent);
      RC_ASSERT(history.ejected() <= std::max(before, most));
      const std::set<std::string> listed(history.endpoints.begin(), history.endpoints.end());
      if (history.unhealthy != nullptr) {
        for (const auto& [address, why] : *history.unhealthy)
          RC_ASSERT(listed.contains(address.str()));
      }
    }
    // Calls that were counted before may still eject endpoints at the next sweep.
    history.advance(history.settings.interval);
    history.advance(
        std::max(history.settings.base_ejection_time, history.settings.max_ejection_time) +
        2 * history.settings.interval);
    RC_ASSERT(history.ejected() == 0);
  }));
}

}  // namespace outlier_properties_test
