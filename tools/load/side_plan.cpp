// SPDX-License-Identifier: Apache-2.0
#include "tools/load/side_plan.hpp"

#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace signalbox::tools {
namespace {

using Json = nlohmann::json;

std::chrono::nanoseconds ns_of(const Json& json, const char* name) {
  return std::chrono::nanoseconds(json.at(name).get<std::int64_t>());
}

Json http_json(const std::optional<HttpRequest>& http) {
  if (!http) return nullptr;
  return {{"verb", http->verb}, {"host", http->host}, {"path", http->path}};
}

std::optional<HttpRequest> http_of_json(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return HttpRequest{.verb = json.at("verb").get<std::string>(),
                     .host = json.at("host").get<std::string>(),
                     .path = json.at("path").get<std::string>()};
}

Json profile_json(const RateProfile& profile) {
  Json json = Json::array();
  for (const RatePart& part : profile)
    json.push_back({part.from, part.to, part.seconds});
  return json;
}

RateProfile profile_of_json(const Json& json) {
  RateProfile profile;
  for (const Json& part : json)
    profile.push_back({.from = part.at(0), .to = part.at(1), .seconds = part.at(2)});
  return profile;
}

using Headers = decltype(CallPlan::headers);

// A header that ends with "-bin" has bytes, which are no JSON text, as its value.
Json headers_json(const Headers& headers) {
  Json json = Json::array();
  for (const auto& [name, value] : headers)
    json.push_back({name, absl::Base64Escape(value)});
  return json;
}

absl::StatusOr<Headers> headers_of_json(const Json& json) {
  Headers headers;
  for (const Json& header : json) {
    std::string value;
    if (!absl::Base64Unescape(header.at(1).get<std::string>(), &value))
      return absl::InvalidArgumentError("the value of a header is no base64");
    headers.emplace_back(header.at(0).get<std::string>(), std::move(value));
  }
  return headers;
}

Json calls_json(const CallPlan& calls) {
  return {{"method", calls.method},
          {"request", request_json(calls.request)},
          {"headers", headers_json(calls.headers)},
          {"call_timeout_ns", calls.call_timeout.count()},
          {"sessions", calls.sessions},
          {"max_in_flight", calls.max_in_flight},
          {"profile", profile_json(calls.profile)},
          {"is_even", calls.arrivals == Arrivals::kEven},
          {"seed", calls.seed},
          {"share", {calls.share.index, calls.share.count}},
          {"closed_loop_callers", calls.closed_loop_callers},
          {"warmup_ns", calls.warmup.count()},
          {"duration_ns", calls.duration.count()}};
}

absl::StatusOr<CallPlan> calls_of_json(const Json& json) {
  CallPlan calls;
  json.at("method").get_to(calls.method);
  auto request = request_of_json(json.at("request"));
  if (!request.ok()) return request.status();
  calls.request = *std::move(request);
  auto headers = headers_of_json(json.at("headers"));
  if (!headers.ok()) return headers.status();
  calls.headers = *std::move(headers);
  calls.call_timeout = ns_of(json, "call_timeout_ns");
  json.at("sessions").get_to(calls.sessions);
  json.at("max_in_flight").get_to(calls.max_in_flight);
  calls.profile = profile_of_json(json.at("profile"));
  calls.arrivals = json.at("is_even").get<bool>() ? Arrivals::kEven : Arrivals::kPoisson;
  json.at("seed").get_to(calls.seed);
  json.at("share").at(0).get_to(calls.share.index);
  json.at("share").at(1).get_to(calls.share.count);
  json.at("closed_loop_callers").get_to(calls.closed_loop_callers);
  calls.warmup = ns_of(json, "warmup_ns");
  calls.duration = ns_of(json, "duration_ns");
  return calls;
}

}  // namespace

Json side_plan_json(const SidePlan& plan) {
  return {{"side", plan.side},
          {"target", plan.target},
          {"bootstrap", plan.bootstrap},
          {"calls", calls_json(plan.calls)},
          {"http", http_json(plan.http)},
          {"reflected_data", plan.reflected_data ? Json(*plan.reflected_data) : Json(nullptr)},
          {"start_timeout_ns", plan.start_timeout.count()},
          {"lateness_limit_ns", plan.lateness_limit_ns},
          {"is_live", plan.is_live},
          {"result", plan.result}};
}

absl::StatusOr<SidePlan> read_side_plan(const std::string& line) {
  try {
    const Json json = Json::parse(line);
    SidePlan plan;
    json.at("side").get_to(plan.side);
    json.at("target").get_to(plan.target);
    json.at("bootstrap").get_to(plan.bootstrap);
    auto calls = calls_of_json(json.at("calls"));
    if (!calls.ok()) return calls.status();
    plan.calls = *std::move(calls);
    plan.http = http_of_json(json.at("http"));
    if (!json.at("reflected_data").is_null())
      plan.reflected_data = json.at("reflected_data").get<std::string>();
    plan.start_timeout = ns_of(json, "start_timeout_ns");
    json.at("lateness_limit_ns").get_to(plan.lateness_limit_ns);
    json.at("is_live").get_to(plan.is_live);
    json.at("result").get_to(plan.result);
    return plan;
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("no plan of a side: ", error.what()));
  }
}

Json request_json(const Payload& request) {
  // Bytes are no JSON text, so they travel as base64.
  return {{"payload", absl::Base64Escape(request.bytes)}, {"is_streaming", request.is_streaming}};
}

absl::StatusOr<Payload> request_of_json(const Json& json) {
  Payload request;
  json.at("is_streaming").get_to(request.is_streaming);
  if (!absl::Base64Unescape(json.at("payload").get<std::string>(), &request.bytes))
    return absl::InvalidArgumentError("the request's payload is no base64");
  return request;
}

Json place_json(const std::string& address, const RankedPlace& place) {
  return {{"address", address},
          {"cluster", place.place.cluster},
          {"priority", place.place.priority ? Json(*place.place.priority) : Json(nullptr)},
          {"rank", place.rank ? Json(*place.rank) : Json(nullptr)}};
}

std::pair<std::string, RankedPlace> place_of_json(const Json& json) {
  const auto number = [&json](const char* name) -> std::optional<std::uint32_t> {
    if (json.at(name).is_null()) return std::nullopt;
    return json.at(name).get<std::uint32_t>();
  };
  return {
      json.at("address").get<std::string>(),
      {.place = {.cluster = json.at("cluster").get<std::string>(), .priority = number("priority")},
       .rank = number("rank")}};
}

Json second_json(const LoadSecond& second) {
  Json latencies = Json::array();
  for (const LoadBucket& bucket : second.latencies)
    latencies.push_back({bucket.bucket, bucket.count});
  return {{"sent", second.sent},
          {"dropped", second.dropped},
          {"ok", second.ok},
          {"failed", second.failed},
          {"p50_ns", second.p50_ns},
          {"p99_ns", second.p99_ns},
          {"max_ns", second.max_ns},
          {"latencies", std::move(latencies)}};
}

LoadSecond second_of_json(const Json& json) {
  LoadSecond second;
  json.at("sent").get_to(second.sent);
  json.at("dropped").get_to(second.dropped);
  json.at("ok").get_to(second.ok);
  json.at("failed").get_to(second.failed);
  json.at("p50_ns").get_to(second.p50_ns);
  json.at("p99_ns").get_to(second.p99_ns);
  json.at("max_ns").get_to(second.max_ns);
  for (const Json& bucket : json.at("latencies"))
    second.latencies.push_back(
        {.bucket = bucket.at(0).get<std::uint32_t>(), .count = bucket.at(1).get<std::uint64_t>()});
  return second;
}

}  // namespace signalbox::tools
