// SPDX-License-Identifier: Apache-2.0
//
// The calls that cluster_impl counts for the load reports to the control plane.
#include "lb/tree/locality_loads.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "lb/pick/pickers.hpp"
#include "lb/request_limit.hpp"
#include "lb/tree/cluster_impl.hpp"
#include "messages/counting/load_book.hpp"
#include "tests/support/policy_harness.hpp"

namespace locality_loads_test {

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;

namespace {

constexpr std::uint32_t kAll = 1'000'000;
constexpr ServerId kServer = 2;

LocalityName zone(const std::string& name) {
  return {.region = "r", .zone = name, .sub_zone = ""};
}

// A locality with one endpoint.
LocalityPtr locality_in(const std::string& name) {
  auto locality = std::make_shared<Locality>();
  locality->name = zone(name);
  locality->endpoints.push_back({.addresses = {Address("10.0.0.1:80")}});
  return locality;
}

EndpointsPtr endpoints_in(const std::vector<LocalityPtr>& localities,
                          std::vector<DropCategory> drops = {}) {
  auto endpoints = std::make_shared<Endpoints>();
  endpoints->priorities.push_back({.localities = localities});
  endpoints->drops = std::move(drops);
  return endpoints;
}

LbConfigPtr config_of(std::optional<LoadReporting> reporting,
                      const std::string& service = "eds",
                      std::uint32_t most = 1024) {
  static const LbConfigPtr child = make_lb_config(OverrideHostConfig{});
  ClusterImplConfig config{ClusterName("c"), child, service, most};
  if (reporting) reporting->service = service;
  config.load_reporting = std::move(reporting);
  return make_lb_config(std::move(config));
}

LoadReporting reporting(LoadMetricChoice metrics = {}) {
  return {.server = kServer, .metrics = std::move(metrics)};
}

// Makes the child's picker complete on the first endpoint of `locality`. If `locality` is null, the
// picker's connection comes without an endpoint.
void choose(PolicyHarness& policy, const LocalityPtr& locality) {
  const auto backend = std::make_shared<const Connection>(Address("10.0.0.1:80"));
  ChosenEndpoint endpoint;
  if (locality != nullptr) endpoint = {locality, &locality->endpoints.front(), nullptr};
  policy.step(ChildStateChanged{ChildName("child"),
                                ConnectivityState::kReady,
                                absl::OkStatus(),
                                make_connection_picker(backend, endpoint),
                                policy.generation()});
}

// Picks, and then does the router's part: the call passes the gate and is tracked. A call that the
// gate refuses has no trackers.
Tracking call(const PolicyHarness& policy) {
  const PickResult result = policy.published()->picker->pick({});
  if (!std::holds_alternative<Complete>(result.outcome)) return {};
  const CallGate* const gate = result.trackers.gate();
  if (gate == nullptr) return Tracking(result.trackers);
  if (gate->enter()) return Tracking(result.trackers);
  static_cast<void>(gate->refuse());
  return {};
}

struct World {
  PolicyHarness policy(std::shared_ptr<LoadBook> of) {
    PolicyContext context;
    context.options.request_limits = limits;
    context.options.load_book = std::move(of);
    return PolicyHarness(make_cluster_impl(std::move(context)));
  }

  PolicyHarness policy() { return policy(book); }

  // Reads all loads that are not reported yet, and marks them as reported.
  std::vector<ClusterLoad> report() {
    const LoadReading reading =
        book->read(kServer, {.all = true}, Instant(std::chrono::seconds(1)));
    book->settle(kServer, reading.number);
    return reading.clusters;
  }

  // As report(), for a world with one locality. If nothing is to be reported, the load's locality
  // has no name.
  LocalityLoad only() {
    const std::vector<ClusterLoad> clusters = report();
    if (clusters.empty()) return {};
    REQUIRE(clusters.size() == 1);
    REQUIRE(clusters.front().localities.size() == 1);
    return clusters.front().localities.front();
  }

  std::shared_ptr<RequestLimits> limits = std::make_shared<RequestLimits>();
  std::shared_ptr<LoadBook> book = std::make_shared<LoadBook>(std::set<ServerId>{kServer});
};

std::ptrdiff_t trackers_of_a_pick(const PolicyHarness& policy) {
  const PickResult result = policy.published()->picker->pick({});
  return result.trackers.end() - result.trackers.begin();
}

}  // namespace

TEST_CASE("locality loads: nothing is counted where no server asks", "[lb][cluster_impl][C1]") {
  World world;
  const LocalityPtr here = locality_in("here");
  std::shared_ptr<LoadBook> book = world.book;
  std::optional<LoadReporting> asked;
  SECTION("the cluster has no lrs_server") {}
  SECTION("the runtime reports no load") {
    book = nullptr;
    asked = reporting();
  }
  SECTION("the server takes no reports") {
    asked = LoadReporting{.server = kServer + 1};
  }
  PolicyHarness policy = world.policy(book);
  policy.update(config_of(asked), nullptr, endpoints_in({here}, {{"all", kAll}}));
  choose(policy, here);
  CHECK(world.book->size() == 0);
  static_cast<void>(call(policy));
  policy.update(config_of(asked), nullptr, endpoints_in({here}));
  choose(policy, here);
  CHECK(trackers_of_a_pick(policy) == 1);  // Only the gate.
}

TEST_CASE("locality loads: calls count in their locality, by how they end",
          "[lb][cluster_impl][C3]") {
  World world;
  PolicyHarness policy = world.policy();
  const LocalityPtr here = locality_in("here");
  const LocalityPtr there = locality_in("there");
  policy.update(config_of(reporting()), nullptr, endpoints_in({here, there}));
  CHECK(world.report().empty());

  choose(policy, here);
  call(policy).end({0});
  call(policy).end({0});
  call(policy).end({14});
  call(policy).end({std::nullopt});  // The call never reached the endpoint.
  Tracking running = call(policy);
  choose(policy, there);
  call(policy).end({0});

  const std::vector<ClusterLoad> clusters = world.report();
  REQUIRE(clusters.size() == 1);
  CHECK(clusters[0].cluster == ClusterName("c"));
  CHECK(clusters[0].service == "eds");
  CHECK(clusters[0].localities ==
        std::vector<LocalityLoad>{
            {.locality = zone("here"), .issued = 5, .succeeded = 2, .failed = 2, .in_progress = 1},
            {.locality = zone("there"), .issued = 1, .succeeded = 1}});
  running.end({0});
  CHECK(world.only() == LocalityLoad{.locality = zone("here"), .succeeded = 1});
}

TEST_CASE("locality loads: drops count by category, those of the breaker without one",
          "[lb][cluster_impl][A32][C4]") {
  World world;
  PolicyHarness policy = world.policy();
  const LocalityPtr here = locality_in("here");
  policy.update(
      config_of(reporting(), "eds", /*most=*/1), nullptr, endpoints_in({here}, {{"lb", kAll}}));
  choose(policy, here);
  for (int i = 0; i < 3; ++i)
    static_cast<void>(call(policy));
  policy.update(config_of(reporting(), "eds", /*most=*/1), nullptr, endpoints_in({here}));
  choose(policy, here);
  const Tracking running = call(policy);
  static_cast<void>(call(policy));
  static_cast<void>(call(policy));

  const std::vector<ClusterLoad> clusters = world.report();
  REQUIRE(clusters.size() == 1);
  CHECK(clusters[0].drops == std::map<std::string, std::uint64_t>{{"lb", 3}});
  CHECK(clusters[0].breaker_drops == 2);
  REQUIRE(clusters[0].localities.size() == 1);
  CHECK(clusters[0].localities[0].issued == 1);  // Dropped calls were not issued.
}

TEST_CASE("locality loads: a call is counted to its end, whatever changes meanwhile",
          "[lb][cluster_impl][C3]") {
  World world;
  PolicyHarness policy = world.policy();
  const LocalityPtr here = locality_in("here");
  policy.update(config_of(reporting()), nullptr, endpoints_in({here}));
  choose(policy, here);
  Tracking running = call(policy);
  SECTION("the endpoints are sent again") {
    policy.update(config_of(reporting()), nullptr, endpoints_in({locality_in("here")}));
    choose(policy, here);  // The child's picker still has the former Locality object.
    call(policy).end({0});
    running.end({0});
    CHECK(world.only() == LocalityLoad{.locality = zone("here"), .issued = 2, .succeeded = 2});
  }
  SECTION("the locality goes") {
    policy.update(config_of(reporting()), nullptr, endpoints_in({locality_in("there")}));
    call(policy).end({0});  // The picker still has the former endpoints.
    running.end({0});
    CHECK(world.only() == LocalityLoad{.locality = zone("here"), .issued = 2, .succeeded = 2});
  }
  SECTION("other values of the endpoints are reported") {
    policy.update(config_of(reporting({.cpu_utilization = true})), nullptr, endpoints_in({here}));
    choose(policy, here);
    const LoadReport load{.cpu_utilization = 0.5};
    call(policy).end({0, &load});
    running.end({0, &load});  // Its cluster chose no values when it began.
    CHECK(world.only() ==
          LocalityLoad{
              .locality = zone("here"), .issued = 2, .succeeded = 2, .cpu_utilization = {1, 0.5}});
  }
  SECTION("the cluster's EDS service is another") {
    policy.update(config_of(reporting(), "other"), nullptr, endpoints_in({here}));
    choose(policy, here);
    call(policy).end({0});
    const std::vector<ClusterLoad> clusters = world.report();
    REQUIRE(clusters.size() == 2);
    CHECK(clusters[0].service == "eds");
    CHECK(clusters[0].localities[0].in_progress == 1);
    CHECK(clusters[1].service == "other");
    CHECK(clusters[1].localities[0].succeeded == 1);
  }
}

TEST_CASE("locality loads: a report has the EDS service only if CDS names one",
          "[lb][cluster_impl][C3]") {
  World world;
  PolicyHarness policy = world.policy();
  const LocalityPtr here = locality_in("here");
  const auto update = [&](const std::string& named) {
    // Without a service_name in CDS, the EDS resource has the cluster's name.
    ClusterImplConfig config{ClusterName("c"), make_lb_config(OverrideHostConfig{}), "c"};
    LoadReporting& asked = config.load_reporting.emplace();
    asked.server = kServer;
    asked.service = named;
    policy.update(make_lb_config(config), nullptr, endpoints_in({here}));
    choose(policy, here);
    call(policy).end({0});
  };
  update("");
  update("c");
  const std::vector<ClusterLoad> clusters = world.report();
  REQUIRE(clusters.size() == 2);
  CHECK(clusters[0].service.empty());
  CHECK(clusters[1].service == "c");
}

TEST_CASE("locality loads: a cluster that goes is forgotten after its last report",
          "[lb][cluster_impl][C3]") {
  World world;
  const LocalityPtr here = locality_in("here");
  {
    PolicyHarness policy = world.policy();
    policy.update(config_of(reporting()), nullptr, endpoints_in({here}));
    choose(policy, here);
    call(policy).end({0});
  }
  CHECK(world.book->size() == 1);
  CHECK(world.only() == LocalityLoad{.locality = zone("here"), .issued = 1, .succeeded = 1});
  CHECK(world.book->size() == 0);
}

TEST_CASE("locality loads: all callers of a cluster have one report, and lrs_server may go",
          "[lb][cluster_impl][C3]") {
  World world;
  const LocalityPtr here = locality_in("here");
  PolicyHarness one = world.policy();
  PolicyHarness two = world.policy();
  for (PolicyHarness* policy : {&one, &two}) {
    policy->update(config_of(reporting()), nullptr, endpoints_in({here}));
    choose(*policy, here);
    call(*policy).end({0});
  }
  CHECK(world.only() == LocalityLoad{.locality = zone("here"), .issued = 2, .succeeded = 2});
  two.update(config_of(std::nullopt), nullptr, endpoints_in({here}));
  choose(two, here);
  call(two).end({0});
  call(one).end({0});
  CHECK(world.only() == LocalityLoad{.locality = zone("here"), .issued = 1, .succeeded = 1});
}

TEST_CASE("locality loads: calls and drops do not count once no server takes them",
          "[lb][cluster_impl][C3][C4]") {
  const auto asked = GENERATE(std::optional<LoadReporting>(),
                              std::optional<LoadReporting>(LoadReporting{.server = kServer + 1}));
  World world;
  PolicyHarness policy = world.policy();
  const LocalityPtr here = locality_in("here");
  policy.update(config_of(reporting()), nullptr, endpoints_in({here}));
  choose(policy, here);
  call(policy).end({0});
  policy.update(config_of(asked), nullptr, endpoints_in({here}, {{"lb", kAll}}));
  static_cast<void>(call(policy));
  policy.update(config_of(asked), nullptr, endpoints_in({here}));
  call(policy).end({0});
  const std::vector<ClusterLoad> clusters = world.report();
  REQUIRE(clusters.size() == 1);
  CHECK(clusters[0].drops.empty());
  CHECK(clusters[0].localities ==
        std::vector<LocalityLoad>{{.locality = zone("here"), .issued = 1, .succeeded = 1}});
}

TEST_CASE("locality loads: each server gets the calls from the time when it was the cluster's",
          "[lb][cluster_impl][C3]") {
  World world;
  world.book = std::make_shared<LoadBook>(std::set<ServerId>{kServer, kServer + 1});
  PolicyHarness policy = world.policy();
  const EndpointsPtr endpoints = endpoints_in({locality_in("here")});
  const auto call_of = [&](ServerId server) {
    policy.update(config_of(LoadReporting{.server = server}), nullptr, endpoints);
    choose(policy, endpoints->priorities.front().localities.front());
    call(policy).end({0});
  };
  call_of(kServer);
  call_of(kServer + 1);
  call_of(kServer + 1);
  const auto issued = [&](ServerId server) {
    const LoadReading reading =
        world.book->read(server, {.all = true}, Instant(std::chrono::seconds(1)));
    REQUIRE(reading.clusters.size() == 1);
    REQUIRE(reading.clusters.front().localities.size() == 1);
    return reading.clusters.front().localities.front().issued;
  };
  CHECK(issued(kServer) == 1);
  CHECK(issued(kServer + 1) == 2);
}

TEST_CASE("locality loads: what is the same again makes no other picker, and no other breaker",
          "[lb][cluster_impl][A32][C3]") {
  using Texts = std::vector<std::string>;
  World world;
  PolicyHarness policy = world.policy();
  const LocalityPtr here = locality_in("here");
  const EndpointsPtr endpoints = endpoints_in({here});
  CHECK(policy.update(config_of(reporting()), nullptr, endpoints).front() == "breaker c 1024");
  choose(policy, here);
  CHECK(policy.update(config_of(reporting()), nullptr, endpoints) == Texts{"update child"});
  CHECK(policy.update(config_of(reporting()), nullptr, endpoints_in({here}, {{"lb", 1}})) ==
        Texts{"update child", "publish READY"});
}

TEST_CASE("locality loads: an endpoint that is in no locality counts without one",
          "[lb][cluster_impl][C3]") {
  World world;
  PolicyHarness policy = world.policy();
  policy.update(config_of(reporting()), nullptr, nullptr);
  choose(policy, nullptr);
  call(policy).end({0});
  CHECK(world.only() == LocalityLoad{.issued = 1, .succeeded = 1});
}

TEST_CASE("locality loads: many localities, each with its own count", "[lb][cluster_impl][C3]") {
  World world;
  PolicyHarness policy = world.policy();
  std::vector<LocalityPtr> localities;
  for (int i = 0; i < 20; ++i)
    localities.push_back(locality_in("z" + std::to_string(i)));
  policy.update(config_of(reporting()), nullptr, endpoints_in(localities));
  for (std::size_t i = 0; i < localities.size(); ++i) {
    choose(policy, localities[i]);
    for (std::size_t calls = 0; calls <= i; ++calls)
      call(policy).end({0});
  }
  const std::vector<ClusterLoad> clusters = world.report();
  REQUIRE(clusters.size() == 1);
  REQUIRE(clusters[0].localities.size() == localities.size());
  for (const LocalityLoad& load : clusters[0].localities)
    CHECK(load.succeeded == std::stoul(load.locality.zone.substr(1)) + 1);
}

TEST_CASE("locality loads: chosen values of endpoints are summed",
          "[lb][cluster_impl][A64][A85][C6]") {
  struct Row {
    const char* when;
    LoadMetricChoice choice;
    LocalityLoad load;  // Only its values are compared.
  };

  const MetricSum cpu{2, 0.75};
  const MetricSum a{2, 3};
  const MetricSum b{2, 7};
  const auto row = GENERATE_COPY(values<Row>({
      {"none", {}, {}},
      {"utilisations",
       {.cpu_utilization = true, .mem_utilization = true, .application_utilization = true},
       {.cpu_utilization = cpu, .mem_utilization = {2, 0.5}, .application_utilization = {1, 1}}},
      {"a name", {.named = {"a", "c"}}, {.named = {{"named_metrics.a", a}}}},
      {"all names",
       {.all_named = true},
       {.named = {{"named_metrics.a", a}, {"named_metrics.b", b}}}},
      {"all names, as A64 has them",
       {.all_named = true, .prefixed = false},
       {.named = {{"a", a}, {"b", b}}}},
  }));
  DYNAMIC_SECTION(row.when) {
    World world;
    PolicyHarness policy = world.policy();
    const LocalityPtr here = locality_in("here");
    policy.update(config_of(reporting(row.choice)), nullptr, endpoints_in({here}));
    choose(policy, here);
    using Map = LoadMetric::Map;
    for (const double times : {1.0, 2.0}) {
      const std::array<LoadMetric, 3> metrics{{{Map::kNamedMetrics, "a", times},
                                               {Map::kNamedMetrics, "b", 2 * times + 0.5},
                                               {Map::kRequestCost, "a", 100}}};
      const LoadReport report{.application_utilization = times - 1,
                              .cpu_utilization = times / 4,
                              .mem_utilization = 0.25,
                              .metrics = metrics};
      Tracking one = call(policy);
      CHECK(one.wants_load() == !row.choice.is_empty());
      one.end({.code = times > 1 ? 14 : 0, .load = &report});
    }
    call(policy).end({0});  // A call without a report.
    LocalityLoad wanted = row.load;
    wanted.locality = zone("here");
    wanted.issued = 3;
    wanted.succeeded = 2;
    wanted.failed = 1;
    CHECK(world.only() == wanted);
  }
}

}  // namespace locality_loads_test
