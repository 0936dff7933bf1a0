// SPDX-License-Identifier: Apache-2.0
//
// CallPlan — the calls that a load engine makes, and when.
//
//   LoadOptions ─▶ SidePlan ─ stdin ─▶ SidePlan of the side's process ─▶ OpenLoop
//                  └ CallPlan ─────────────── as one value ───────────────┘

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/load/payload.hpp"
#include "tools/load/report.hpp"
#include "tools/load/schedule.hpp"

namespace signalbox::tools {

struct CallPlan {
  std::string method;  ///< "/orders.v1.Orders/Place"; of HTTP, for people: "GET /orders/7".
  Payload request;
  std::vector<std::pair<std::string, std::string>> headers;
  std::chrono::nanoseconds call_timeout = std::chrono::seconds(5);
  std::size_t sessions = 0;  ///< Each session has a cookie jar; calls take turns. 0: no cookies.
  std::int64_t max_in_flight = 10'000;
  RateProfile profile;
  Arrivals arrivals = Arrivals::kPoisson;
  std::uint64_t seed = 1;
  ScheduleShare share;  ///< The calls of the schedule that this process makes.
  std::int64_t closed_loop_callers = kClosedLoopCallers;
  std::chrono::nanoseconds warmup{};
  /// The length of the measured part, which follows the warm-up.
  std::chrono::nanoseconds duration = std::chrono::seconds(10);
};

}  // namespace signalbox::tools
