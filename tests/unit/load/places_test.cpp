// SPDX-License-Identifier: Apache-2.0
#include "tools/load/places.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::tools {
namespace {

PriorityStatus priority_of(const std::vector<std::string>& addresses) {
  LocalityStatus locality;
  for (const std::string& address : addresses) {
    EndpointStatus endpoint;
    endpoint.addresses.emplace_back().address = Address(address);
    locality.endpoints.push_back(endpoint);
  }
  PriorityStatus priority;
  priority.localities.push_back(locality);
  return priority;
}

ClusterStatus leaf(const std::string& name,
                   const std::string& aggregate,
                   const std::vector<PriorityStatus>& priorities) {
  ClusterStatus cluster;
  cluster.name = ClusterName(name);
  cluster.aggregate = ClusterName(aggregate);
  cluster.priorities = priorities;
  return cluster;
}

RuntimeStatus status_of(const std::vector<ClusterStatus>& clusters) {
  TargetStatus target;
  target.name = "xds:///orders";
  target.clusters = clusters;
  RuntimeStatus status;
  status.targets.push_back(target);
  return status;
}

RankedPlace place(const char* cluster, std::uint32_t priority, std::uint32_t rank) {
  return {.place = {.cluster = cluster, .priority = priority}, .rank = rank};
}

}  // namespace

TEST_CASE("places: an aggregate's order outranks priorities", "[load][places]") {
  ClusterStatus aggregate;
  aggregate.name = ClusterName("all");
  aggregate.kind = ClusterKind::kAggregate;
  aggregate.leaves = {ClusterName("near"), ClusterName("far")};
  const RuntimeStatus status =
      status_of({aggregate,
                 leaf("far", "all", {priority_of({"c:1"})}),
                 leaf("near", "all", {priority_of({"a:1"}), priority_of({"b:1", "b:2"})})});
  const auto places = places_of(status, "xds:///orders");
  CHECK(places.size() == 4);
  CHECK(places.at("a:1") == place("near", 0, 0));
  CHECK(places.at("b:2") == place("near", 1, 1));
  CHECK(places.at("c:1") == place("far", 0, 1000));
}

TEST_CASE("places: an address counts for its best place, and another target for none",
          "[load][places]") {
  const RuntimeStatus status =
      status_of({leaf("orders", "", {priority_of({"a:1"}), priority_of({"a:1", "b:1"})})});
  CHECK(places_of(status, "xds:///orders").at("a:1") == place("orders", 0, 0));
  CHECK(places_of(status, "xds:///orders").at("b:1") == place("orders", 1, 1));
  CHECK(places_of(status, "xds:///shop").empty());
}

TEST_CASE("places: an endpoint's address is its peer's, without gRPC's scheme", "[load][places]") {
  struct Row {
    const char* peer;
    const char* address;
  };

  const auto row = GENERATE(values<Row>({{"ipv4:127.0.0.1:40001", "127.0.0.1:40001"},
                                         {"ipv6:%5B::1%5D:40001", "[::1]:40001"},
                                         {"unix:/run/orders.sock", "unix:/run/orders.sock"},
                                         {"xds:///orders", ""},
                                         {"", ""}}));
  CHECK(address_of_peer(row.peer) == row.address);
}

}  // namespace signalbox::tools
