// SPDX-License-Identifier: Apache-2.0
#include "messages/counting/load_book.hpp"

#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "messages/load_report.hpp"

namespace signalbox {
namespace {

using std::chrono::seconds;

const LoadSelection kAll{.all = true};
const LocalityName kHere{.region = "r", .zone = "here", .sub_zone = ""};
const LocalityName kThere{.region = "r", .zone = "there", .sub_zone = ""};

Instant at(int second) {
  return Instant(seconds(second));
}

void call(const LocalityCountsPtr& locality, bool succeeds) {
  locality->begun();
  locality->ended(succeeds);
}

TEST_CASE("load book: counts what succeeded, failed, was issued and is in progress",
          "[messages][counting][C3]") {
  LoadBook book({0});
  const auto counts = book.open(0, ClusterName("orders"), "orders-eds", at(0));
  const auto here = counts->locality(kHere);
  const auto there = counts->locality(kThere);
  for (int i = 0; i < 3; ++i)
    call(here, true);
  call(here, false);
  here->begun();
  call(there, true);

  const LoadReading reading = book.read(0, kAll, at(10));

  CHECK(reading.is_in_use);
  CHECK(reading.clusters ==
        std::vector<ClusterLoad>{
            {.cluster = ClusterName("orders"),
             .service = "orders-eds",
             .interval = seconds(10),
             .localities = {
                 {.locality = kHere, .issued = 5, .succeeded = 3, .failed = 1, .in_progress = 1},
                 {.locality = kThere, .issued = 1, .succeeded = 1}}}});
}

TEST_CASE("load book: a settled reading is not read again, an unsettled one is",
          "[messages][counting][C7]") {
  LoadBook book({0});
  const auto counts = book.open(0, ClusterName("c"), "", at(0));
  const auto here = counts->locality(kHere);
  const auto drops = counts->drops("throttle");
  call(here, true);
  here->begun();
  drops->add(0, 2);
  counts->breaker_drops()->add(0, 3);

  const LoadReading lost = book.read(0, kAll, at(5));
  call(here, true);
  const LoadReading sent = book.read(0, kAll, at(8));
  REQUIRE(sent.clusters.size() == 1);
  CHECK(sent.clusters[0].interval == seconds(8));
  CHECK(sent.clusters[0].drops == std::map<std::string, std::uint64_t>{{"throttle", 2}});
  CHECK(sent.clusters[0].breaker_drops == 3);
  CHECK(sent.clusters[0].localities ==
        std::vector<LocalityLoad>{
            {.locality = kHere, .issued = 3, .succeeded = 2, .failed = 0, .in_progress = 1}});

  book.settle(0, lost.number);  // Settles nothing: a later reading has replaced `lost`.
  CHECK(book.read(0, kAll, at(8)).clusters == sent.clusters);
  const LoadReading last = book.read(0, kAll, at(8));
  book.settle(0, last.number);

  const LoadReading after = book.read(0, kAll, at(9));
  REQUIRE(after.clusters.size() == 1);
  CHECK(after.clusters[0].interval == seconds(1));
  CHECK(after.clusters[0].drops.empty());
  CHECK(after.clusters[0].breaker_drops == 0);
  CHECK(after.clusters[0].localities ==
        std::vector<LocalityLoad>{{.locality = kHere, .in_progress = 1}});
  here->ended(false);
  book.settle(0, after.number);
  CHECK(book.read(0, kAll, at(9)).clusters[0].localities ==
        std::vector<LocalityLoad>{{.locality = kHere, .failed = 1}});
}

TEST_CASE("load book: calls that end between reading and settling belong to the next report",
          "[messages][counting][C7]") {
  LoadBook book({0});
  const auto here = book.open(0, ClusterName("c"), "", at(0))->locality(kHere);
  call(here, true);
  const LoadReading reading = book.read(0, kAll, at(1));
  call(here, true);
  call(here, false);
  book.settle(0, reading.number);
  CHECK(book.read(0, kAll, at(2)).clusters[0].localities ==
        std::vector<LocalityLoad>{{.locality = kHere, .issued = 2, .succeeded = 1, .failed = 1}});
}

TEST_CASE("load book: counts of a counter that is released before the settling are not lost",
          "[messages][counting][C7]") {
  LoadBook book({0});
  auto counts = book.open(0, ClusterName("c"), "", at(0));
  auto here = counts->locality(kHere);
  auto fire = counts->drops("fire");
  const bool is_cluster_held = GENERATE(true, false);
  CAPTURE(is_cluster_held);
  const LoadReading first = book.read(0, kAll, at(1));
  call(here, true);
  fire->add(0, 1);
  here.reset();
  fire.reset();
  if (!is_cluster_held) counts.reset();
  book.settle(0, first.number);
  const LoadReading second = book.read(0, kAll, at(2));
  REQUIRE(second.clusters.size() == 1);
  CHECK(second.clusters[0].localities ==
        std::vector<LocalityLoad>{{.locality = kHere, .issued = 1, .succeeded = 1}});
  CHECK(second.clusters[0].drops == std::map<std::string, std::uint64_t>{{"fire", 1}});
}

TEST_CASE("load book: a cluster is in use while only its circuit breaker counts",
          "[messages][counting]") {
  LoadBook book({0});
  const auto breaker = book.open(0, ClusterName("c"), "", at(0))->breaker_drops();
  CHECK(book.is_in_use(0));
}

TEST_CASE("load book: a cluster without calls is left out", "[messages][counting][C3]") {
  LoadBook book({0});
  const auto counts = book.open(0, ClusterName("c"), "", at(0));
  const auto here = counts->locality(kHere);
  const LoadReading reading = book.read(0, kAll, at(1));
  CHECK(reading.clusters.empty());
  CHECK(reading.is_in_use);
}

TEST_CASE("load book: only clusters that the server names are read", "[messages][counting][C2]") {
  LoadBook book({0, 1});
  const auto a = book.open(0, ClusterName("a"), "", at(0));
  const auto b = book.open(0, ClusterName("b"), "", at(0));
  const auto other = book.open(1, ClusterName("a"), "", at(0));
  call(a->locality(kHere), true);
  call(b->locality(kHere), true);
  call(other->locality(kHere), true);

  const LoadReading named = book.read(0, {.all = false, .clusters = {"b", "bogus"}}, at(1));
  REQUIRE(named.clusters.size() == 1);
  CHECK(named.clusters[0].cluster == ClusterName("b"));
  CHECK(named.unknown == std::set<std::string>{"bogus"});
  book.settle(0, named.number);

  // A report without cluster a leaves the counts of a for the next report.
  const LoadReading all = book.read(0, kAll, at(2));
  REQUIRE(all.clusters.size() == 1);
  CHECK(all.clusters[0].cluster == ClusterName("a"));
  CHECK(all.clusters[0].interval == seconds(2));
}

TEST_CASE("load book: two EDS services of one cluster are two entries",
          "[messages][counting][C3]") {
  LoadBook book({0});
  const auto one = book.open(0, ClusterName("c"), "one", at(0));
  const auto two = book.open(0, ClusterName("c"), "two", at(0));
  CHECK(one == book.open(0, ClusterName("c"), "one", at(3)));
  call(one->locality(kHere), true);
  call(two->locality(kHere), true);
  CHECK(book.read(0, kAll, at(1)).clusters.size() == 2);
}

TEST_CASE("load book: a cluster that goes takes its last report with it", "[messages][counting]") {
  LoadBook book({0});
  auto here = book.open(0, ClusterName("c"), "", at(0))->locality(kHere);
  call(here, true);
  here->begun();
  CHECK(book.is_in_use(0));  // A call to cluster c is in flight.

  book.settle(0, book.read(0, kAll, at(1)).number);
  here->ended(true);
  here.reset();
  CHECK_FALSE(book.is_in_use(0));
  CHECK(book.size() == 1);

  const LoadReading last = book.read(0, kAll, at(2));
  CHECK_FALSE(last.is_in_use);
  CHECK(last.clusters[0].localities ==
        std::vector<LocalityLoad>{{.locality = kHere, .succeeded = 1}});
  book.settle(0, last.number);
  CHECK(book.size() == 0);
}

TEST_CASE("load book: a cluster that comes back keeps its unreported counts",
          "[messages][counting]") {
  LoadBook book({0});
  call(book.open(0, ClusterName("c"), "", at(0))->locality(kHere), true);
  const auto again = book.open(0, ClusterName("c"), "", at(5));
  call(again->locality(kHere), true);
  CHECK(book.read(0, kAll, at(6)).clusters[0].localities ==
        std::vector<LocalityLoad>{{.locality = kHere, .issued = 2, .succeeded = 2}});
}

TEST_CASE("load book: a locality that goes is forgotten after its last report",
          "[messages][counting]") {
  LoadBook book({0});
  const auto counts = book.open(0, ClusterName("c"), "", at(0));
  call(counts->locality(kHere), true);
  const auto there = counts->locality(kThere);
  book.settle(0, book.read(0, kAll, at(1)).number);
  const auto fresh = counts->locality(kHere);
  CHECK(fresh->totals().issued == 0);
  call(fresh, true);
  CHECK(book.read(0, kAll, at(2)).clusters[0].localities ==
        std::vector<LocalityLoad>{{.locality = kHere, .issued = 1, .succeeded = 1}});
}

TEST_CASE("load book: an unused cluster that the server does not ask for is dropped",
          "[messages][counting]") {
  LoadBook book({0});
  call(book.open(0, ClusterName("c"), "", at(0))->locality(kHere), true);
  book.read(0, {.all = false, .clusters = {"other"}}, at(1));
  CHECK(book.size() == 0);
}

TEST_CASE("load book: clusters that are never reported are bounded", "[messages][counting]") {
  LoadBook book({0});
  for (int i = 0; i < 1500; ++i)
    call(book.open(0, ClusterName(absl::StrCat("c", i)), "", at(i))->locality(kHere), true);
  CHECK(book.size() <= LoadBook::kMostUnused + 1);
  const LoadReading reading = book.read(0, {.all = false, .clusters = {"c0", "c1499"}}, at(2000));
  REQUIRE(reading.clusters.size() == 1);  // The limit has removed c0, the oldest entry.
  CHECK(reading.clusters[0].cluster == ClusterName("c1499"));
}

TEST_CASE("load book: unused clusters without unreported calls make room first",
          "[messages][counting]") {
  LoadBook book({0});
  call(book.open(0, ClusterName("called"), "", at(0))->locality(kHere), true);
  for (int i = 0; i < 1500; ++i)
    book.open(0, ClusterName(absl::StrCat("c", i)), "", at(1 + i));
  const LoadReading reading = book.read(0, kAll, at(2000));
  REQUIRE(reading.clusters.size() == 1);
  CHECK(reading.clusters[0].cluster == ClusterName("called"));
}

TEST_CASE("load book: a counter that is used between reading and settling keeps its counts",
          "[messages][counting][C7]") {
  LoadBook book({0});
  auto counts = book.open(0, ClusterName("c"), "", at(0));
  call(counts->locality(kHere), true);
  counts->drops("fire")->add(0, 1);
  const bool cluster_goes_too = GENERATE(false, true);
  if (cluster_goes_too) counts = nullptr;
  const LoadReading first = book.read(0, kAll, at(1));
  {
    const auto again = book.open(0, ClusterName("c"), "", at(2));
    call(again->locality(kHere), false);
    again->drops("fire")->add(0, 2);
  }
  book.settle(0, first.number);
  const LoadReading second = book.read(0, kAll, at(3));
  REQUIRE(second.clusters.size() == 1);
  CHECK(second.clusters[0].localities ==
        std::vector<LocalityLoad>{{.locality = kHere, .issued = 1, .failed = 1}});
  CHECK(second.clusters[0].drops == std::map<std::string, std::uint64_t>{{"fire", 2}});
  book.settle(0, second.number);
  CHECK(book.size() == (cluster_goes_too ? 0 : 1));
}

TEST_CASE("load book: localities and drops that are never reported are bounded",
          "[messages][counting]") {
  LoadBook book({0});
  const auto counts = book.open(0, ClusterName("c"), "", at(0));
  const auto held = counts->locality(kHere);
  call(held, true);
  const auto held_drops = counts->drops("held");
  held_drops->add(0, 1);
  for (int i = 0; i < 3'000; ++i) {
    call(counts->locality({.zone = absl::StrCat("z", i)}), true);
    counts->drops(absl::StrCat("d", i))->add(0, 1);
  }
  const LoadReading reading = book.read(0, kAll, at(1));
  REQUIRE(reading.clusters.size() == 1);
  const ClusterLoad& load = reading.clusters[0];
  CHECK(load.localities.size() <= LoadBook::kMostUnused + 2);  // The newest, and the held one.
  CHECK(load.localities.size() >= LoadBook::kMostUnused / 2);
  CHECK(load.drops.size() <= LoadBook::kMostUnused + 2);
  // Counters that are held stay.
  CHECK(counts->locality(kHere) == held);
  CHECK(load.drops.at("held") == 1);
}

TEST_CASE("load book: unused localities without unreported calls make room first",
          "[messages][counting]") {
  LoadBook book({0});
  const auto counts = book.open(0, ClusterName("c"), "", at(0));
  call(counts->locality(kHere), true);
  counts->drops("fire")->add(0, 1);
  for (int i = 0; i < 3'000; ++i) {
    counts->locality({.zone = absl::StrCat("z", i)});
    counts->drops(absl::StrCat("d", i));
  }
  const LoadReading reading = book.read(0, kAll, at(1));
  REQUIRE(reading.clusters.size() == 1);
  CHECK(reading.clusters[0].localities ==
        std::vector<LocalityLoad>{{.locality = kHere, .issued = 1, .succeeded = 1}});
  CHECK(reading.clusters[0].drops == std::map<std::string, std::uint64_t>{{"fire", 1}});
}

TEST_CASE("load book: counts that no report had are owed, also of unused clusters",
          "[messages][counting][C7]") {
  LoadBook book({0});
  CHECK_FALSE(book.is_owed(0));
  {
    const auto counts = book.open(0, ClusterName("c"), "", at(0));
    CHECK_FALSE(book.is_owed(0));
    SECTION("a call") {
      counts->locality(kHere)->begun();
    }
    SECTION("a drop") {
      counts->drops("fire")->add(0, 1);
    }
    SECTION("a drop of the circuit breaker") {
      counts->breaker_drops()->add(0, 1);
    }
  }
  CHECK_FALSE(book.is_in_use(0));
  CHECK(book.is_owed(0));
  const LoadReading reading = book.read(0, kAll, at(1));
  CHECK(book.is_owed(0));
  book.settle(0, reading.number);
  CHECK_FALSE(book.is_owed(0));
}

TEST_CASE("load book: wakes once for each cluster that comes into use",
          "[messages][counting][C1]") {
  LoadBook book({0});
  std::vector<ServerId> woken;
  book.wake_by([&](ServerId server) { woken.push_back(server); });
  CHECK(book.open(7, ClusterName("c"), "", at(0)) == nullptr);
  const auto first = book.open(0, ClusterName("c"), "", at(0));
  const auto second = book.open(0, ClusterName("c"), "", at(0));
  CHECK(woken == std::vector<ServerId>{0});
}

TEST_CASE("load counts: values of endpoints are summed by name", "[messages][counting][C6]") {
  const LocalityCounts counts;
  using Utilization = LocalityCounts::Utilization;
  counts.add_utilization(Utilization::kCpu, 0.5);
  counts.add_utilization(Utilization::kCpu, 0.25);
  counts.add_utilization(Utilization::kApplication, 1.5);
  counts.add_named("queue", true, 3);
  counts.add_named("queue", true, 4);
  counts.add_named("queue", false, 5);
  const LocalityTotals totals = counts.totals();
  CHECK(totals.utilizations[0] == MetricSum{2, 0.75});
  CHECK(totals.utilizations[1] == MetricSum{});
  CHECK(totals.utilizations[2] == MetricSum{1, 1.5});
  CHECK(totals.named ==
        std::map<std::string, MetricSum>{{"named_metrics.queue", {2, 7}}, {"queue", {1, 5}}});
}

TEST_CASE("load counts: names beyond the limit, and sums that would be infinite, are lost and told",
          "[messages][counting][C6]") {
  const LocalityCounts counts;
  for (std::size_t i = 0; i < LocalityCounts::kMostNames + 10; ++i)
    counts.add_named(absl::StrCat("name", i), true, 1);
  CHECK(counts.totals().named.size() == LocalityCounts::kMostNames);
  CHECK(counts.totals().lost_values == 10);
  counts.add_named("name3", true, 1);
  CHECK(counts.totals().named.at("named_metrics.name3") == MetricSum{2, 2});

  counts.add_named("name4", true, std::numeric_limits<double>::max());
  counts.add_named("name4", true, std::numeric_limits<double>::infinity());
  counts.add_named("name4", true, std::numeric_limits<double>::quiet_NaN());
  CHECK(counts.totals().named.at("named_metrics.name4") == MetricSum{1, 1});
  CHECK(counts.totals().lost_values == 13);
}

TEST_CASE("load counts: values that no report may have are lost and told",
          "[messages][counting][C6]") {
  const LocalityCounts counts;
  using Utilization = LocalityCounts::Utilization;
  counts.add_utilization(Utilization::kCpu, 0.5);
  counts.add_named("queue", true, 3);
  std::int64_t lost = 0;
  for (const double bad : {-1.0,
                           -5e-324,
                           std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    CAPTURE(bad);
    counts.add_utilization(Utilization::kCpu, bad);
    counts.add_named("queue", true, bad);
    lost += 2;
    CHECK(counts.totals().utilizations[0] == MetricSum{1, 0.5});
    CHECK(counts.totals().named.at("named_metrics.queue") == MetricSum{1, 3});
    CHECK(counts.totals().lost_values == lost);
  }
  // Their names take no place.
  for (std::size_t i = 0; i < LocalityCounts::kMostNames; ++i)
    counts.add_named(absl::StrCat("bad", i), true, -1);
  counts.add_named("good", true, 2);
  CHECK(counts.totals().named.at("named_metrics.good") == MetricSum{1, 2});
}

TEST_CASE("load report: NaN, infinite and negative values are no load", "[messages][A51]") {
  const auto with = [](LoadReport report) { return has_load_values_only(report); };
  CHECK(with({}));
  CHECK(with({.application_utilization = 7, .cpu_utilization = 1.5, .qps = 1e300}));
  for (const double bad :
       {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_FALSE(with({.application_utilization = bad}));
    CHECK_FALSE(with({.cpu_utilization = bad}));
    CHECK_FALSE(with({.mem_utilization = bad}));
    CHECK_FALSE(with({.qps = bad}));
    CHECK_FALSE(with({.eps = bad}));
    const LoadMetric metrics[] = {{LoadMetric::Map::kNamedMetrics, "a", 1},
                                  {LoadMetric::Map::kRequestCost, "b", bad}};
    CHECK_FALSE(with({.metrics = metrics}));
  }
}

TEST_CASE("load counts: values are reported although no call was counted since the last report",
          "[messages][counting][C6]") {
  LoadBook book({0});
  const auto here = book.open(0, ClusterName("c"), "", at(0))->locality(kHere);
  here->add_named("queue", true, 5);
  const LoadReading first = book.read(0, kAll, at(1));
  REQUIRE(first.clusters.size() == 1);
  REQUIRE(first.clusters[0].localities.size() == 1);
  CHECK(first.clusters[0].localities[0].named ==
        std::map<std::string, MetricSum>{{"named_metrics.queue", {1, 5}}});
  book.settle(0, first.number);
  here->add_utilization(LocalityCounts::Utilization::kMem, 0.5);
  const LoadReading second = book.read(0, kAll, at(2));
  REQUIRE(second.clusters.size() == 1);
  CHECK(second.clusters[0].localities.at(0).mem_utilization == MetricSum{1, 0.5});
}

TEST_CASE("load counts: a value that was read before its call is reported with its call",
          "[messages][counting][C3]") {
  struct Case {
    MetricSum seen;
    MetricSum reported;
    MetricSum fresh;
    MetricSum seen_after;
  };

  for (const Case& one : std::vector<Case>{
           {.seen = {3, 6}, .reported = {1, 2}, .fresh = {2, 4}, .seen_after = {3, 6}},
           {.seen = {1, 5}, .reported = {1, 2}, .fresh = {0, 0}, .seen_after = {1, 2}},
           {.seen = {0, 5}, .reported = {0, 0}, .fresh = {0, 0}, .seen_after = {0, 0}},
           {.seen = {2, 5}, .reported = {1, 5}, .fresh = {1, 0}, .seen_after = {2, 5}}}) {
    MetricSum seen = one.seen;
    CHECK(take_unreported(seen, one.reported) == one.fresh);
    CHECK(seen == one.seen_after);
  }
}

TEST_CASE("load counts: nothing is lost among threads that count and report at the same time",
          "[messages][counting][C3]") {
  constexpr int kThreads = 24;  // More threads than stripes.
  constexpr int kCalls = 2000;
  LoadBook book({0});
  const auto here = book.open(0, ClusterName("c"), "", at(0))->locality(kHere);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCalls; ++i) {
        here->begun();
        here->add_named(absl::StrCat("m", (t + i) % 40), true, 1);
        here->ended(i % 4 != 0);
      }
    });
  }
  std::uint64_t issued = 0;
  std::uint64_t succeeded = 0;
  std::uint64_t failed = 0;
  std::uint64_t values = 0;
  double total = 0;
  const auto report = [&] {
    const LoadReading reading = book.read(0, kAll, at(1));
    for (const ClusterLoad& cluster : reading.clusters) {
      for (const LocalityLoad& load : cluster.localities) {
        issued += load.issued;
        succeeded += load.succeeded;
        failed += load.failed;
        CHECK(issued >= succeeded + failed);
        CHECK(issued == succeeded + failed + load.in_progress);
        for (const auto& [name, sum] : load.named) {
          values += sum.calls;
          total += sum.total;
        }
      }
    }
    book.settle(0, reading.number);
  };
  for (int i = 0; i < 50; ++i)
    report();
  for (std::thread& thread : threads)
    thread.join();
  report();
  CHECK(issued == kThreads * kCalls);
  CHECK(failed == kThreads * kCalls / 4);
  CHECK(succeeded == kThreads * kCalls - kThreads * kCalls / 4);
  CHECK(values == kThreads * kCalls);
  CHECK(total == static_cast<double>(kThreads * kCalls));
}

}  // namespace
}  // namespace signalbox
