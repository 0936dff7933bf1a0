// SPDX-License-Identifier: Apache-2.0
#include "tools/load/side_plan.hpp"

#include <chrono>
#include <string>

#include <catch2/catch.hpp>

namespace signalbox::tools {
namespace {

// A plan in which no field has its default value.
SidePlan example() {
  SidePlan plan;
  plan.side = kGrpcSide;
  plan.target = "xds:///orders";
  plan.bootstrap = "{}";
  plan.calls.method = "/orders.v1.Orders/Place";
  plan.calls.request = {.bytes = std::string("\0\xff", 2), .is_streaming = true};
  plan.calls.headers = {{"x-user", "ada"}, {"trace-bin", "\xff"}};
  plan.calls.call_timeout = std::chrono::seconds(7);
  plan.calls.sessions = 3;
  plan.calls.max_in_flight = 9;
  plan.calls.profile = *parse_rate("0.1..20/3s,7");
  plan.calls.arrivals = Arrivals::kEven;
  plan.calls.seed = 42;
  plan.calls.share = {.index = 1, .count = 2};
  plan.calls.closed_loop_callers = 25;
  plan.calls.warmup = std::chrono::seconds(2);
  plan.calls.duration = std::chrono::seconds(30);
  plan.http = HttpRequest{.verb = "GET", .host = "shop", .path = "/orders/7"};
  plan.reflected_data = "{}";
  plan.start_timeout = std::chrono::seconds(8);
  plan.lateness_limit_ns = 5;
  plan.is_live = true;
  plan.result = "/proc/1/fd/3";
  return plan;
}

}  // namespace

TEST_CASE("side plan: a side reads the plan that its parent wrote", "[load][side_plan]") {
  const SidePlan plan = example();
  const auto read = read_side_plan(side_plan_json(plan).dump());
  REQUIRE(read.status().ToString() == "OK");
  CHECK(side_plan_json(*read) == side_plan_json(plan));
  CHECK(read->calls.request.bytes == plan.calls.request.bytes);
  CHECK(read->calls.headers == plan.calls.headers);
  CHECK(read->calls.share.index == 1);
  REQUIRE(read->calls.profile.size() == 2);
  CHECK(read->calls.profile[0].from == 0.1);
  CHECK(read->calls.profile[0].seconds == 3);
  CHECK(read->calls.profile[1].to == 7);
}

TEST_CASE("side plan: a line that is no plan is refused", "[load][side_plan]") {
  CHECK_THAT(std::string(read_side_plan("{}").status().message()),
             Catch::StartsWith("no plan of a side: "));
}

}  // namespace signalbox::tools
