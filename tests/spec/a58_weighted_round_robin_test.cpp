// SPDX-License-Identifier: Apache-2.0
//
// gRFC A58, "weighted_round_robin", in the document's order, with A114. At the end: the facts that
// the metrics of A78 and A100 count.
//
// Not here:
//   - "LB Policy Config and Parameters": tests/unit/xds/parse_lb_policy_test has them.
//   - The EDF scheduler: signalbox has the static stride scheduler, as gRPC's implementations do.
//     Its rules are in tests/unit/lb/stride_scheduler_test.
//   - The stream of an endpoint's reports (A51): tests/unit/lb/load_stream_core_test.

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_join.h"
#include <catch2/catch.hpp>

#include "lb/leaf/endpoint_weight.hpp"
#include "lb/leaf/weighted_round_robin.hpp"
#include "tests/support/step_log.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

namespace signalbox {
namespace {

using namespace lb;
using namespace std::chrono_literals;
using Strings = std::vector<std::string>;

LoadReport load(double qps, double utilization) {
  return {.application_utilization = utilization, .qps = qps};
}

const ClusterName kShop{"shop"};

// A policy under test, with a clock and calls that the test makes.
class WrrHarness {
 public:
  explicit WrrHarness(Strings endpoints,
                      WeightedRoundRobinConfig own = {},
                      PolicyOptions options = {})
      : config(std::move(own)),
        policy_(make_leaf(
            config,
            PolicyContext{PolicyPath{"p"}, 1, nullptr, std::move(options), nullptr, kShop})) {
    list(std::move(endpoints));
    for (const std::string& name : names)
      ready(name);
    settle();
  }

  void list(Strings endpoints) {
    names = std::move(endpoints);
    ConfigUpdated update;
    update.generation = ++generation_;
    update.config = make_lb_config(config);
    update.endpoints = slice_of(names);
    step(update);
  }

  void ready(const std::string& name) {
    SubchannelStateChanged event;
    event.address = Address{name};
    event.state = ConnectivityState::kReady;
    event.connection = std::make_shared<const Connection>(event.address);
    connections_.push_back(event.connection);
    step(event);
  }

  void lose(const std::string& name) {
    SubchannelStateChanged event;
    event.address = Address{name};
    step(event);
  }

  void settle() { step(RebuildDue{}); }

  // Advances the clock. Timers fire when they are due, also those that a newer one has replaced.
  void pass(Duration time) {
    const Instant end = now + time;
    while (!timers_.empty() && timers_.begin()->first <= end) {
      const auto [due, timer] = *timers_.begin();
      timers_.erase(timers_.begin());
      if (newest_ == timer) newest_.reset();
      now = due;
      step(TimerFired{timer});
      settle();
    }
    now = end;
  }

  PickResult pick() const { return picker->pick({}); }

  // Picks until a call reaches the endpoint. The call ends with this report.
  void report(const std::string& name, const LoadReport& report) {
    for (int tries = 0; tries < 1'000; ++tries) {
      const PickResult result = pick();
      if (std::get<Complete>(result.outcome).connection->address().str() != name) continue;
      Tracking tracking(result.trackers);
      CHECK(tracking.wants_load());
      tracking.end({0, &report, now});
      return;
    }
    FAIL("no call reached " << name);
  }

  // A report comes on the stream of the endpoint's connection.
  void stream(const std::string& name, const LoadReport& report) {
    for (const WatchLoad::Entry& entry : watched.entries) {
      if (entry.connection->address().str() == name) return entry.listener->reported(report, now);
    }
    FAIL("no stream of " << name);
  }

  // The endpoints that are asked for their load.
  Strings streams() const {
    Strings found;
    for (const WatchLoad::Entry& entry : watched.entries)
      found.emplace_back(entry.connection->address().str());
    return found;
  }

  using Report = void (WrrHarness::*)(const std::string& name, const LoadReport& report);

  // Makes the reports at once and after each second, until `time` has passed. Then one more second
  // passes.
  void report_for(Duration time,
                  const std::map<std::string, LoadReport>& reports,
                  Report how = &WrrHarness::report) {
    for (Duration passed{}; passed <= time; passed += 1s) {
      for (const auto& [name, each] : reports)
        (this->*how)(name, each);
      pass(1s);
    }
  }

  // The share of each endpoint in many calls, in percent.
  std::map<std::string, int> shares() const {
    std::map<std::string, int> calls;
    for (int call = 0; call < 20'000; ++call)
      ++calls[std::get<Complete>(pick().outcome).connection->address().str()];
    for (auto& [name, count] : calls)
      count = static_cast<int>(std::lround(count / 200.0));
    return calls;
  }

  Strings names;
  WeightedRoundRobinConfig config;
  Instant now{std::chrono::hours(1)};
  PickerPtr picker;
  int publications = 0;
  WatchLoad watched;  // The last order.
  int watch_orders = 0;
  std::vector<WeightsTaken> taken;
  std::optional<Duration> period;  // The delay of the last timer.

 private:
  void step(const LbEvent& event) {
    for (const LbEffect& effect : policy_->step(event, now)) {
      if (const auto* publish = std::get_if<Publish>(&effect)) {
        picker = publish->picker;
        ++publications;
      } else if (const auto* watch = std::get_if<WatchLoad>(&effect)) {
        watched = *watch;
        ++watch_orders;
      } else if (const auto* seen = std::get_if<Observe>(&effect)) {
        taken.push_back(std::get<WeightsTaken>(seen->observation));
      } else if (const auto* start = std::get_if<StartTimer>(&effect)) {
        if (start->timer.name != "weights") continue;
        CHECK((!newest_.has_value() || std::holds_alternative<ConfigUpdated>(event)));
        newest_ = start->timer;
        period = start->delay;
        timers_.emplace(now + start->delay, start->timer);
      }
    }
  }

  std::unique_ptr<Policy> policy_;
  Generation generation_ = 0;
  std::multimap<Instant, TimerId> timers_;  // By the time when they are due.
  std::optional<TimerId> newest_;           // The last one started, until it fires.
  std::vector<ConnectionPtr> connections_;
};

using Shares = std::map<std::string, int>;
const Shares kEven{{"a", 33}, {"b", 33}, {"c", 33}};
const std::map<std::string, LoadReport> kReports{
    {"a", load(100, 0.5)}, {"b", load(100, 0.25)}, {"c", load(100, 1)}};
// The weights are 200, 400 and 100.
const Shares kByWeight{{"a", 29}, {"b", 57}, {"c", 14}};

}  // namespace

// --- "Earliest Deadline First (EDF) Scheduler" -------------------------------------------------

TEST_CASE("A58: calls follow the weights of the endpoints", "[spec][lb][wrr][A58]") {
  WrrHarness wrr({"a", "b", "c"});
  CHECK(wrr.shares() == kEven);
  wrr.report_for(12s, kReports);
  CHECK(wrr.shares() == kByWeight);
}

TEST_CASE("A58: with fewer than two weights calls go to all in turn", "[spec][lb][wrr][A58]") {
  WrrHarness wrr({"a", "b", "c"});
  wrr.report_for(12s, {{"a", load(100, 0.5)}});
  CHECK(wrr.shares() == kEven);
}

TEST_CASE("A58: an endpoint without a weight gets the mean", "[spec][lb][wrr][A58]") {
  WrrHarness wrr({"a", "b", "c"});
  wrr.report_for(12s, {{"a", load(100, 1)}, {"b", load(300, 1)}});
  CHECK(wrr.shares() == Shares{{"a", 17}, {"b", 50}, {"c", 33}});
}

TEST_CASE("A58: weights are taken over every update period, at least 100 ms",
          "[spec][lb][wrr][A58]") {
  CHECK(WrrHarness({"a"}).period == 1s);
  WeightedRoundRobinConfig config;
  config.weight_update_period = 5s;
  CHECK(WrrHarness({"a"}, config).period == 5s);
  config.weight_update_period = 1ms;
  CHECK(WrrHarness({"a"}, config).period == 100ms);
}

TEST_CASE("A58: a new update period does not wait for the end of a longer one",
          "[spec][lb][wrr][A58]") {
  WeightedRoundRobinConfig config;
  config.weight_update_period = 1h;
  WrrHarness wrr({"a", "b", "c"}, config);
  wrr.report_for(12s, kReports);
  CHECK(wrr.shares() == kEven);
  wrr.config.weight_update_period = 1s;
  wrr.list(wrr.names);
  wrr.settle();
  CHECK(wrr.shares() == kByWeight);
  wrr.report("a", load(100, 1));
  wrr.report("c", load(100, 0.5));
  wrr.pass(1s);
  CHECK(wrr.shares() == Shares{{"a", 14}, {"b", 57}, {"c", 29}});
  const std::size_t before = wrr.taken.size();
  wrr.pass(2h);
  CHECK(wrr.taken.size() - before == 7'200);  // The timer of the longer period does nothing.
}

TEST_CASE("A58: a period without new weights publishes nothing", "[spec][lb][wrr]") {
  WrrHarness wrr({"a", "b", "c"});
  wrr.report_for(12s, kReports);
  const int before = wrr.publications;
  wrr.report_for(20s, kReports);
  CHECK(wrr.publications == before);
  // The same configuration again needs no new picker either.
  wrr.list(wrr.names);
  wrr.settle();
  CHECK(wrr.publications == before);
}

TEST_CASE("A58: lists that come quickly do not put the weights off", "[spec][lb][wrr][A58]") {
  WrrHarness wrr({"a", "b"});
  const std::size_t before = wrr.taken.size();
  for (int list = 0; list < 10; ++list) {
    wrr.pass(600ms);
    wrr.list(wrr.names);
  }
  CHECK(wrr.taken.size() == before + 6);
}

TEST_CASE("A58: each picker begins at a place of its own", "[spec][lb][wrr]") {
  WrrHarness wrr({"a", "b", "c"});
  std::set<std::string> first;
  for (int picker = 0; picker < 50; ++picker) {
    wrr.ready("a");  // Another connection, so another picker.
    wrr.settle();
    first.insert(std::get<Complete>(wrr.pick().outcome).connection->address().str());
  }
  CHECK(first.size() == 3);
}

TEST_CASE("A58: while no endpoint is READY no weights are taken", "[spec][lb][wrr][A58]") {
  WrrHarness wrr({"a", "b"});
  wrr.pass(3s);
  wrr.lose("a");
  wrr.lose("b");
  wrr.settle();
  const std::size_t taken = wrr.taken.size();
  const int publications = wrr.publications;
  wrr.pass(10s);
  CHECK(wrr.taken.size() == taken);
  CHECK(wrr.publications == publications);
  wrr.ready("a");
  wrr.settle();
  const std::size_t at_once = wrr.taken.size();
  wrr.pass(5s);
  CHECK(wrr.taken.size() == at_once + 5);
}

// --- "Handling Parent/Resolver Updates" --------------------------------------------------------

TEST_CASE("A58: an endpoint that stays keeps its weight", "[spec][lb][wrr][A58]") {
  WrrHarness wrr({"a", "b", "c"});
  wrr.report_for(12s, kReports);
  wrr.list({"c", "b"});
  wrr.settle();
  CHECK(wrr.shares() == Shares{{"b", 80}, {"c", 20}});
}

TEST_CASE("A58: a new penalty holds from the next report on", "[spec][lb][wrr][A58]") {
  WrrHarness wrr({"a", "b"});
  LoadReport failing = load(100, 0.5);
  failing.eps = 50;
  wrr.report_for(12s, {{"a", failing}, {"b", load(100, 0.5)}});
  CHECK(wrr.shares() == Shares{{"a", 33}, {"b", 67}});
  wrr.config.error_utilization_penalty = 0;
  wrr.list(wrr.names);
  wrr.settle();
  CHECK(wrr.shares() == Shares{{"a", 33}, {"b", 67}});
  wrr.report_for(2s, {{"a", failing}, {"b", load(100, 0.5)}});
  CHECK(wrr.shares() == Shares{{"a", 50}, {"b", 50}});
}

// --- "Subchannel Weights" ----------------------------------------------------------------------

TEST_CASE("A58: a weight counts after the blackout, and not after it expired",
          "[spec][lb][wrr][A58]") {
  WrrHarness wrr({"a", "b", "c"});
  wrr.report_for(8s, kReports);
  CHECK(wrr.shares() == kEven);
  wrr.report_for(4s, kReports);
  CHECK(wrr.shares() == kByWeight);
  wrr.pass(170s);
  CHECK(wrr.shares() == kByWeight);
  wrr.pass(15s);
  CHECK(wrr.shares() == kEven);
  // Fresh reports begin a new blackout.
  wrr.report_for(8s, kReports);
  CHECK(wrr.shares() == kEven);
  wrr.report_for(4s, kReports);
  CHECK(wrr.shares() == kByWeight);
}

TEST_CASE("A58: a new connection begins the blackout anew", "[spec][lb][wrr][A58]") {
  WrrHarness wrr({"a", "b", "c"});
  wrr.report_for(12s, kReports);
  wrr.lose("b");
  wrr.settle();
  wrr.ready("b");
  wrr.settle();
  // During its blackout "b" has the mean of the other weights, 200 and 100.
  CHECK(wrr.shares() == Shares{{"a", 44}, {"b", 33}, {"c", 22}});
  wrr.report_for(12s, kReports);
  CHECK(wrr.shares() == kByWeight);
}

TEST_CASE("A58: blackout and expiration end and begin to the tick", "[spec][lb][wrr][A58]") {
  constexpr Duration kTick(1);
  const Instant begin(1h);
  const EndpointWeight::Periods periods{10s, 180s};
  const EndpointWeight weight;
  weight.update(7, begin);
  CHECK(weight.ask(begin + 10s - kTick, periods).use == WeightUse::kNotYetUsable);
  CHECK(weight.ask(begin + 10s, periods).weight == 7);
  CHECK(weight.ask(begin + 180s - kTick, periods).weight == 7);
  CHECK(weight.ask(begin + 180s, periods).use == WeightUse::kStale);
}

TEST_CASE("A58: a retry passes over the endpoints that it has tried", "[spec][lb][wrr]") {
  const WrrHarness wrr({"a", "b"});
  const TriedAddresses tried{Address{"a"}};
  for (int call = 0; call < 20; ++call) {
    const PickResult result = wrr.picker->pick({.tried = &tried});
    CHECK(std::get<Complete>(result.outcome).connection->address().str() == "b");
  }
}

TEST_CASE("A58: without a blackout a weight counts at once, also on a new connection",
          "[spec][lb][wrr][A58]") {
  WeightedRoundRobinConfig config;
  config.blackout_period = 0s;
  WrrHarness wrr({"a", "b", "c"}, config);
  wrr.report_for(0s, kReports);
  CHECK(wrr.shares() == kByWeight);
  wrr.lose("b");
  wrr.settle();
  wrr.ready("b");
  wrr.settle();
  CHECK(wrr.shares() == kByWeight);
}

TEST_CASE("A58: the weight is qps over utilisation and penalty", "[spec][lb][wrr][A58]") {
  const WeightRules rules;
  CHECK(weight_of({.cpu_utilization = 0.5, .qps = 100}, rules) == 200);
  CHECK(weight_of({.cpu_utilization = 0.5, .qps = 100, .eps = 50}, rules) == 100);
  CHECK(weight_of({.cpu_utilization = 0.5, .qps = 100, .eps = 50}, {0, {}}) == 200);
  CHECK(weight_of({.cpu_utilization = 0.5, .qps = 100, .eps = 25}, {2, {}}) == 100);
  CHECK(weight_of({.application_utilization = 0.25, .cpu_utilization = 0.5, .qps = 100}, rules) ==
        400);
  // Reports that give no weight.
  CHECK(weight_of({}, rules) == 0);
  CHECK(weight_of({.qps = 100}, rules) == 0);
  CHECK(weight_of({.cpu_utilization = 0.5}, rules) == 0);
  // A program that uses the Pick API may report any number.
  const double nan = std::nan("");
  CHECK(weight_of({.cpu_utilization = nan, .qps = 100}, rules) == 0);
  CHECK(weight_of({.cpu_utilization = 0.5, .qps = -1}, rules) == 0);
  CHECK(weight_of({.cpu_utilization = 0.5, .qps = INFINITY}, rules) == 0);
  CHECK(weight_of({.cpu_utilization = 0.5, .qps = 100, .eps = nan}, rules) == 200);
  CHECK(weight_of({.cpu_utilization = 1e-300, .qps = 1e300}, rules) == 0);
}

TEST_CASE("A114: the utilisation is the greatest of the named metrics", "[spec][lb][wrr][A114]") {
  const WeightRules rules{
      1, {"mem_utilization", "named_metrics.queue", "utilization.disk", "named_metrics.a.b", "no"}};
  const auto with =
      [&](std::vector<LoadMetric> metrics, double memory = 0, double application = 0) {
        return weight_of({.application_utilization = application,
                          .cpu_utilization = 0.5,
                          .mem_utilization = memory,
                          .qps = 100,
                          .metrics = metrics},
                         rules);
      };
  using Map = LoadMetric::Map;
  CHECK(with({}) == 200);  // cpu_utilization.
  CHECK(with({}, 0.25) == 400);
  CHECK(with({{Map::kNamedMetrics, "queue", 4}}, 0.25) == 25);
  CHECK(with({{Map::kUtilization, "disk", 0.8}, {Map::kNamedMetrics, "queue", 0.1}}) == 125);
  CHECK(with({{Map::kNamedMetrics, "a.b", 1}}) == 100);
  CHECK(with({{Map::kUtilization, "queue", 4}, {Map::kRequestCost, "queue", 4}}) == 200);
  CHECK(with({{Map::kNamedMetrics, "queue", 4}}, 0.25, 0.2) == 500);  // application_utilization.
  CHECK(with({{Map::kNamedMetrics, "queue", std::nan("")}}) == 200);
  CHECK(weight_of({.cpu_utilization = 0.5, .mem_utilization = 0.25, .qps = 100},
                  {1, {"cpu_utilization", "mem_utilization"}}) == 200);
}

// --- "Per-Call Load Reporting" -----------------------------------------------------------------

TEST_CASE("A58: a call without a report, or with an empty one, changes nothing",
          "[spec][lb][wrr][A58]") {
  WrrHarness wrr({"a", "b", "c"});
  wrr.report_for(12s, kReports);
  for (int call = 0; call < 10; ++call) {
    const PickResult result = wrr.pick();
    Tracking(result.trackers).end({0});
    wrr.report("a", LoadReport{});
  }
  wrr.pass(1s);
  CHECK(wrr.shares() == kByWeight);
}

TEST_CASE("A58: without enable_oob_load_report no endpoint is asked for its load",
          "[spec][lb][wrr][A58]") {
  WrrHarness wrr({"a", "b", "c"});
  wrr.report_for(2s, kReports);
  CHECK(wrr.watch_orders == 0);
}

// --- "OOB Load Reporting" ----------------------------------------------------------------------

WeightedRoundRobinConfig streamed(Duration period = 10s) {
  WeightedRoundRobinConfig config;
  config.oob_reporting_period = period;
  return config;
}

TEST_CASE("A58: with enable_oob_load_report the weights come from the endpoints' streams",
          "[spec][lb][wrr][A58][A51]") {
  WrrHarness wrr({"a", "b", "c"}, streamed());
  CHECK(wrr.streams() == Strings{"a", "b", "c"});
  CHECK(wrr.watched.period == 10s);
  const int orders = wrr.watch_orders;
  wrr.report_for(8s, kReports, &WrrHarness::stream);
  CHECK(wrr.shares() == kEven);  // The blackout holds for them, too.
  wrr.report_for(4s, kReports, &WrrHarness::stream);
  CHECK(wrr.shares() == kByWeight);
  CHECK(wrr.watch_orders == orders);
  wrr.stream("a", LoadReport{});
  wrr.pass(1s);
  CHECK(wrr.shares() == kByWeight);
}

TEST_CASE("A58: weights below 1 count, too", "[spec][lb][wrr][A58]") {
  const bool is_streamed = GENERATE(false, true);
  WrrHarness wrr({"a", "b", "c"}, is_streamed ? streamed() : WeightedRoundRobinConfig{});
  // The weights are 0.25, 0.5 and 1.
  wrr.report_for(12s,
                 {{"a", load(1, 4)}, {"b", load(1, 2)}, {"c", load(1, 1)}},
                 is_streamed ? &WrrHarness::stream : &WrrHarness::report);
  CHECK(wrr.shares() == Shares{{"a", 14}, {"b", 29}, {"c", 57}});
}

TEST_CASE("A58: the reports of calls are not read then", "[spec][lb][wrr][A58]") {
  WrrHarness wrr({"a", "b", "c"}, streamed());
  const PickResult result = wrr.pick();
  CHECK(result.trackers.begin() == result.trackers.end());
  Tracking tracking(result.trackers);
  CHECK_FALSE(tracking.wants_load());
  tracking.end({0});
  // A call may begin before a configuration turns the streams on, and end with a report after that.
  // The call's tracker does not read the report.
  const auto weight = std::make_shared<const EndpointWeight>();
  const auto rules = std::make_shared<const WeightRules>(WeightRules{1, {}, true});
  const LoadReport report = load(100, 0.5);
  WeightTracker(weight, rules).ended({0, &report, wrr.now});
  CHECK(weight->ask(wrr.now, {0s, 180s}).weight == 0);
}

TEST_CASE("A58: exactly the READY endpoints are asked", "[spec][lb][wrr][A58]") {
  WrrHarness wrr({"a", "b", "c"}, streamed());
  wrr.lose("b");
  wrr.settle();
  CHECK(wrr.streams() == Strings{"a", "c"});
  wrr.ready("b");
  wrr.settle();
  CHECK(wrr.streams() == Strings{"a", "b", "c"});
  wrr.list({"c", "b"});
  wrr.settle();
  CHECK(wrr.streams() == Strings{"c", "b"});
  wrr.list({});
  wrr.settle();
  CHECK(wrr.streams().empty());
}

TEST_CASE("A58: a new connection is asked, and begins the blackout anew", "[spec][lb][wrr][A58]") {
  WrrHarness wrr({"a", "b", "c"}, streamed());
  wrr.report_for(12s, kReports, &WrrHarness::stream);
  const ConnectionPtr before = wrr.watched.entries[1].connection;
  wrr.lose("b");
  wrr.settle();
  wrr.ready("b");
  wrr.settle();
  CHECK(wrr.watched.entries[1].connection != before);
  CHECK(wrr.shares() == Shares{{"a", 44}, {"b", 33}, {"c", 22}});
  wrr.report_for(12s, kReports, &WrrHarness::stream);
  CHECK(wrr.shares() == kByWeight);
}

TEST_CASE("A58: a change of the period or of enable_oob_load_report is obeyed, weights stay",
          "[spec][lb][wrr][A58]") {
  WrrHarness wrr({"a", "b", "c"}, streamed());
  wrr.report_for(12s, kReports, &WrrHarness::stream);
  wrr.config.oob_reporting_period = 1s;
  wrr.list(wrr.names);
  wrr.settle();
  CHECK(wrr.watched.period == 1s);
  CHECK(wrr.streams() == Strings{"a", "b", "c"});
  CHECK(wrr.shares() == kByWeight);

  wrr.config.oob_reporting_period = std::nullopt;
  wrr.list(wrr.names);
  wrr.settle();
  CHECK(wrr.streams().empty());
  CHECK(wrr.shares() == kByWeight);
  wrr.report_for(2s, {{"a", load(400, 1)}, {"b", load(200, 1)}, {"c", load(100, 1)}});
  CHECK(wrr.shares() == Shares{{"a", 57}, {"b", 29}, {"c", 14}});

  wrr.config = streamed();
  wrr.list(wrr.names);
  wrr.settle();
  CHECK(wrr.streams() == Strings{"a", "b", "c"});
}

TEST_CASE("A58: a new penalty holds for streams, too", "[spec][lb][wrr][A58]") {
  WrrHarness wrr({"a", "b"}, streamed());
  LoadReport failing = load(100, 0.5);
  failing.eps = 50;
  const std::map<std::string, LoadReport> reports{{"a", failing}, {"b", load(100, 0.5)}};
  wrr.report_for(12s, reports, &WrrHarness::stream);
  CHECK(wrr.shares() == Shares{{"a", 33}, {"b", 67}});
  wrr.config.error_utilization_penalty = 0;
  wrr.list(wrr.names);
  wrr.settle();
  wrr.report_for(2s, reports, &WrrHarness::stream);
  CHECK(wrr.shares() == Shares{{"a", 50}, {"b", 50}});
}

TEST_CASE("A58: connections without streams: the reports of calls count", "[spec][lb][wrr][A58]") {
  PolicyOptions options;
  options.load_streams = false;
  WrrHarness wrr({"a", "b", "c"}, streamed(), options);
  CHECK(wrr.watch_orders == 0);
  wrr.report_for(12s, kReports);
  CHECK(wrr.shares() == kByWeight);
}

TEST_CASE("A58: an explanation says the endpoint's weight", "[lb][wrr][A58]") {
  WrrHarness wrr({"a", "b"});
  CHECK_THAT(absl::StrJoin(testing::steps_of(wrr.picker), "\n"),
             Catch::Contains("as all have while fewer than two report their load"));
  wrr.report_for(12s, {{"a", load(100, 0.5)}, {"b", load(100, 0.5)}});
  CHECK_THAT(absl::StrJoin(testing::steps_of(wrr.picker), "\n"),
             Catch::Contains("weight 65535 of 65535, from its load reports"));
}

// --- gRFC A78, "Weighted Round Robin LB Policy"; A100, "Metrics" ---------------------------------

TEST_CASE("A78: each time that weights are taken is reported once, with the cluster",
          "[spec][lb][wrr][A78-1]") {
  WrrHarness wrr({"a", "b", "c"});
  wrr.taken.clear();
  wrr.pass(5s);
  REQUIRE(wrr.taken.size() == 5);
  for (const WeightsTaken& taken : wrr.taken) {
    CHECK(taken.cluster == kShop);
    CHECK(taken.falls_back);
    CHECK(taken.weights == std::vector<double>{0, 0, 0});
  }
  // The timer that finds new weights has a picker made, and only the picker's weights are reported.
  wrr.report_for(9s, kReports);
  wrr.taken.clear();
  wrr.report_for(3s, kReports);
  CHECK(wrr.taken.size() == 4);
  CHECK(wrr.taken.back() == WeightsTaken{kShop, false, 0, 0, 0, {200, 400, 100}});
}

TEST_CASE("A78: one usable weight is a fallback to round_robin, two are none",
          "[spec][lb][wrr][A78-1]") {
  WrrHarness wrr({"a", "b", "c"});
  wrr.report_for(12s, {{"a", load(100, 0.5)}});
  CHECK(wrr.taken.back() == WeightsTaken{kShop, true, 2, 0, 0, {200, 0, 0}});
  wrr.report_for(12s, {{"a", load(100, 0.5)}, {"b", load(100, 0.5)}});
  CHECK(wrr.taken.back() == WeightsTaken{kShop, false, 1, 0, 0, {200, 200, 0}});
}

TEST_CASE("A78: endpoints without a report, in their blackout and with an old report are counted",
          "[spec][lb][wrr][A78-2][A78-3][A78-4]") {
  WrrHarness wrr({"a", "b", "c"});
  CHECK(wrr.taken.back() == WeightsTaken{kShop, true, 3, 0, 0, {0, 0, 0}});
  wrr.report_for(8s, {{"a", load(100, 0.5)}});
  CHECK(wrr.taken.back().not_yet_usable == 3);
  wrr.report_for(4s, kReports);
  CHECK(wrr.taken.back() == WeightsTaken{kShop, true, 2, 0, 0, {200, 0, 0}});
  wrr.report_for(8s, kReports);
  CHECK(wrr.taken.back() == WeightsTaken{kShop, false, 0, 0, 0, {200, 400, 100}});
  wrr.pass(180s);
  CHECK(wrr.taken.back() == WeightsTaken{kShop, true, 0, 3, 0, {0, 0, 0}});
}

TEST_CASE("A78: the reports have the target and, if asked for, the locality of all endpoints",
          "[spec][lb][wrr][A78-5]") {
  const auto told = [](bool by_locality, const std::vector<std::string>& zones) {
    PolicyContext context{PolicyPath{"p"}, 1, nullptr};
    context.cluster = kShop;
    context.options.target = "xds:///shop";
    context.options.metrics_by_locality = by_locality;
    const auto policy = make_leaf(WeightedRoundRobinConfig{}, std::move(context));
    Endpoints endpoints{{Priority{}}};
    for (const std::string& zone : zones) {
      Locality locality;
      locality.name.zone = zone;
      locality.endpoints.push_back({{Address{"at-" + zone}}});
      endpoints.priorities[0].localities.push_back(
          std::make_shared<const Locality>(std::move(locality)));
    }
    ConfigUpdated update;
    update.generation = 1;
    update.config = make_lb_config(WeightedRoundRobinConfig{});
    update.endpoints = std::make_shared<const Endpoints>(std::move(endpoints));
    policy->step(update, Instant{});
    SubchannelStateChanged ready;
    ready.address = Address{"at-" + zones.front()};
    ready.state = ConnectivityState::kReady;
    ready.connection = std::make_shared<const Connection>(ready.address);
    for (const LbEffect& effect : policy->step(ready, Instant{})) {
      if (const auto* seen = std::get_if<Observe>(&effect))
        return std::get<WeightsTaken>(seen->observation);
    }
    return WeightsTaken{};
  };
  CHECK(told(true, {"a"}).target == "xds:///shop");
  CHECK(told(true, {"a"}).cluster == kShop);
  CHECK(told(true, {"a"}).locality == to_string(LocalityName{"", "a", ""}));
  CHECK(told(true, {"a", "b"}).locality.empty());
  CHECK(told(false, {"a"}).target == "xds:///shop");
  CHECK(told(false, {"a"}).locality.empty());
}

TEST_CASE("A78: without endpoints there is no locality", "[spec][lb][wrr][A78-5]") {
  PolicyContext context{PolicyPath{"p"}, 1, nullptr};
  context.options.metrics_by_locality = true;
  const auto policy = make_leaf(WeightedRoundRobinConfig{}, std::move(context));
  const LbEffects effects = policy->step(
      ConfigUpdated{1, make_lb_config(WeightedRoundRobinConfig{}), nullptr, nullptr}, Instant{});
  REQUIRE_FALSE(effects.empty());
  CHECK(std::get<Publish>(effects.front()).status.message() ==
        "weighted_round_robin: no endpoints");
}

TEST_CASE("A100: endpoints in slow start are counted, also while their factors are equal",
          "[spec][lb][wrr][A100-10]") {
  WeightedRoundRobinConfig config;
  config.slow_start = SlowStart{60s};
  WrrHarness wrr({"a", "b"}, config);
  CHECK(wrr.taken.back().in_slow_start == 2);
  wrr.pass(30s);
  wrr.list({"a", "b", "c"});
  wrr.ready("c");
  wrr.settle();
  CHECK(wrr.taken.back().in_slow_start == 3);
  wrr.pass(40s);
  CHECK(wrr.taken.back().in_slow_start == 1);
  wrr.pass(30s);
  CHECK(wrr.taken.back().in_slow_start == 0);
}

}  // namespace signalbox
