// SPDX-License-Identifier: Apache-2.0
//
// gRFC A31's timeouts from end to end: LDS and RDS set them, the drop-in channel obeys, the server
// is told. The gRFC's examples have seconds. The tests have minutes: no machine is that slow.
#include <array>
#include <chrono>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <catch2/catch.hpp>

#include "tests/e2e/conversation.hpp"
#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

using std::chrono::minutes;
using Setting = std::optional<minutes>;

constexpr Setting kUnset = std::nullopt;
constexpr Setting kInfinite = std::nullopt;
constexpr Setting kZero = minutes(0);
constexpr std::array<Setting, 5> kAny{kUnset, kZero, minutes(1), minutes(10), minutes(30)};

std::string text(Setting setting) {
  return setting ? absl::StrCat(setting->count(), "min") : "unset";
}

std::string field(const char* name, Setting setting) {
  if (!setting) return "";
  return absl::StrCat(name, ": ", std::chrono::seconds(*setting).count(), "s");
}

// The header value by which a call chooses the route with these settings.
std::string header_of(Setting header_max, Setting duration) {
  return absl::StrCat(text(header_max), "-", text(duration));
}

std::string route_yaml(Setting header_max, Setting duration) {
  std::vector<std::string> limits;
  if (header_max) limits.push_back(field("grpc_timeout_header_max", header_max));
  if (duration) limits.push_back(field("max_stream_duration", duration));
  const std::string more =
      limits.empty() ? ""
                     : absl::StrCat(", max_stream_duration: {", absl::StrJoin(limits, ", "), "}");
  return absl::StrCat("{match: {prefix: \"\", headers: [{name: limits, exact_match: ",
                      header_of(header_max, duration),
                      "}]}, route: {cluster: c",
                      more,
                      "}}");
}

// One target for each max_stream_duration of a listener. All targets use one RouteConfiguration,
// which has all routes.
std::string all_yaml(const std::string& address) {
  std::string yaml = cluster_yaml("c") + endpoints_yaml("c", {{address}});
  for (const Setting listener : kAny) {
    const std::string more = listener ? absl::StrCat(", common_http_protocol_options: {",
                                                     field("max_stream_duration", listener),
                                                     "}")
                                      : "";
    yaml += listener_yaml(text(listener), "routes", "", more);
  }
  std::vector<std::string> routes;
  for (const Setting header_max : {kUnset, kZero, Setting(minutes(10))}) {
    for (const Setting duration : kAny)
      routes.push_back(route_yaml(header_max, duration));
  }
  return absl::StrCat(
      yaml,
      "  - {\"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, "
      "name: routes, virtual_hosts: [{name: all, domains: [\"*\"], routes: [",
      absl::StrJoin(routes, ", "),
      "]}]}\n");
}

struct Row {
  const char* name;
  Setting application;
  Setting header_max;
  std::vector<Setting> max_stream_duration;  // Alternatives: each value gives the same timeout.
  Setting effective;
};

const std::vector<Setting> kAll(kAny.begin(), kAny.end());

const std::vector<Row> kTable{
    {"a", kUnset, kUnset, {kUnset}, kInfinite},
    {"b", kUnset, kUnset, {kZero}, kInfinite},
    {"c", kUnset, kUnset, {minutes(10)}, minutes(10)},
    {"d", kUnset, kZero, kAll, kInfinite},
    {"e", kUnset, minutes(10), kAll, minutes(10)},
    {"f", minutes(20), kUnset, {kUnset}, minutes(20)},
    {"g", minutes(20), kUnset, {kZero}, minutes(20)},
    {"h", minutes(20), kUnset, {minutes(10)}, minutes(10)},
    {"i", minutes(20), kZero, kAll, minutes(20)},
    {"j", minutes(20), minutes(10), kAll, minutes(10)},
    {"less than max_stream_duration", minutes(5), kUnset, {minutes(10)}, minutes(5)},
    {"less than grpc_timeout_header_max", minutes(5), minutes(10), kAll, minutes(5)},
};

// The max_stream_duration of a route and of its listener. The listener's counts only if the route
// has none.
struct Place {
  Setting route;
  Setting listener;
};

// All pairs of settings that have the effective max_stream_duration `duration`.
std::vector<Place> places_of(Setting duration) {
  std::vector<Place> places{{kUnset, duration}};
  if (!duration) return places;
  for (const Setting hidden : kAny)
    places.push_back({duration, hidden});
  return places;
}

// The timeout at the server is the expected one minus the time on the way. gRPC also rounds it up
// to the few digits of the grpc-timeout header.
bool is_about(const std::optional<std::chrono::system_clock::duration>& left, Setting meant) {
  if (!left || !meant) return left.has_value() == meant.has_value();
  return *left < *meant + minutes(1) && *left > *meant - minutes(2);
}

}  // namespace

TEST_CASE("runtime: the server is told the effective timeout, whoever set it",
          "[e2e][runtime][A31-20][A31-21][A31-22][A31-24][A31-25][A31-26][A31-27][A31-28]") {
  EchoServer server;
  const auto plane = start_plane(all_yaml(server.address().str()));
  const auto runtime = start_runtime(options_for(plane->address()));

  std::size_t calls = 0;
  for (const Row& row : kTable) {
    for (const Setting duration : row.max_stream_duration) {
      for (const Place& place : places_of(duration)) {
        const Way& way = ways()[calls++ % ways().size()];  // Rows take the kinds of call in turn.
        Manner manner;
        manner.requests.emplace_back();
        manner.requests.front().set_times(1);
        manner.prepare = [&](grpc::ClientContext& context) {
          context.AddMetadata("limits", header_of(row.header_max, place.route));
          context.set_deadline(gpr_inf_future(GPR_CLOCK_REALTIME));
          if (row.application)
            context.set_deadline(std::chrono::system_clock::now() + *row.application);
        };
        INFO(way.name << ", row " << row.name << ", route " << text(place.route) << ", listener "
                      << text(place.listener));
        const auto channel = runtime->channel("xds:///" + text(place.listener));
        const Transcript transcript = converse(way, manner, channel, server.service());
        INFO(transcript.status.error_message());
        REQUIRE(transcript.status.ok());
        const auto left = server.service().time_left();
        INFO((left ? std::chrono::duration<double>(*left).count() : -1.0) << " s");
        CHECK(is_about(left, row.effective));
      }
    }
  }
  CHECK(calls > 5 * ways().size());
}

TEST_CASE("runtime: a call that waits for a connection ends by its route's timeout",
          "[e2e][runtime][A31-30]") {
  const BlackHole nobody;
  const std::string yaml =
      listener_yaml("orders", "orders") +
      routes_yaml("orders", "c", ", max_stream_duration: {max_stream_duration: 0.2s}") +
      cluster_yaml("c") + endpoints_yaml("c", {{nobody.address()}});
  const auto plane = start_plane(yaml);
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  EchoService nowhere;
  for (const Way& way : ways()) {
    INFO(way.name);
    Manner manner;
    manner.requests.emplace_back();
    const auto start = std::chrono::steady_clock::now();
    const Transcript transcript = converse(way, manner, channel, nowhere);
    INFO(transcript.status.error_message());
    CHECK(transcript.status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
    CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(190));
    CHECK(absl::StrContains(transcript.status.error_message(), "while waiting for a connection"));
  }
}

}  // namespace signalbox::test
