// SPDX-License-Identifier: Apache-2.0
//
// Load reports to the control plane (LRS), as a scripted server gets them.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include <catch2/catch.hpp>
#include <grpcpp/grpcpp.h>
#include <nlohmann/json.hpp>

#include "tests/e2e/load_server.hpp"
#include "tests/e2e/loaded_backends.hpp"
#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

const char* const kAll = "send_all_clusters: true load_reporting_interval { seconds: 1 }";
const char* const kPropagation = "GRPC_EXPERIMENTAL_XDS_ORCA_LRS_PROPAGATION";

class Variable {
 public:
  explicit Variable(const char* value) { ::setenv(kPropagation, value, 1); }

  ~Variable() { ::unsetenv(kPropagation); }

  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
};

std::uint64_t calls_of(const std::vector<Backend>& backends) {
  std::uint64_t calls = 0;
  for (const Backend& backend : backends)
    calls += backend.calls();
  return calls;
}

// --- the world -----------------------------------------------------------------

// The listener `orders` leads to the cluster c with the EDS service `eds`.
std::string orders_yaml(const std::string& endpoints, const std::string& more = kSelf) {
  return listener_yaml("orders", "orders") + routes_yaml("orders", "c") +
         cluster_yaml("c", "eds", more) + endpoints;
}

struct World {
  explicit World(const std::string& yaml, const std::string& response = kAll) : server(response) {
    auto started = ControlPlane::start("127.0.0.1:0", server.methods());
    REQUIRE(started.ok());
    plane = *std::move(started);
    plane->set_resources(resources(yaml));
    RuntimeOptions options = options_for(plane->address());
    options.log_line = [this](const LogLine& line) {
      const std::lock_guard lock(mutex);
      lines.push_back(line.text);
    };
    runtime = start_runtime(std::move(options));
    channel = runtime->channel("xds:///orders");
  }

  // Calls until each backend has had a call; all calls succeed.
  void call_all(const std::vector<Backend>& backends) {
    REQUIRE(eventually([&] {
      REQUIRE(call(channel).ok());
      ++succeeded;
      return std::ranges::all_of(backends, [](const Backend& one) { return one.calls() > 0; });
    }));
  }

  void call_many(int times, const std::string& item) {
    for (int i = 0; i < times; ++i) {
      const Answer answer = call(channel, {.item = item});
      INFO(answer.text());
      CHECK(answer.ok() != absl::StartsWith(item, "fail"));
      ++(answer.ok() ? succeeded : failed);
    }
  }

  // Picks for `times` calls by the Pick API, and ends each pick with the endpoint's report, which
  // comes from the test. Nothing is sent, and `succeeded` and `failed` stay. `item`: the report as
  // text, "cpu=0.8 foo=1"; calls fail if it begins with "fail". gRPC's C++ API hides the trailer
  // with an endpoint's report.
  void report_many(int times, const std::string& item) {
    LoadReport report;
    std::vector<LoadMetric> metrics;
    for (const absl::string_view word : absl::StrSplit(item, ' ')) {
      const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(word, '=');
      double value = 0;
      if (!absl::SimpleAtod(parts.second, &value)) continue;
      if (parts.first == "cpu") {
        report.cpu_utilization = value;
      } else if (parts.first == "mem") {
        report.mem_utilization = value;
      } else if (parts.first == "application") {
        report.application_utilization = value;
      } else {
        metrics.push_back({LoadMetric::Map::kNamedMetrics, parts.first, value});
      }
    }
    report.metrics = metrics;
    const auto router = runtime->router("xds:///orders");
    REQUIRE(router.ok());
    for (int i = 0; i < times; ++i) {
      Pick pick = (*router)->pick_until({"/signalbox.demo.v1.Orders/Place"},
                                        Router::Clock::now() + kPatience);
      REQUIRE(pick.outcome() == PickOutcome::kComplete);
      (*router)->started(pick);
      (*router)->finished(pick, absl::StartsWith(item, "fail") ? 9 : 0, &report);
    }
  }

  std::size_t told(const std::string& part) const {
    const std::lock_guard lock(mutex);
    return static_cast<std::size_t>(std::ranges::count_if(
        lines, [&](const std::string& line) { return absl::StrContains(line, part); }));
  }

  LoadServer server;
  mutable std::mutex mutex;
  std::vector<std::string> lines;
  std::unique_ptr<ControlPlane> plane;
  std::unique_ptr<Runtime> runtime;
  std::shared_ptr<grpc::ChannelInterface> channel;
  std::uint64_t succeeded = 0;
  std::uint64_t failed = 0;
};

void check_metric(const LoadBooks& books, const std::string& name, MetricBook wanted) {
  INFO(name);
  const auto found = books.metrics.find(name);
  REQUIRE(found != books.metrics.end());
  CHECK(found->second.calls == wanted.calls);
  CHECK(found->second.total == Approx(wanted.total));
}

}  // namespace

// --- the cases of gRPC's ClientLoadReportingTest ---------------------------------

TEST_CASE("load reports: calls and failures by locality", "[e2e][runtime][lrs][A27][C1][C2][C3]") {
  std::vector<Backend> backends(4);
  World world(orders_yaml(two_zones("eds",
                                    {backends[0].address(), backends[1].address()},
                                    {backends[2].address(), backends[3].address()})),
              "clusters: \"c\" load_reporting_interval { seconds: 1 }");
  world.call_all(backends);
  world.call_many(40, "item");
  world.call_many(12, "fail");
  REQUIRE(calls_of(backends) == world.succeeded + world.failed);

  CHECK(world.server.wait_for(world.succeeded + world.failed, "c"));
  const LoadBooks all = world.server.books("c");
  CHECK(all.issued == world.succeeded + world.failed);
  CHECK(all.succeeded == world.succeeded);
  CHECK(all.failed == world.failed);
  CHECK(all.in_progress == 0);
  CHECK(all.metrics.empty());
  CHECK(world.server.books("c", "z0").issued == backends[0].calls() + backends[1].calls());
  CHECK(world.server.books("c", "z1").issued == backends[2].calls() + backends[3].calls());
  CHECK(world.server.drops("c") == std::map<std::string, std::uint64_t>{{"", 0}});
  CHECK(world.server.opened() == 1);
  const auto requests = world.server.requests();
  CHECK(requests[0].node().id() == kNodeId);
  const auto& features = requests[0].node().client_features();
  CHECK(std::ranges::count(features, "envoy.lrs.supports_send_all_clusters") == 1);
  for (std::size_t i = 1; i < requests.size(); ++i) {
    CHECK_FALSE(requests[i].has_node());
    for (const auto& stats : requests[i].cluster_stats()) {
      CHECK(stats.cluster_service_name() == "eds");
      CHECK(stats.load_report_interval().seconds() >= 1);
    }
  }
  const std::vector<std::string> labels{absl::StrCat("server=\"", world.plane->address(), "\"")};
  CHECK(eventually([&] {  // The server may have a report before its writer is told.
    return metric(*world.runtime, "signalbox_lrs_reports_total", labels) >= 1.0;
  }));
  CHECK(metric(*world.runtime, "signalbox_lrs_streams_total", labels) == 0.0);
}

TEST_CASE("load reports: a cluster chooses which values of its endpoints are reported",
          "[e2e][runtime][lrs][A64][A85][C6]") {
  struct Row {
    const char* when;
    const char* variable;
    std::string names;
    std::set<std::string> reported;
  };

  const auto row = GENERATE(values<Row>({
      {"utilisations, a name and an unknown one",
       "false",
       "named_metrics.foo, cpu_utilization, mem_utilization, application_utilization, unknown",
       {"named_metrics.foo", "cpu", "mem", "application"}},
      {"all names", "true", "\"named_metrics.*\"", {"named_metrics.foo", "named_metrics.bar"}},
      {"nothing", "true", "", {}},
      {"nothing, by the rule of A64", "false", "", {"foo", "bar"}},
  }));
  CAPTURE(row.when);
  const Variable on(row.variable);
  std::vector<Backend> backends(2);
  World world(orders_yaml(two_zones("eds", {backends[0].address()}, {backends[1].address()}),
                          absl::StrCat(kSelf, ", lrs_report_endpoint_metrics: [", row.names, "]")));
  world.report_many(20, "cpu=0.8 mem=0.6 application=0.4 foo=1 bar=2");
  world.report_many(6, "fail cpu=0.4 mem=0.3 application=0.2 foo=0.3 bar=0.4");

  CHECK(world.server.wait_for(26, "c"));
  const LoadBooks all = world.server.books("c");
  std::set<std::string> reported;
  for (const auto& [name, book] : all.metrics)
    reported.insert(name);
  CHECK(reported == row.reported);
  const std::map<std::string, MetricBook> sums{{"cpu", {26, 20 * 0.8 + 6 * 0.4}},
                                               {"mem", {26, 20 * 0.6 + 6 * 0.3}},
                                               {"application", {26, 20 * 0.4 + 6 * 0.2}},
                                               {"foo", {26, 20 * 1.0 + 6 * 0.3}},
                                               {"bar", {26, 20 * 2.0 + 6 * 0.4}},
                                               {"named_metrics.foo", {26, 20 * 1.0 + 6 * 0.3}},
                                               {"named_metrics.bar", {26, 20 * 2.0 + 6 * 0.4}}};
  for (const std::string& name : row.reported)
    check_metric(all, name, sums.at(name));
}

TEST_CASE("load reports: a server may ask for all clusters", "[e2e][runtime][lrs][A27][C2]") {
  std::vector<Backend> backends(2);
  World world(orders_yaml(endpoints_yaml("eds", {{backends[0].address(), backends[1].address()}})));
  world.call_all(backends);
  world.call_many(20, "item");
  world.call_many(6, "fail");
  CHECK(world.server.wait_for(world.succeeded + world.failed));
  const LoadBooks all = world.server.books("c", "z0");
  CHECK(all.succeeded == world.succeeded);
  CHECK(all.failed == world.failed);
  CHECK(world.server.opened() == 1);
}

TEST_CASE("load reports: clusters that the server does not name are not reported",
          "[e2e][runtime][lrs][A27][C2]") {
  std::vector<Backend> backends(1);
  World world(orders_yaml(endpoints_yaml("eds", {{backends[0].address()}})),
              "clusters: \"bogus\" load_reporting_interval { seconds: 1 }");
  world.call_all(backends);
  REQUIRE(eventually([&] { return world.server.reports(0) >= 1; }));
  CHECK(world.server.books().issued == 0);
  CHECK(world.server.reports(0) == 1);
  CHECK(world.told("asks for the load of clusters that are not in use here") == 1);

  // The server now asks for all clusters, on the same stream. Calls that were counted earlier are
  // reported, too.
  world.server.say(kAll);
  CHECK(world.server.wait_for(world.succeeded));
  CHECK(world.server.opened() == 1);
}

TEST_CASE("load reports: nothing is lost, or counted twice, over a restart of the server",
          "[e2e][runtime][lrs][A27][C7]") {
  std::vector<Backend> backends(4);
  World world(orders_yaml(endpoints_yaml("eds", {{backends[0].address(), backends[1].address()}})));
  world.call_many(10, "item");
  CHECK(world.server.wait_for(10));

  world.plane->stop();
  world.call_many(10, "item");
  REQUIRE(world.plane->start_again().ok());
  world.plane->update(
      resources(endpoints_yaml("eds", {{backends[2].address(), backends[3].address()}})));
  REQUIRE(eventually([&] {
    world.call_many(1, "item");
    return backends[2].calls() > 0 && backends[3].calls() > 0;
  }));
  world.call_many(2, "item");
  CHECK(world.server.wait_for(world.succeeded));
  const LoadBooks all = world.server.books("c", "z0");
  CHECK(all.issued == calls_of(backends));
  CHECK(world.server.opened() == 2);
  const std::vector<std::string> labels{absl::StrCat("server=\"", world.plane->address(), "\"")};
  CHECK(eventually(
      [&] { return metric(*world.runtime, "signalbox_lrs_streams_total", labels) >= 1.0; }));
}

TEST_CASE("load reports: a route that changes its cluster: both are reported",
          "[e2e][runtime][lrs][A27][C3]") {
  std::vector<Backend> backends(2);
  World world(orders_yaml(endpoints_yaml("eds", {{backends[0].address()}})) +
                  cluster_yaml("new", "new-eds", kSelf) +
                  endpoints_yaml("new-eds", {{backends[1].address()}}),
              "clusters: \"c\" clusters: \"new\" load_reporting_interval { seconds: 1 }");
  world.call_many(5, "item");
  CHECK(world.server.wait_for(5, "c"));
  world.call_many(3, "item");
  world.plane->update(resources(routes_yaml("orders", "new")));
  REQUIRE(eventually([&] {
    world.call_many(1, "item");
    return backends[1].calls() > 0;
  }));
  world.call_many(4, "item");
  CHECK(world.server.wait_for(backends[0].calls(), "c"));
  CHECK(world.server.wait_for(backends[1].calls(), "new"));
  CHECK(world.server.books().succeeded == world.succeeded);
  for (const auto& request : world.server.requests()) {
    for (const auto& stats : request.cluster_stats())
      CHECK(stats.cluster_service_name() == (stats.cluster_name() == "c" ? "eds" : "new-eds"));
  }
  CHECK(world.server.opened() == 1);
}

TEST_CASE("load reports: drops by category, and those of the circuit breaker without one",
          "[e2e][runtime][lrs][A27][A32][C4]") {
  HoldingBackend backend("c");
  const std::string endpoints = endpoints_yaml("eds", {{backend.address()}});
  const auto dropping = [&](const std::string& category) {
    return replaced(endpoints,
                    "endpoints: [",
                    absl::StrCat("policy: {drop_overloads: [{category: ",
                                 category,
                                 ", drop_percentage: {numerator: 100}}]}, endpoints: ["));
  };
  World world(orders_yaml(
      endpoints, absl::StrCat(kSelf, ", circuit_breakers: {thresholds: [{max_requests: 1}]}")));
  // Counts the calls by their outcome.
  std::map<std::string, std::uint64_t> seen;
  const auto call_one = [&] {
    const Answer answer = call(world.channel);
    INFO(answer.text());
    const std::string text = answer.status.error_message();
    std::string what = answer.ok() ? "ok" : "other";
    for (const char* known : {"\"lb\"", "\"throttle\"", "circuit breaker"}) {
      if (absl::StrContains(text, known)) what = known;
    }
    CHECK(what != "other");
    ++seen[what];
    return what;
  };
  REQUIRE(call_one() == "ok");
  for (const std::string category : {"lb", "throttle"}) {
    world.plane->update(resources(dropping(category)));
    REQUIRE(eventually([&] { return call_one() == "\"" + category + "\""; }));
    call_one();
    call_one();
  }
  world.plane->update(resources(endpoints));
  REQUIRE(eventually([&] { return call_one() == "ok"; }));
  Calls held(world.channel);
  held.start(1, {.item = "hold"});
  REQUIRE(eventually([&] { return backend.held() == 1; }));
  CHECK(call_one() == "circuit breaker");
  CHECK(call_one() == "circuit breaker");
  // A cluster with a call in progress is reported, also when no call has ended since the last
  // report.
  CHECK(eventually([&] { return world.server.books("c").in_progress == 1; }));
  const std::uint64_t lb = seen["\"lb\""];
  const std::uint64_t throttle = seen["\"throttle\""];
  const std::map<std::string, std::uint64_t> wanted{
      {"", lb + throttle + seen["circuit breaker"]}, {"lb", lb}, {"throttle", throttle}};
  CHECK(eventually([&] { return world.server.drops("c") == wanted; }));
  CHECK(world.server.drops("c") == wanted);
  CHECK(world.server.wait_for(seen["ok"], "c"));
  backend.release();
  held.finish();
  CHECK(eventually([&] { return world.server.books("c").in_progress == 0; }));
}

// --- servers, and clusters -------------------------------------------------------

TEST_CASE("load reports: each server gets the load of the clusters that it sent",
          "[e2e][runtime][lrs][A27][A47][C1]") {
  std::vector<Backend> backends(2);
  LoadServer other(kAll);
  auto other_plane = ControlPlane::start("127.0.0.1:0", other.methods());
  REQUIRE(other_plane.ok());
  const auto of_other = [](const std::string& type, const std::string& name) {
    return absl::StrCat("\"xdstp://other/envoy.config.", type, "/", name, "\"");
  };
  const std::string assignment = of_other("endpoint.v3.ClusterLoadAssignment", "c");
  const std::string cluster = of_other("cluster.v3.Cluster", "c");
  const std::string routes = of_other("route.v3.RouteConfiguration", "r");
  (*other_plane)
      ->set_resources(resources(listener_yaml(of_other("listener.v3.Listener", "orders"), routes) +
                                routes_yaml(routes, cluster) +
                                cluster_yaml(cluster, assignment, kSelf) +
                                endpoints_yaml(assignment, {{backends[1].address()}})));
  LoadServer server(kAll);
  auto plane = ControlPlane::start("127.0.0.1:0", server.methods());
  REQUIRE(plane.ok());
  (*plane)->set_resources(resources(orders_yaml(endpoints_yaml("eds", {{backends[0].address()}}))));
  const auto only = [](const std::string& uri) {
    const nlohmann::json insecure{{"type", "insecure"}};
    return nlohmann::json::array(
        {{{"server_uri", uri}, {"channel_creds", nlohmann::json::array({insecure})}}});
  };
  RuntimeOptions options = options_for((*plane)->address());
  options.bootstrap_json = nlohmann::json{
      {"xds_servers", only((*plane)->address())},
      {"authorities", {{"other", {{"xds_servers", only((*other_plane)->address())}}}}},
      {"node",
       {{"id", kNodeId}}}}.dump();
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  const auto other_channel = runtime->channel("xds://other/orders");
  for (int i = 0; i < 5; ++i)
    CHECK(call(channel).ok());
  for (int i = 0; i < 10; ++i)
    CHECK(call(other_channel).ok());
  CHECK(server.wait_for(5));
  CHECK(server.books("c").succeeded == 5);
  CHECK(other.wait_for(10));
  CHECK(other.books("xdstp://other/envoy.config.cluster.v3.Cluster/c").succeeded == 10);
  CHECK(server.opened() == 1);
  CHECK(other.opened() == 1);
}

TEST_CASE("load reports: below an aggregate the leaf is reported", "[e2e][runtime][lrs][A37][C5]") {
  std::vector<Backend> backends(1);
  World world(listener_yaml("orders", "orders") + routes_yaml("orders", "both") +
              aggregate_yaml("both", {"c"}, kSelf) + cluster_yaml("c", "eds", kSelf) +
              endpoints_yaml("eds", {{backends[0].address()}}));
  world.call_many(3, "item");
  CHECK(world.server.wait_for(3, "c"));
  CHECK(world.server.books().succeeded == 3);
}

TEST_CASE("load reports: no stream while no cluster in use has its load reported",
          "[e2e][runtime][lrs][C1]") {
  std::vector<Backend> backends(1);
  World world(orders_yaml(endpoints_yaml("eds", {{backends[0].address()}}), ""));
  world.call_many(3, "item");
  CHECK(world.server.opened() == 0);
  // An update turns load reports on for the cluster. The next update turns them off, and the stream
  // ends after its last report.
  world.plane->update(resources(cluster_yaml("c", "eds", kSelf)));
  REQUIRE(eventually([&] { return world.server.open() == 1; }));
  REQUIRE(eventually([&] {
    world.call_many(1, "item");
    return world.server.books().succeeded > 0;
  }));
  world.plane->update(resources(cluster_yaml("c", "eds")));
  CHECK(eventually([&] { return world.server.open() == 0; }));
  CHECK(world.server.books().issued == world.server.books().succeeded);
  CHECK(world.server.books().issued <= world.succeeded);
  CHECK(world.server.books().in_progress == 0);
}

// --- servers that do not do what they should ----------------------------------------

TEST_CASE(
    "load reports: whatever the server says or does not say, calls go on, and it is told once",
    "[e2e][runtime][lrs][C2][C7]") {
  struct Row {
    const char* when;
    const char* response;
    const char* told;
    bool reports;
  };

  const auto row = GENERATE(values<Row>({
      {"an interval of 0", "send_all_clusters: true", "must be 1 s to 3600 s, found none", true},
      {"an interval of a year",
       "send_all_clusters: true load_reporting_interval { seconds: 31536000 }",
       "found 31536000 s; reports are sent every 3600 s",
       false},
      {"endpoints are asked for",
       "send_all_clusters: true load_reporting_interval { seconds: 1 } "
       "report_endpoint_granularity: true",
       "report_endpoint_granularity is not supported",
       true},
      {"no clusters are asked for",
       "load_reporting_interval { seconds: 1 }",
       "asks for the load of no cluster",
       false},
      {"a cluster is asked for that is not there",
       "clusters: \"bogus\" load_reporting_interval { seconds: 1 }",
       "clusters that are not in use here, or have no lrs_server: bogus",
       false},
      {"it answers nothing", "", "", false},
  }));
  CAPTURE(row.when);
  std::vector<Backend> backends(1);
  World world(orders_yaml(endpoints_yaml("eds", {{backends[0].address()}})), row.response);
  world.call_many(5, "item");
  if (*row.told != '\0') CHECK(eventually([&] { return world.told(row.told) == 1; }));
  if (row.reports)
    CHECK(world.server.wait_for(5));
  else
    CHECK(eventually([&] { return world.server.opened() == 1; }));
  world.server.say(row.response);
  world.call_many(5, "item");
  if (row.reports) CHECK(world.server.wait_for(10));
  CHECK(world.server.opened() == 1);
  CHECK(world.told("load reports to ") == (*row.told == '\0' ? 0 : 1));
}

TEST_CASE("load reports: values that no report may have are left out, and counted",
          "[e2e][runtime][lrs][A64][C6]") {
  const Variable off("false");
  std::vector<Backend> backends(1);
  World world(orders_yaml(endpoints_yaml("eds", {{backends[0].address()}})));
  world.report_many(2, "cpu=nan bad=-1 worse=inf good=2");
  world.report_many(1, "good=3");
  REQUIRE(world.server.wait_for(3));
  const LoadBooks books = world.server.books();
  check_metric(books, "good", {3, 7});
  CHECK_FALSE(books.metrics.contains("bad"));
  CHECK_FALSE(books.metrics.contains("worse"));
  const auto counted = [&](const std::string& result) {
    return metric(*world.runtime, "signalbox_load_reports_total", {"result=\"" + result + "\""});
  };
  CHECK(counted("partly") == 2.0);
  CHECK(counted("taken") == 1.0);
}

TEST_CASE("load reports: a control plane without the service is told once, and serves on",
          "[e2e][runtime][lrs][C7]") {
  std::vector<Backend> backends(1);
  const auto plane = start_plane(orders_yaml(endpoints_yaml("eds", {{backends[0].address()}})));
  std::mutex mutex;
  std::vector<std::string> told;
  RuntimeOptions options = options_for(plane->address());
  options.log_line = [&](const LogLine& line) {
    const std::lock_guard lock(mutex);
    if (absl::StrContains(line.text, "load reports to ")) told.push_back(line.text);
  };
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  const std::vector<std::string> labels{"end=\"no_response\""};
  REQUIRE(eventually([&] {
    CHECK(call(channel).ok());
    return metric(*runtime, "signalbox_lrs_streams_total", labels) >= 2.0;
  }));
  const std::lock_guard lock(mutex);
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0], Catch::Contains("UNIMPLEMENTED: the server has no load reporting service"));
}

}  // namespace signalbox::test
