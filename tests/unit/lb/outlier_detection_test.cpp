// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/outlier_detection.hpp"

#include <catch2/catch.hpp>

#include "tests/support/policy_harness.hpp"
#include "tests/support/step_log.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

/// Ejects an endpoint that fails more than half of its calls; one call is enough. All endpoints may
/// be ejected.
OutlierDetection by_failures() {
  OutlierDetection settings;
  settings.max_ejection_percent = 100;
  settings.failure_percentage = OutlierDetection::FailurePercentage{50, 100, 1, 1};
  return settings;
}

LbConfigPtr config(std::optional<OutlierDetection> settings) {
  return make_lb_config(OutlierDetectionConfig{
      make_lb_config(RoundRobinConfig{}), ClusterName("orders"), std::move(settings)});
}

struct Detector : PolicyHarness {
  explicit Detector(std::uint64_t seed = 1)
      : PolicyHarness(make_outlier_detection({PolicyPath("p"), seed, nullptr})) {}

  Texts configure(std::optional<OutlierDetection> settings, const Texts& endpoints) {
    return update(config(std::move(settings)), nullptr, slice_of(endpoints));
  }

  /// The last effect of this kind; null: there was none.
  template <typename Effect>
  const Effect* last() const {
    const Effect* last = nullptr;
    for (const LbEffect& effect : effects()) {
      if (const auto* found = std::get_if<Effect>(&effect)) last = found;
    }
    return last;
  }

  void calls(const std::string& address, int successes, int failures) const {
    const CallTrackerPtr tracker = last<TrackEndpoints>()->trackers->at(Address(address));
    for (int i = 0; i < successes; ++i)
      tracker->ended({0});
    for (int i = 0; i < failures; ++i)
      tracker->ended({14});
  }
};

const Texts kSweep = {"timer sweep 10s"};
// The effects of the sweep after one that changed ejections: a picker that can explain the change.
const Texts kTellingSweep = {"publish CONNECTING", "timer sweep 10s"};

Texts swept(Texts before) {
  before.push_back("timer sweep 10s");
  return before;
}

}  // namespace

TEST_CASE("outlier_detection: without an algorithm nothing is counted, judged or timed",
          "[lb][outlier_detection][A50]") {
  const auto settings = GENERATE(std::optional<OutlierDetection>(),
                                 std::optional<OutlierDetection>(OutlierDetection{}));
  Detector policy;
  CHECK(policy.configure(settings, {"a", "b"}) ==
        Texts{"track 0", "unhealthy none", "start child", "publish CONNECTING"});
  CHECK(policy.last<TrackEndpoints>()->trackers == nullptr);
  CHECK(policy.child("child", kReady) == Texts{"publish READY"});
  CHECK(policy.pick() == "fail UNAVAILABLE: child READY");
  CHECK(policy.configure(settings, {"a"}) == Texts{"update child"});
  CHECK(policy.advance(1h).empty());
}

TEST_CASE("outlier_detection: says what the child says", "[lb][outlier_detection][A75-2]") {
  const auto settings =
      GENERATE(std::optional<OutlierDetection>(), std::optional<OutlierDetection>(by_failures()));
  Detector policy;
  policy.configure(settings, {"a"});
  CHECK(policy.child("child", kReady) == Texts{"publish READY"});
  CHECK(policy.pick() == "fail UNAVAILABLE: child READY");
  CHECK(policy.child("child", kFailure) == Texts{"publish TRANSIENT_FAILURE"});
  CHECK(policy.published()->status == absl::UnavailableError("child failed"));
  CHECK(policy.applied("child") == Texts{"applied 1"});
  CHECK(policy.step(IdleExitRequested{}) == Texts{"exit-idle child"});
  CHECK(policy.configure(settings, {"a"}) == Texts{"update child"});
  CHECK(policy.child("stranger", kReady).empty());
}

TEST_CASE("outlier_detection: counts, sweeps, ejects, and lets back in",
          "[lb][outlier_detection][A50][A91]") {
  Detector policy;
  CHECK(policy.configure(by_failures(), {"a,b", "c"}) ==
        Texts{"timer sweep 10s", "track 3", "unhealthy none", "start child", "publish CONNECTING"});
  policy.calls("b", 1, 2);
  policy.calls("c", 1, 1);
  CHECK(policy.advance(10s) == swept({"outliers orders 1 by failures, ejected", "unhealthy a b"}));
  const SetEndpointHealth* told = policy.last<SetEndpointHealth>();
  CHECK(told->judge == HealthJudge::kOutlierDetection);
  CHECK(told->unhealthy->at(Address("a")) ==
        absl::UnavailableError("ejected by outlier detection (failure percentage)"));

  CHECK(policy.advance(10s) == kTellingSweep);
  CHECK(policy.advance(10s) == kSweep);
  // The ejection lasts 30 s, and has not ended exactly 30 s after its begin.
  CHECK(policy.advance(10s) == kSweep);
  CHECK(policy.advance(10s) == swept({"unhealthy none"}));

  policy.calls("a", 0, 1);
  CHECK(policy.advance(10s) ==
        swept({"publish CONNECTING", "outliers orders 1 by failures, ejected", "unhealthy a b"}));
  CHECK(policy.advance(10s) == kTellingSweep);
  for (int i = 0; i < 5; ++i)
    CHECK(policy.advance(10s) == kSweep);
  CHECK(policy.advance(10s) == swept({"unhealthy none"}));  // The second ejection lasts 60 s.
}

TEST_CASE("outlier_detection: calls of an earlier interval do not count",
          "[lb][outlier_detection][A50]") {
  OutlierDetection settings = by_failures();
  settings.failure_percentage->request_volume = 10;
  Detector policy;
  policy.configure(settings, {"a"});
  policy.calls("a", 0, 9);
  CHECK(policy.advance(10s) == kSweep);
  policy.calls("a", 0, 9);
  CHECK(policy.advance(10s) == kSweep);
  policy.calls("a", 0, 10);
  CHECK(policy.advance(10s).size() == 3);
}

TEST_CASE("outlier_detection: what is not enforced, or would be too many, is counted as that",
          "[lb][outlier_detection][A91]") {
  OutlierDetection settings = by_failures();
  settings.failure_percentage->enforcement_percent = 0;
  Detector policy;
  policy.configure(settings, {"a", "b", "c"});
  for (const char* address : {"a", "b", "c"})
    policy.calls(address, 0, 1);
  CHECK(policy.advance(10s) == swept({"outliers orders 3 by failures, not enforced"}));

  settings.failure_percentage->enforcement_percent = 100;
  settings.max_ejection_percent = 10;
  policy.configure(settings, {"a", "b", "c"});
  for (const char* address : {"a", "b", "c"})
    policy.calls(address, 0, 1);
  CHECK(policy.advance(10s) == swept({"outliers orders 1 by failures, ejected",
                                      "outliers orders 2 by failures, too many",
                                      "unhealthy a"}));
}

TEST_CASE("outlier_detection: chance is the seed's alone, and spreads",
          "[lb][outlier_detection][A50]") {
  OutlierDetection settings = by_failures();
  settings.failure_percentage->enforcement_percent = 50;
  Texts addresses;
  for (int i = 0; i < 100; ++i)
    addresses.push_back(std::to_string(i));
  const auto ejected = [&](std::uint64_t seed) {
    Detector policy(seed);
    policy.configure(settings, addresses);
    for (const std::string& address : addresses)
      policy.calls(address, 0, 1);
    policy.advance(10s);
    return *policy.last<SetEndpointHealth>()->unhealthy;
  };
  CHECK(ejected(1) == ejected(1));
  CHECK(ejected(1) != ejected(2));
  CHECK(ejected(1).size() > 30);
  CHECK(ejected(1).size() < 70);
  settings.failure_percentage->enforcement_percent = 100;
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    CHECK(ejected(seed).size() == addresses.size());
}

// --- the timer ---

TEST_CASE("outlier_detection: an update does not put the sweep off",
          "[lb][outlier_detection][A50]") {
  Detector policy;
  policy.configure(by_failures(), {"a"});
  policy.calls("a", 0, 1);
  policy.advance(4s);
  CHECK(policy.configure(by_failures(), {"a"}) == Texts{"update child"});
  policy.advance(5s);
  CHECK(policy.configure(by_failures(), {"a", "b"}) == Texts{"track 2", "update child"});
  CHECK(policy.advance(1s).size() == 3);
  CHECK(policy.last<SetEndpointHealth>()->unhealthy->size() == 1);
}

TEST_CASE("outlier_detection: a new interval counts from when the timer was started",
          "[lb][outlier_detection][A50]") {
  struct Row {
    const char* when;
    Duration interval;
    const char* timer;
  };

  const auto row = GENERATE(values<Row>({
      {"longer", 15s, "timer sweep 11s"},
      {"shorter, to come", 6s, "timer sweep 2s"},
      {"shorter, passed: at once", 3s, "timer sweep 0s"},
  }));
  DYNAMIC_SECTION(row.when) {
    Detector policy;
    policy.configure(by_failures(), {"a"});
    policy.advance(10s);
    policy.calls("a", 0, 1);
    policy.advance(4s);
    OutlierDetection settings = by_failures();
    settings.interval = row.interval;
    CHECK(policy.configure(settings, {"a"}) == Texts{"cancel sweep", row.timer, "update child"});
    policy.advance(row.interval > 4s ? row.interval - 4s : 0s);
    CHECK(policy.last<SetEndpointHealth>()->unhealthy != nullptr);
  }
}

TEST_CASE("outlier_detection: intervals have a floor", "[lb][outlier_detection][A50]") {
  OutlierDetection settings = by_failures();
  settings.interval = GENERATE(as<Duration>{}, 0s, 1ns, 99ms);
  Detector policy;
  CHECK(policy.configure(settings, {"a"}).front() == "timer sweep 0.1s");
}

TEST_CASE("outlier_detection: a timer that was cancelled is not heard",
          "[lb][outlier_detection][A50]") {
  Detector policy;
  policy.configure(by_failures(), {"a"});
  const TimerFired late{policy.last<StartTimer>()->timer};
  OutlierDetection settings = by_failures();
  settings.interval = 20s;
  policy.configure(settings, {"a"});
  CHECK(policy.step(late).empty());
  policy.configure(std::nullopt, {"a"});
  CHECK(policy.step(late).empty());
}

TEST_CASE("outlier_detection: when the last algorithm goes, everybody comes back",
          "[lb][outlier_detection][A50]") {
  Detector policy;
  policy.configure(by_failures(), {"a", "b"});
  policy.calls("a", 0, 1);
  policy.advance(10s);
  policy.calls("b", 0, 1);
  CHECK(policy.configure(OutlierDetection{}, {"a", "b"}) ==
        Texts{"cancel sweep", "track 0", "unhealthy none", "update child", "publish CONNECTING"});
  CHECK(policy.advance(1h).empty());

  SECTION("and when it comes again, it begins with nothing") {
    CHECK(policy.configure(by_failures(), {"a", "b"}) ==
          Texts{"timer sweep 10s", "track 2", "update child", "publish CONNECTING"});
    CHECK(policy.advance(10s) == kSweep);
    policy.calls("a", 0, 1);
    policy.advance(10s);
    policy.advance(30s);
    CHECK(policy.last<SetEndpointHealth>()->unhealthy != nullptr);
    policy.advance(10s);
    // The earlier ejection of a did not lengthen this one: it lasted 30 s.
    CHECK(policy.last<SetEndpointHealth>()->unhealthy == nullptr);
  }
}

TEST_CASE("outlier_detection: new settings hold for those who are ejected already",
          "[lb][outlier_detection][A50]") {
  Detector policy;
  policy.configure(by_failures(), {"a"});
  policy.calls("a", 0, 1);
  policy.advance(10s);
  OutlierDetection settings = by_failures();
  settings.base_ejection_time = 5s;
  policy.configure(settings, {"a"});
  CHECK(policy.advance(10s) == swept({"unhealthy none"}));
}

TEST_CASE("outlier_detection: an ejected endpoint that leaves is not told of any more",
          "[lb][outlier_detection][A50]") {
  Detector policy;
  policy.configure(by_failures(), {"a", "b"});
  policy.calls("a", 0, 1);
  policy.advance(10s);
  CHECK(policy.configure(by_failures(), {"b"}) ==
        Texts{"track 1", "unhealthy none", "update child"});
  CHECK(policy.configure(by_failures(), {"a", "b"}) == Texts{"track 2", "update child"});
}

TEST_CASE("outlier_detection: an explanation says the rest of an ejection, if there is any",
          "[lb][outlier_detection][explain]") {
  Detector policy;
  policy.configure(by_failures(), {"a"});
  policy.calls("a", 0, 1);
  policy.advance(10s);
  policy.advance(10s);  // This sweep publishes the picker that knows the ejection.
  const auto told = [&](Duration now) {
    return signalbox::testing::steps_of(policy.published()->picker, {}, Instant(now)).front();
  };
  const std::string ejected =
      "outlier_detection: set aside: a; ejected by outlier detection (failure percentage); for ";
  CHECK(told(39s) == ejected + "29 s, and 1 s more; CDS orders");
  // The time is over, and the next sweep will end the ejection.
  CHECK(told(40s) == ejected + "30 s; CDS orders");
}

// --- the picker ---

namespace {

struct Witness final : CallTracker {
  void ended(const CallEnd& /*end*/) const noexcept override {}
};

/// A picker that completes on "a", with `tracker` for its calls. Without a tracker it names no
/// endpoint.
class OnePicker final : public Picker {
 public:
  explicit OnePicker(CallTrackerPtr tracker) { chosen_.tracker = std::move(tracker); }

  PickResult pick(const PickArgs& /*args*/) const override {
    PickResult result;
    Complete complete(&connection_);
    if (chosen_.tracker != nullptr) complete.endpoint = &chosen_;
    result.outcome = complete;
    return result;
  }

 private:
  Connection connection_{Address("a")};
  ChosenEndpoint chosen_;
};

std::vector<const CallTracker*> trackers_of(const Detector& policy) {
  const PickResult result = policy.published()->picker->pick({});
  CHECK(to_text(result) == "complete a");
  return {result.trackers.begin(), result.trackers.end()};
}

}  // namespace

TEST_CASE("outlier_detection: a pick names who counts its endpoint's calls, if anybody does",
          "[lb][outlier_detection][A50]") {
  const auto witness = std::make_shared<const Witness>();
  const auto picker = std::make_shared<const OnePicker>(witness);
  Detector policy;
  policy.configure(by_failures(), {"a"});
  policy.step(ChildStateChanged{ChildName("child"), kReady, {}, picker});
  CHECK(trackers_of(policy) == std::vector<const CallTracker*>{witness.get()});

  SECTION("the same picker is published once") {
    CHECK(policy.step(ChildStateChanged{ChildName("child"), kReady, {}, picker}).empty());
    CHECK(policy.configure(by_failures(), {"a", "b"}).back() == "update child");
  }
  SECTION("a child that does not say where it leads has no calls counted") {
    policy.step(ChildStateChanged{
        ChildName("child"), kReady, {}, std::make_shared<const OnePicker>(nullptr)});
    CHECK(trackers_of(policy).empty());
  }
  SECTION("once nothing is counted, the child's own picker serves") {
    policy.configure(std::nullopt, {"a"});
    CHECK(policy.published()->picker == picker);
    policy.configure(by_failures(), {"a"});
    CHECK(policy.published()->picker != picker);
    CHECK(trackers_of(policy).size() == 1);
  }
}
