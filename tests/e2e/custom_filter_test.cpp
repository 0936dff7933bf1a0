// SPDX-License-Identifier: Apache-2.0
//
// HTTP filters of the program's own, written against signalbox/filter.hpp: over a control plane, to
// real backends. The example of docs/custom_filter.md is one of them.
#include <atomic>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "tests/e2e/runtime_world.hpp"

// The example of docs/custom_filter.md.
signalbox::CustomHttpFilter canary_filter();

namespace signalbox::test {
namespace {

using Catch::Matchers::StartsWith;

// The http_filters field of the example in docs/custom_filter.md.
std::string canary_yaml() {
  std::ifstream file(SIGNALBOX_EXAMPLE_FILTER_YAML);
  std::stringstream text;
  text << file.rdbuf();
  // The field has two entries: the example's, and the router.
  std::string entry = text.str();
  REQUIRE(absl::StrContains(entry, "http_filters:\n  - "));
  return entry;
}

// The route names both clusters, but almost no call takes the second one without the filter.
std::string both_clusters_yaml() {
  return replaced(routes_yaml("orders", "unused"),
                  "route: {cluster: unused}",
                  "route: {weighted_clusters: {clusters: [{name: stable, weight: 4000000000}, "
                  "{name: canary, weight: 1}]}}");
}

std::string listener_with(const std::string& value) {
  return listener_yaml("orders",
                       "orders",
                       absl::StrCat("{name: canary, typed_config: {\"@type\": "
                                    "type.googleapis.com/xds.type.v3.TypedStruct, type_url: "
                                    "type.googleapis.com/com.example.Canary, value: ",
                                    value,
                                    "}}, "));
}

const char kValue[] = "{header: x-canary, cluster: canary}";

struct CanaryWorld {
  explicit CanaryWorld(const std::string& routes = both_clusters_yaml(),
                       CustomHttpFilter filter = canary_filter())
      : plane(start_plane(listener_with(kValue) + routes + cluster_yaml("stable") +
                          cluster_yaml("canary") + endpoints_yaml("stable", {{stable.address}}) +
                          endpoints_yaml("canary", {{canary.address}}))) {
    RuntimeOptions options = options_for(plane->address());
    options.http_filters.push_back(std::move(filter));
    runtime = start_runtime(std::move(options));
    channel = runtime->channel("xds:///orders");
  }

  Answer call_as(const std::string& value) const {
    return call(channel, {.headers = {{"x-canary", value}}});
  }

  BackendProcess stable{"stable"};
  BackendProcess canary{"canary"};
  std::unique_ptr<ControlPlane> plane;
  std::unique_ptr<Runtime> runtime;
  std::shared_ptr<grpc::ChannelInterface> channel;
};

}  // namespace

TEST_CASE("custom filter: the documents' example sends calls to another cluster of their route",
          "[e2e][custom][A39][A60]") {
  // The documents' example has the values that this test expects.
  CHECK(absl::StrContains(canary_yaml(), absl::StrCat("value: ", kValue)));
  CHECK(absl::StrContains(canary_yaml(), "type_url: type.googleapis.com/com.example.Canary"));
  const CanaryWorld world;
  for (int i = 0; i < 5; ++i) {
    CHECK(world.call_as("yes").cluster == "canary");
    CHECK(world.call_as("no").cluster == "stable");
    CHECK(call(world.channel).cluster == "stable");
  }
}

TEST_CASE("custom filter: ends a call whose route has no such cluster", "[e2e][custom][A39]") {
  const CanaryWorld world(routes_yaml("orders", "stable"));
  CHECK(world.call_as("no").cluster == "stable");
  const Answer answer = world.call_as("yes");
  CHECK(answer.status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK_THAT(answer.status.error_message(),
             StartsWith("xds:///orders: cluster stable: this route has no canary ("));
}

TEST_CASE("custom filter: a route's override takes its place", "[e2e][custom][A39]") {
  const std::string routes = replaced(
      routes_yaml("orders", "stable"),
      "domains: [\"*\"]",
      "domains: [\"*\"], typed_per_filter_config: {canary: {\"@type\": "
      "type.googleapis.com/xds.type.v3.TypedStruct, type_url: "
      "type.googleapis.com/com.example.Canary, value: {header: x-other, cluster: canary}}}");
  const CanaryWorld world(routes);
  CHECK(world.call_as("yes").cluster == "stable");
  CHECK(call(world.channel, {.headers = {{"x-other", "yes"}}}).status.error_code() ==
        grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_CASE("custom filter: a configuration that it refuses is a NACK, and the last good one serves",
          "[e2e][custom][A39]") {
  const CanaryWorld world;
  REQUIRE(world.call_as("yes").cluster == "canary");
  world.plane->update(resources(listener_with("{header: x-canary}")));
  const std::string text =
      "LDS resource \"orders\": api_listener.api_listener.http_filters[0].typed_config.value: must "
      "be a configuration of com.example.Canary: cluster: must be set, found none";
  CHECK(world.plane->wait_for(
      [&](const DiscoveryRecord& record) {
        return !record.nacks.empty() && absl::StrContains(record.nacks.back().detail, text);
      },
      kPatience));
  CHECK(world.call_as("yes").cluster == "canary");
}

TEST_CASE("custom filter: what it adds is sent, and it may delay", "[e2e][custom][A39]") {
  // This filter adds the header by which the fault filter after it ends the call.
  CustomHttpFilter adding = canary_filter();
  adding.parse = [](const RawFilterConfig&) -> CallFilterPtr {
    struct Adding final : CallFilter {
      void apply(FilterCall& call) const override {
        call.delay(std::chrono::milliseconds(5));
        call.add_header("x-envoy-fault-abort-grpc-request", "10");
      }
    };
    return std::make_shared<const Adding>();
  };
  CanaryWorld world(both_clusters_yaml(), adding);
  REQUIRE(call(world.channel).ok());
  world.plane->update(resources(replaced(
      listener_with(kValue),
      "{name: router",
      "{name: fault, typed_config: {\"@type\": "
      "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault, abort: {header_abort: "
      "{}, percentage: {numerator: 100}}}}, {name: router")));
  CHECK(eventually(
      [&] { return call(world.channel).status.error_code() == grpc::StatusCode::ABORTED; }));
}

TEST_CASE("custom filter: one that throws costs its call alone", "[e2e][custom]") {
  static std::atomic<bool> throws{false};
  CustomHttpFilter fragile = canary_filter();
  fragile.parse = [](const RawFilterConfig&) -> CallFilterPtr {
    struct Fragile final : CallFilter {
      void apply(FilterCall&) const override {
        if (throws) throw std::runtime_error("told to throw");
      }
    };
    return std::make_shared<const Fragile>();
  };
  const CanaryWorld world(both_clusters_yaml(), fragile);
  REQUIRE(call(world.channel).ok());
  const std::vector<std::string> label = {"filter=\"com.example.Canary\""};
  CHECK(metric(*world.runtime, "signalbox_custom_filter_failures_total", label) == 0);
  throws = true;
  const Answer answer = call(world.channel);
  throws = false;
  CHECK(answer.status.error_code() == grpc::StatusCode::INTERNAL);
  CHECK_THAT(
      answer.status.error_message(),
      StartsWith(
          "xds:///orders: cluster stable: the custom HTTP filter com.example.Canary threw: told "
          "to throw ("));
  CHECK(metric(*world.runtime, "signalbox_custom_filter_failures_total", label) == 1);
  CHECK(call(world.channel).ok());
}

TEST_CASE("custom filter: who has not registered it refuses the listener", "[e2e][custom][A39]") {
  const auto plane = start_plane(listener_with(kValue) + both_clusters_yaml());
  const auto runtime = start_runtime(options_for(plane->address()));
  const Answer answer = call(runtime->channel("xds:///orders"));
  CHECK(answer.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(
      answer.status.error_message(),
      Catch::Contains("must be a known filter or is_optional, found \"com.example.Canary\""));
}

TEST_CASE("custom filter: none is left when the runtime has ended", "[e2e][custom][A39]") {
  std::mutex mutex;  // A thread of the runtime parses.
  std::vector<std::weak_ptr<const CallFilter>> made;
  CustomHttpFilter filter = canary_filter();
  filter.parse = [&, parse = filter.parse](const RawFilterConfig& config) {
    auto parsed = parse(config);
    const std::lock_guard lock(mutex);
    if (parsed.ok()) made.emplace_back(*parsed);
    return parsed;
  };
  CanaryWorld world(both_clusters_yaml(), std::move(filter));
  CHECK(world.call_as("yes").cluster == "canary");
  world.runtime = nullptr;
  CHECK_FALSE(made.empty());
  for (const auto& one : made)
    CHECK(one.expired());
  CHECK(call(world.channel).status.error_code() == grpc::StatusCode::UNAVAILABLE);
}

TEST_CASE("custom filter: one that cannot be registered is an error of start", "[e2e][custom]") {
  RuntimeOptions options = options_for("127.0.0.1:1");
  options.http_filters = {canary_filter(), canary_filter()};
  const absl::Status status = Runtime::start(std::move(options)).status();
  CHECK(status == absl::InvalidArgumentError(
                      "http_filters[1].type: must be unique, found \"com.example.Canary\""));
}

}  // namespace signalbox::test
