// SPDX-License-Identifier: Apache-2.0
#include "channel/status_of.hpp"

#include <memory>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <grpcpp/grpcpp.h>

#include "actors/io/grpc_connector.hpp"
#include "lb/pick/stream_lanes.hpp"
#include "tests/support/printed.hpp"
#include "tests/support/xds_resources.hpp"

namespace signalbox::channel {
namespace {

using actors::ClusterPlace;
using actors::SubchannelPiece;
using actors::TargetPieces;
using std::chrono::seconds;

const Moment kNow{Instant(seconds(100)), WallTime(seconds(1'000'000))};

WallTime at(int second) {
  return WallTime(seconds(1'000'000 - 100 + second));
}

ClusterConfigPtr leaf(std::shared_ptr<const Cluster> cluster, EndpointsPtr endpoints) {
  return std::make_shared<const ClusterConfig>(
      ClusterConfig{std::move(cluster), LeafEndpoints{std::move(endpoints), "not resolved yet"}});
}

TargetPieces pieces_of(std::map<ClusterName, absl::StatusOr<ClusterConfigPtr>> clusters,
                       const std::vector<std::string>& on_top) {
  TargetPieces pieces;
  ClusterManagerConfig tree;
  for (const std::string& name : on_top)
    tree.children[ClusterName(name)] = {make_lb_config(CdsConfig{ClusterName(name)})};
  XdsConfig xds;
  xds.clusters = std::move(clusters);
  pieces.applied.config = make_lb_config(std::move(tree));
  pieces.applied.xds = std::make_shared<const XdsConfig>(std::move(xds));
  pieces.applied_at = Instant(seconds(10));
  pieces.generation = 3;
  pieces.state = ConnectivityState::kReady;
  pieces.since = Instant(seconds(20));
  pieces.ready = true;
  return pieces;
}

TargetStatus status(const TargetPieces& pieces, AggregateMode mode = AggregateMode::kPriority) {
  return status_of("xds:///orders", pieces, mode, kNow);
}

}  // namespace

TEST_CASE("status: a target without a configuration says why", "[channel][status]") {
  TargetPieces pieces;
  pieces.failure = absl::NotFoundError("no listener");
  pieces.state = ConnectivityState::kTransientFailure;
  pieces.since = Instant(seconds(90));
  const TargetStatus shown = status(pieces);
  CHECK(shown.name == "xds:///orders");
  CHECK(shown.state == ConnectivityState::kTransientFailure);
  CHECK(shown.since == at(90));
  CHECK(shown.failure == absl::NotFoundError("no listener"));
  CHECK_FALSE(shown.ready);
  CHECK_FALSE(shown.configured);
  CHECK(shown.clusters.empty());
}

TEST_CASE("status: endpoints have the states of their subchannels", "[channel][status]") {
  auto pieces = pieces_of({{ClusterName("c"),
                            leaf(tests::eds_cluster("c", "service"),
                                 tests::endpoints({{tests::locality("r1", {"a:1", "b:1"}),
                                                    tests::locality("r2", {"c:1"})},
                                                   {tests::locality("r1", {"d:1"})}}))}},
                          {"c"});
  const ClusterPlace place{ClusterName("c"), {}};
  const auto connection = std::make_shared<const Connection>(Address("a:1"));
  const Use one(*connection);
  const Use two(*connection);
  pieces.subchannels[place] = {
      {Address("a:1"),
       {.state = EndpointState::kReady,
        .raw = ConnectivityState::kReady,
        .since = Instant(seconds(30)),
        .connection = connection}},
      {Address("b:1"),
       {.state = EndpointState::kEjected,
        .raw = ConnectivityState::kReady,
        .since = Instant(seconds(95)),
        .why = absl::UnavailableError("too many failures"),
        .ejections = 2}},
      {Address("old:1"), {.state = EndpointState::kReady}},
  };
  pieces.priorities[place] = std::make_shared<const PrioritiesSeen>(PrioritiesSeen{
      ClusterName("c"),
      {},
      {{ChildName("child0"), true, ConnectivityState::kReady, Instant(seconds(30)), {}, {}},
       {.name = ChildName("child1")}},
      0});

  const TargetStatus shown = status(pieces);
  CHECK(shown.ready);
  CHECK(shown.generation == 3);
  CHECK(shown.configured == at(10));
  REQUIRE(shown.clusters.size() == 1);
  const ClusterStatus& cluster = shown.clusters[0];
  CHECK(cluster.kind == ClusterKind::kEds);
  CHECK(cluster.service_name == "service");
  CHECK(cluster.max_requests == kDefaultMaxRequests);
  CHECK(cluster.active == 0);
  REQUIRE(cluster.priorities.size() == 2);
  const PriorityStatus& first = cluster.priorities[0];
  CHECK(first.started);
  CHECK(first.state == ConnectivityState::kReady);
  CHECK(first.since == at(30));
  REQUIRE(first.localities.size() == 2);
  CHECK(first.localities[0].name.region == "r1");
  const AddressStatus& a = first.localities[0].endpoints.at(0).addresses.at(0);
  CHECK(a.state == EndpointState::kReady);
  CHECK(a.since == at(30));
  CHECK(a.calls_in_flight == 2);
  const AddressStatus& b = first.localities[0].endpoints.at(1).addresses.at(0);
  CHECK(b.state == EndpointState::kEjected);
  CHECK(b.reason == absl::UnavailableError("too many failures"));
  CHECK(b.ejections == 2);
  CHECK(b.calls_in_flight == 0);
  const AddressStatus& c = first.localities[1].endpoints.at(0).addresses.at(0);
  CHECK(c.address == Address("c:1"));
  CHECK_FALSE(c.state);
  CHECK_FALSE(c.since);
  CHECK_FALSE(cluster.priorities[1].started);
}

TEST_CASE("status: an address with several connections has the calls of all of them",
          "[channel][status]") {
  const auto connection = [] {
    return std::make_shared<const actors::GrpcConnection>(
        Address("a:1"),
        grpc::CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials()),
        "a:1",
        nullptr,
        1U);
  };
  const auto old = connection();
  const auto young = connection();
  const auto lanes = std::make_shared<lb::StreamLanes>(nullptr, [] {});
  lanes->add(1, old, false);
  lanes->add(2, young, false);
  const auto shown_to_picks = std::make_shared<const actors::GrpcConnection>(old, lanes);
  const Use one(*old);
  const Use two(*young);
  const Use waiting(*shown_to_picks);

  auto pieces = pieces_of({{ClusterName("c"),
                            leaf(tests::eds_cluster("c", "service"),
                                 tests::endpoints({{tests::locality("r", {"a:1"})}}))}},
                          {"c"});
  pieces.subchannels[{ClusterName("c"), {}}] = {{Address("a:1"),
                                                 {.state = EndpointState::kReady,
                                                  .raw = ConnectivityState::kReady,
                                                  .connection = shown_to_picks}}};
  const TargetStatus shown = status(pieces);
  REQUIRE(shown.clusters.size() == 1);
  const PriorityStatus& priority = shown.clusters[0].priorities.at(0);
  CHECK(priority.localities.at(0).endpoints.at(0).addresses.at(0).calls_in_flight == 2);
}

TEST_CASE("status: a leaf below an aggregate is not the leaf that is used directly",
          "[channel][status]") {
  const auto c =
      leaf(tests::eds_cluster("c", "s"), tests::endpoints({{tests::locality("r", {"a:1"})}}));
  const auto all = std::make_shared<const ClusterConfig>(
      ClusterConfig{tests::aggregate("all", {"c", "gone"}),
                    AggregateLeaves{{ClusterName("c"), ClusterName("gone")}}});
  auto pieces = pieces_of({{ClusterName("c"), c},
                           {ClusterName("all"), all},
                           {ClusterName("gone"), absl::NotFoundError("no such cluster")}},
                          {"c", "all"});
  const ClusterPlace below{ClusterName("c"), ClusterName("all")};
  pieces.subchannels[below] = {{Address("a:1"),
                                {.state = EndpointState::kTransientFailure,
                                 .raw = ConnectivityState::kTransientFailure,
                                 .since = Instant(seconds(99)),
                                 .why = absl::UnavailableError("refused")}}};
  pieces.loads[{below, 0}] = 60;
  const auto mode = GENERATE(AggregateMode::kPriority, AggregateMode::kTiered);
  const TargetStatus shown = status(pieces, mode);
  REQUIRE(shown.clusters.size() == 4);
  CHECK(shown.clusters[0].kind == ClusterKind::kAggregate);
  CHECK(shown.clusters[0].mode == mode);
  CHECK(shown.clusters[0].leaves ==
        std::vector<ClusterName>{ClusterName("c"), ClusterName("gone")});
  CHECK(shown.clusters[0].max_requests == 0);

  const ClusterStatus& under = shown.clusters[1];
  CHECK(under.name == ClusterName("c"));
  CHECK(under.aggregate == ClusterName("all"));
  CHECK(under.priorities.at(0).load_percent == 60);
  // A priority without a priority policy has the state of its best address.
  CHECK(under.priorities[0].started);
  CHECK(under.priorities[0].state == ConnectivityState::kTransientFailure);
  CHECK(under.priorities[0].since == at(99));
  CHECK(under.priorities[0].reason == absl::UnavailableError("refused"));

  CHECK(shown.clusters[2].kind == ClusterKind::kFailed);
  CHECK(shown.clusters[2].failure == absl::NotFoundError("no such cluster"));
  CHECK(shown.clusters[3].aggregate.empty());
  CHECK_FALSE(shown.clusters[3].priorities.at(0).started);
  CHECK_FALSE(shown.clusters[3].priorities[0].load_percent);
}

TEST_CASE("status: a piece of an older configuration cannot harm", "[channel][status]") {
  auto pieces = pieces_of({{ClusterName("c"), leaf(tests::dns_cluster("c", "host:80"), nullptr)}},
                          {"c", "missing"});
  pieces.priorities[ClusterPlace{ClusterName("c"), {}}] = std::make_shared<const PrioritiesSeen>(
      PrioritiesSeen{ClusterName("c"), {}, {{.name = ChildName("child0"), .started = true}}, 0});
  const TargetStatus shown = status(pieces);
  REQUIRE(shown.clusters.size() == 2);
  CHECK(shown.clusters[0].kind == ClusterKind::kDns);
  CHECK(shown.clusters[0].service_name == "host:80");
  CHECK(shown.clusters[0].failure == absl::UnavailableError("not resolved yet"));
  CHECK(shown.clusters[0].priorities.empty());
  CHECK_FALSE(shown.clusters[0].active);
  CHECK(shown.clusters[1].kind == ClusterKind::kFailed);
}

TEST_CASE("status: a locality with endpoints of several healths is listed once",
          "[channel][status]") {
  Locality degraded;
  degraded.name.region = "r";
  degraded.endpoints.push_back(
      {.addresses = {Address("b:1")}, .health = HealthStatus::kDegraded, .weight = 5});
  Endpoints endpoints;
  endpoints.priorities.push_back({.localities = {tests::locality("r", {"a:1"})},
                                  .degraded = {std::make_shared<const Locality>(degraded)}});
  const auto pieces = pieces_of(
      {{ClusterName("c"),
        leaf(tests::eds_cluster("c", "s"), std::make_shared<const Endpoints>(endpoints))}},
      {"c"});
  const TargetStatus shown = status(pieces);
  const auto& localities = shown.clusters.at(0).priorities.at(0).localities;
  REQUIRE(localities.size() == 1);
  REQUIRE(localities[0].endpoints.size() == 2);
  CHECK(localities[0].endpoints[1].eds_health == HealthStatus::kDegraded);
  CHECK(localities[0].endpoints[1].weight == 5);
}

TEST_CASE("status: a change of priority has its calendar time", "[channel][status]") {
  const PriorityChange change =
      status_of(actors::ChangeLog::Change{4,
                                          "xds:///orders",
                                          {.cluster = ClusterName("c"),
                                           .aggregate = ClusterName("all"),
                                           .at = Instant(seconds(50)),
                                           .from = 0,
                                           .to = 1,
                                           .from_name = ChildName("near"),
                                           .to_name = ChildName("far"),
                                           .reason = PriorityChangeReason::kTimedOut,
                                           .details = "refused",
                                           .without = seconds(2),
                                           .window_left = seconds(3)}},
                kNow);
  CHECK(change.number == 4);
  CHECK(change.at == at(50));
  CHECK(change.target == "xds:///orders");
  CHECK(change.aggregate == ClusterName("all"));
  CHECK(change.from == 0);
  CHECK(change.to_name == "far");
  CHECK(to_string(change.reason) == "timed out");
  CHECK(change.details == "refused");
  CHECK(change.without == seconds(2));
  CHECK(change.window_left == seconds(3));
}

TEST_CASE("status: each reason has its word", "[channel][status]") {
  CHECK(to_string(PriorityChangeReason::kFirst) == "first");
  CHECK(to_string(PriorityChangeReason::kFailed) == "failed");
  CHECK(to_string(PriorityChangeReason::kRecovered) == "recovered");
  CHECK(to_string(PriorityChangeReason::kReconfigured) == "reconfigured");
  CHECK(to_string(PriorityChangeReason::kLost) == "lost");
}

}  // namespace signalbox::channel
