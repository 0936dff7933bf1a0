// SPDX-License-Identifier: Apache-2.0
#include "lb/load_stats.hpp"

#include <catch2/catch.hpp>

namespace signalbox::lb {
namespace {

const ClusterName kOrders{"orders"};
const LocalityName kEast{"r", "east", ""};
const LocalityName kWest{"r", "west", ""};

}  // namespace

TEST_CASE("load_stats: a locality's calls, since the last report", "[lb][cluster_impl][A27]") {
  LoadStore store;
  const auto load = store.of(kOrders, "service");
  const LocalityTracker east(load->locality(kEast));
  const LocalityTracker west(load->locality(kWest));
  for (int i = 0; i < 6; ++i)
    east.begun();
  west.begun();
  east.ended({0});
  east.ended({14});
  east.ended({1});
  // It never reached its endpoint.
  east.ended({});
  CHECK(store.take() ==
        std::vector<ClusterLoad>{
            {kOrders,
             "service",
             {{kEast, {.in_progress = 2, .issued = 5, .succeeded = 1, .errored = 2}},
              {kWest, {.in_progress = 1, .issued = 1}}},
             {},
             0}});
  east.ended({0});
  west.ended({});
  CHECK(store.take() ==
        std::vector<ClusterLoad>{
            {kOrders, "service", {{kEast, {.in_progress = 1, .succeeded = 1}}}, {}, 0}});

  SECTION("what was issued and proved unsent after a report is taken off the next") {
    west.begun();
    CHECK(store.take().front().localities.at(kWest).issued == 0);
    west.begun();
    CHECK(store.take().front().localities.at(kWest).issued == 1);
  }
}

TEST_CASE("load_stats: drops by category, and in all", "[lb][cluster_impl][A37-30][A32]") {
  LoadStore store;
  const auto load = store.of(kOrders, "");
  load->drops("lb")->add(0, 3);
  load->drops("throttle")->add(0, 1);
  load->uncategorised_drops()->add(0, 2);
  const auto told = store.take();
  REQUIRE(told.size() == 1);
  CHECK(told[0].dropped == std::map<std::string, std::uint64_t>{{"lb", 3}, {"throttle", 1}});
  CHECK(told[0].total_dropped == 6);
  load->drops("lb")->add(0, 1);
  const auto next = store.take();
  CHECK(next[0].dropped == std::map<std::string, std::uint64_t>{{"lb", 1}});
  CHECK(next[0].total_dropped == 1);
}

TEST_CASE("load_stats: who keeps the count of a category counts on after a report",
          "[lb][cluster_impl][A37-30]") {
  LoadStore store;
  const auto load = store.of(kOrders, "");
  const EventCountPtr lb = load->drops("lb");
  for (int report = 0; report < 3; ++report) {
    lb->add(0, 2);
    const ClusterLoad told = load->take();
    CHECK(told.dropped == std::map<std::string, std::uint64_t>{{"lb", 2}});
    CHECK(told.total_dropped == 2);
  }
}

TEST_CASE("load_stats: all who serve a cluster share its counts", "[lb][cluster_impl][A27]") {
  LoadStore store;
  const auto load = store.of(kOrders, "service");
  CHECK(store.of(kOrders, "service") == load);
  CHECK(store.of(kOrders, "other") != load);
  CHECK(load->locality(kEast) == load->locality(kEast));
  CHECK(load->drops("lb") == load->drops("lb"));
}

TEST_CASE("load_stats: what nobody counts any more is told once, and forgotten",
          "[lb][cluster_impl][A27]") {
  LoadStore store;
  auto load = store.of(kOrders, "service");
  load->drops("lb")->add(0, 1);
  auto east = std::make_unique<LocalityTracker>(load->locality(kEast));
  east->begun();
  load.reset();
  // A call is under way: it is still to be told of.
  REQUIRE(store.take().size() == 1);
  east->ended({0});
  east.reset();
  const auto last = store.take();
  REQUIRE(last.size() == 1);
  CHECK(last[0].localities.at(kEast) == LocalityLoad{.succeeded = 1});
  CHECK(store.take().empty());
}

}  // namespace signalbox::lb
