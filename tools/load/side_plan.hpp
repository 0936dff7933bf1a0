// SPDX-License-Identifier: Apache-2.0
//
// SidePlan — the orders for a process of one side, and the lines that it and its parent exchange.
//
//   load ─ stdin ─▶ {plan} · {"go": NS} · {"act": …} · {"place": …} · {"stop": true} ─▶ side
//   load ◀─ stdout ─ {"ready": true} or {"error": …} · {"place": …} · {"second": …} · {"done": …}
//
// With SidePlan::is_live there are also lines {"live": …} to the parent. With --reflection, the
// line "ready" has the side's request: {"payload", "is_streaming"}.
//
// Every line is one JSON object. Instants are nanoseconds of the steady clock, which all processes
// of a machine share. A side gets the line of an act before the act is done. The signalbox side
// reports the place of each endpoint. The parent passes the places on to the grpc side, which
// cannot know them.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include <nlohmann/json.hpp>

#include "tools/load/call_plan.hpp"
#include "tools/load/http_request.hpp"
#include "tools/load/payload.hpp"
#include "tools/load/recorder.hpp"

namespace signalbox::tools {

inline constexpr const char* kSignalboxSide = "signalbox";
inline constexpr const char* kGrpcSide = "grpc";

struct SidePlan {
  std::string side;  ///< kSignalboxSide or kGrpcSide.
  std::string target;
  std::string bootstrap;  ///< The bootstrap's JSON; empty: the environment gives it.
  CallPlan calls;
  std::optional<HttpRequest> http;  ///< Set: HTTP requests in place of gRPC calls.
  /// With --reflection, the request as JSON: the side asks the target for the method's types, and
  /// fills `calls.request`.
  std::optional<std::string> reflected_data;
  std::chrono::nanoseconds start_timeout = std::chrono::seconds(20);
  std::uint64_t lateness_limit_ns = kMostLatenessP99Ns;
  bool is_live = false;  ///< The process reports its LiveCounts, in lines {"live": …}.
  std::string result;    ///< The file that the side writes its LoadSide to.
};

nlohmann::json side_plan_json(const SidePlan& plan);
absl::StatusOr<SidePlan> read_side_plan(const std::string& line);

/// {"payload", "is_streaming"}
nlohmann::json request_json(const Payload& request);
absl::StatusOr<Payload> request_of_json(const nlohmann::json& json);

/// {"address", "cluster", "priority", "rank"}
nlohmann::json place_json(const std::string& address, const RankedPlace& place);
std::pair<std::string, RankedPlace> place_of_json(const nlohmann::json& json);

nlohmann::json second_json(const LoadSecond& second);
LoadSecond second_of_json(const nlohmann::json& json);

}  // namespace signalbox::tools
