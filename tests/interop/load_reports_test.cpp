// SPDX-License-Identifier: Apache-2.0
//
// Load reports (LRS) to an independent server: the sums of the reports equal the calls.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/e2e/loaded_backends.hpp"
#include "tests/e2e/runtime_world.hpp"
#include "tests/interop/peer_plane.hpp"

namespace signalbox::test {
namespace {

using std::chrono::seconds;

// The first interval of a cluster may be shorter by so much: it begins when the runtime knows the
// cluster, which may be after the server's response.
constexpr std::chrono::milliseconds kEarly(500);

const std::string kEverything = "envoy.lrs.supports_send_all_clusters";

// A target, its cluster with load reports, and one backend in each of two zones. The names of the
// target, the cluster and the EDS service begin alike.
struct Shop {
  explicit Shop(std::string shop) : name(std::move(shop)) {}

  std::string cluster() const { return name + "-cluster"; }

  std::string service() const { return name + "-service"; }

  std::string yaml() const {
    return absl::StrCat(listener_yaml(name, name),
                        routes_yaml(name, cluster()),
                        cluster_yaml(cluster(), service(), kSelf),
                        two_zones(service(), {backends[0].address()}, {backends[1].address()}));
  }

  void call_many(int times, const std::string& item) {
    for (int i = 0; i < times; ++i) {
      const Answer answer = call(channel, {.item = item});
      INFO(answer.text());
      CHECK(answer.ok() != absl::StartsWith(item, "fail"));
      ++made.issued;
      ++(answer.ok() ? made.succeeded : made.failed);
    }
  }

  LoadKey key(const std::string& zone) const { return {cluster(), service(), "r/" + zone + "/"}; }

  LoadSums sums_in(const std::vector<LoadRequest>& requests) const {
    auto books = books_of(requests);
    LoadSums sums = books[key("z0")];
    sums += books[key("z1")];
    return sums;
  }

  const std::string name;
  std::vector<Backend> backends = std::vector<Backend>(2);
  std::shared_ptr<grpc::ChannelInterface> channel;
  LoadSums made;
};

struct World {
  explicit World(const LoadAnswer& answer) {
    plane.start();
    plane.answer_loads(answer);
    plane.set("1", orders.yaml() + returns.yaml());
    runtime = start_runtime(options_for(plane.address()));
    orders.channel = runtime->channel("xds:///orders");
    returns.channel = runtime->channel("xds:///returns");
  }

  // Whether the runtime knows of every report that the server read that the report was written.
  bool is_settled() {
    const auto& requests = plane.wire().load_requests;
    const auto reports = std::count_if(
        requests.begin(), requests.end(), [](const LoadRequest& one) { return !one.node; });
    return metric(*runtime, "signalbox_lrs_reports_total") == static_cast<double>(reports);
  }

  PeerPlane plane;
  std::unique_ptr<Runtime> runtime;
  Shop orders{"orders"};
  Shop returns{"returns"};
};

// Whether `sums` are the calls, and for each cut no calls or those of the report at the cut, which
// was read and then reported again.
bool adds_up(const LoadSums& sums, LoadSums calls, const std::vector<LoadSums>& cuts) {
  if (cuts.empty()) return sums == calls;
  const std::vector<LoadSums> rest(cuts.begin() + 1, cuts.end());
  if (adds_up(sums, calls, rest)) return true;
  calls += cuts.front();
  return adds_up(sums, calls, rest);
}

std::vector<LoadSums> reports_at_cuts(const Wire& wire) {
  std::vector<LoadSums> cuts;
  for (const LoadRequest& request : wire.load_requests) {
    if (request.ends_stream) cuts.push_back(request.calls());
  }
  return cuts;
}

}  // namespace

TEST_CASE("interop: load reports have the calls by cluster, EDS service and locality",
          "[interop][lrs][A27][C1][C2][C3]") {
  World world({.clusters = {"orders-cluster", "returns-cluster"}});
  world.orders.call_many(30, "item");
  world.orders.call_many(7, "fail");
  world.returns.call_many(20, "item");
  world.returns.call_many(3, "fail");

  CHECK(world.plane.wait_for([&](const Wire& wire) {
    return world.orders.sums_in(wire.load_requests) == world.orders.made &&
           world.returns.sums_in(wire.load_requests) == world.returns.made;
  }));
  const auto& requests = world.plane.wire().load_requests;
  INFO(to_string(requests));
  auto books = books_of(requests);
  for (const Shop* shop : {&world.orders, &world.returns}) {
    CHECK(books[shop->key("z0")].issued == shop->backends[0].calls());
    CHECK(books[shop->key("z1")].issued == shop->backends[1].calls());
  }
  CHECK(books.size() == 4);
  CHECK(world.plane.wire().load_streams_opened == 1);

  REQUIRE(requests[0].node);
  CHECK(requests[0].node->id == kNodeId);
  CHECK(requests[0].node->features.contains(kEverything));
  CHECK(requests[0].clusters.empty());
  for (std::size_t i = 1; i < requests.size(); ++i) {
    CHECK_FALSE(requests[i].node);
    for (const LoadRequest::Cluster& cluster : requests[i].clusters) {
      CHECK(cluster.interval >= seconds(1) - kEarly);
      CHECK(cluster.drops == std::map<std::string, std::uint64_t>{{"", 0}});
    }
  }
}

TEST_CASE("interop: a second response changes the clusters and the interval of load reports",
          "[interop][lrs][A27][C2]") {
  World world({.clusters = {"orders-cluster"}, .interval = seconds(2)});
  world.orders.call_many(10, "item");
  world.returns.call_many(10, "item");
  REQUIRE(world.plane.wait_for([&](const Wire& wire) {
    return world.orders.sums_in(wire.load_requests) == world.orders.made;
  }));
  for (const LoadRequest& request : world.plane.wire().load_requests) {
    for (const LoadRequest::Cluster& cluster : request.clusters) {
      CHECK(cluster.name == "orders-cluster");
      CHECK(cluster.interval >= seconds(2) - kEarly);
    }
  }

  // The first report with the other cluster obeys the second response, and so do all later ones.
  world.plane.answer_loads({.clusters = {"returns-cluster"}, .interval = seconds(1)});
  const auto is_of_returns = [](const LoadRequest& request) {
    return std::ranges::any_of(request.clusters, [](const LoadRequest::Cluster& cluster) {
      return cluster.name == "returns-cluster";
    });
  };
  REQUIRE(eventually([&] {
    world.orders.call_many(1, "item");
    world.returns.call_many(1, "item");
    const auto& requests = world.plane.wire().load_requests;
    return std::ranges::any_of(requests, [&](const LoadRequest& request) {
      return is_of_returns(request) && request.clusters[0].interval < seconds(2);
    });
  }));
  const auto& requests = world.plane.wire().load_requests;
  INFO(to_string(requests));
  for (auto one = std::ranges::find_if(requests, is_of_returns); one != requests.end(); ++one) {
    for (const LoadRequest::Cluster& cluster : one->clusters) {
      CHECK(cluster.name == "returns-cluster");
      CHECK(cluster.interval >= seconds(1) - kEarly);
    }
  }

  // Calls that no response asked for meanwhile are in the first report that may have them.
  world.plane.answer_loads({.all_clusters = true});
  CHECK(world.plane.wait_for([&](const Wire& wire) {
    return world.orders.sums_in(wire.load_requests) == world.orders.made &&
           world.returns.sums_in(wire.load_requests) == world.returns.made;
  }));
  CHECK(world.plane.wire().load_streams_opened == 1);
}

TEST_CASE("interop: calls between two streams of load reports are reported once",
          "[interop][lrs][A27][C7]") {
  World world({.all_clusters = true});
  world.orders.call_many(10, "item");
  world.orders.call_many(2, "fail");
  REQUIRE(world.plane.wait_for([&](const Wire& wire) {
    return world.orders.sums_in(wire.load_requests) == world.orders.made;
  }));
  REQUIRE(eventually([&] { return world.is_settled(); }));

  world.plane.cut_loads();
  world.orders.call_many(15, "item");
  world.orders.call_many(4, "fail");
  CHECK(world.plane.wait_for([&](const Wire& wire) {
    return world.orders.sums_in(wire.load_requests) == world.orders.made;
  }));
  const Wire& wire = world.plane.wire();
  INFO(to_string(wire.load_requests));
  CHECK(wire.load_streams_opened == 2);
  // The new stream begins like the first one.
  const auto first = std::ranges::find_if(
      wire.load_requests, [](const LoadRequest& request) { return request.stream == 2; });
  REQUIRE(first != wire.load_requests.end());
  REQUIRE(first->node);
  CHECK(first->node->id == kNodeId);
  CHECK(first->clusters.empty());
}

TEST_CASE("interop: a stream cut at a report loses nothing, and doubles at most that report",
          "[interop][lrs][A27][C7]") {
  // The interval is long, so that no further report is written before the client knows of the cut.
  World world({.all_clusters = true, .interval = seconds(2)});
  world.orders.call_many(5, "item");
  constexpr int kCuts = 3;
  Traffic traffic(world.orders.channel, 2);
  for (int cut = 1; cut <= kCuts; ++cut) {
    REQUIRE(world.plane.wait_for([&](const Wire& wire) { return wire.load_streams_open == 1; }));
    world.plane.cut_loads_at_report();
    REQUIRE(world.plane.wait_for([&](const Wire& wire) { return wire.load_streams_opened > cut; }));
  }
  CHECK(traffic.finish() == std::vector<std::string>{});
  const std::uint64_t succeeded = world.orders.made.succeeded + traffic.completed();
  const LoadSums calls{.issued = succeeded, .succeeded = succeeded, .failed = 0};

  // The last report has no calls, so no further ones come.
  const bool is_told = world.plane.wait_for([&](const Wire& wire) {
    return adds_up(calls_of(wire.load_requests), calls, reports_at_cuts(wire)) &&
           wire.load_requests.back().calls() == LoadSums{};
  });
  const Wire& wire = world.plane.wire();
  INFO(to_string(wire.load_requests) << succeeded << " calls");
  CHECK(is_told);
  CHECK(reports_at_cuts(wire).size() == kCuts);
  CHECK(wire.load_streams_opened == kCuts + 1);
}

}  // namespace signalbox::test
