// SPDX-License-Identifier: Apache-2.0
//
// Servers that allow few calls on a connection (gRFC A105).
#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

using Catch::Contains;
using namespace std::chrono_literals;

constexpr int kStreams = 2;

std::string scaled_yaml(int max_connections, const std::string& more = "") {
  return cluster_yaml("c",
                      "",
                      absl::StrCat(", circuit_breakers: {per_host_thresholds: [{max_connections: ",
                                   max_connections,
                                   "}]",
                                   more,
                                   "}"));
}

std::string world_yaml(int max_connections,
                       const std::vector<std::string>& addresses,
                       const std::string& more = "") {
  return absl::StrCat(listener_yaml("orders", "orders"),
                      routes_yaml("orders", "c"),
                      scaled_yaml(max_connections, more),
                      endpoints_yaml("c", {addresses}));
}

// How signalbox knows the server's number of streams. kEither: by SETTINGS, or by the option if the
// server is so late that gRPC makes the connection.
enum class Known { kEither, kBySettings, kByOption, kNot };

RuntimeOptions options(const ControlPlane& plane,
                       Known known = Known::kEither,
                       int streams = kStreams) {
  RuntimeOptions options = options_for(plane.address());
  options.channel_arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  options.socket_connections = known == Known::kEither || known == Known::kBySettings;
  if (known == Known::kEither || known == Known::kByOption)
    options.streams_per_connection = streams;
  return options;
}

// Makes a call. Returns whether signalbox has made the socket of the call's connection: then it has
// no security properties.
bool goes_by_socket(const std::shared_ptr<grpc::ChannelInterface>& channel) {
  grpc::ClientContext context;
  demo::v1::PlaceReply reply;
  REQUIRE(demo::v1::Orders::NewStub(channel)->Place(&context, {}, &reply).ok());
  return context.auth_context()->begin() == context.auth_context()->end();
}

double connections(const Runtime& runtime) {
  return metric(runtime, "signalbox_connections_open", {"cluster=\"c\""}).value_or(0);
}

double waits_for_streams(const Runtime& runtime) {
  return metric(runtime,
                "signalbox_pick_wait_seconds_count",
                {"delay_type=\"max_concurrent_streams\""})
      .value_or(0);
}

// The calls in flight to the only endpoint.
std::int64_t calls_in_flight(const Runtime& runtime) {
  const RuntimeStatus status = runtime.status();
  const PriorityStatus& priority = status.targets.at(0).clusters.at(0).priorities.at(0);
  return priority.localities.at(0).endpoints.at(0).addresses.at(0).calls_in_flight;
}

// Releases the backend's calls until no call runs.
std::vector<Answer> finish(Calls& calls, HoldingBackend& backend) {
  CHECK(eventually([&] {
    backend.release();
    return calls.running() == 0;
  }));
  return calls.finish();
}

}  // namespace

TEST_CASE("streams: full connections get others beside them, and calls beyond all of them wait",
          "[e2e][runtime][A105-6][A105-7][A105-10][A105-11][A105-19]") {
  const Known known = GENERATE(Known::kBySettings, Known::kByOption);
  CAPTURE(static_cast<int>(known));
  HoldingBackend backend("c", kStreams);
  const auto plane = start_plane(world_yaml(3, {backend.address()}));
  const auto runtime = start_runtime(options(*plane, known));
  const auto channel = runtime->channel("xds:///orders");
  const bool is_socket = goes_by_socket(channel);
  if (known == Known::kBySettings && !is_socket) {
    WARN("gRPC has made the connection, so its SETTINGS are not seen");
    return;
  }
  CHECK(connections(*runtime) == 1.0);

  Calls held(channel);
  held.start(8, {.item = "hold"});
  REQUIRE(eventually([&] { return backend.held() == 6; }));
  CHECK(eventually([&] { return connections(*runtime) == 3.0; }));

  // The status has the calls of all connections, and not the two calls that wait.
  CHECK(eventually([&] { return calls_in_flight(*runtime) == 6; }));

  // A call beyond all streams ends with its own deadline, and its error says why it waited.
  const Answer late = call(channel, {.timeout = 300ms});
  CHECK(late.status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  CHECK_THAT(late.status.error_message(),
             Contains(absl::StrCat("while waiting for a stream: endpoint ",
                                   backend.address(),
                                   ": all 6 streams of 3 connections are in use")));
  CHECK(backend.held() == 6);

  std::set<std::string> used;
  for (const Answer& answer : finish(held, backend)) {
    INFO(answer.text());
    CHECK(answer.ok());
    used.insert(answer.connection);
  }
  CHECK(used.size() == 3);
  CHECK(eventually([&] { return calls_in_flight(*runtime) == 0; }));
  CHECK(waits_for_streams(*runtime) >= 3.0);

  // The connections stay, and a call takes the oldest.
  const std::string oldest = call(channel).connection;
  for (int i = 0; i < 10; ++i)
    CHECK(call(channel).connection == oldest);
  CHECK(connections(*runtime) == 3.0);
}

TEST_CASE("streams: without a known number, or with one connection, gRPC's transport queues",
          "[e2e][runtime][A105-5][A105-7]") {
  struct Row {
    int max_connections;
    Known known;
  };

  const auto row = GENERATE(values<Row>({{3, Known::kNot}, {1, Known::kEither}}));
  CAPTURE(row.max_connections);
  HoldingBackend backend("c", kStreams);
  const auto plane = start_plane(world_yaml(row.max_connections, {backend.address()}));
  const auto runtime = start_runtime(options(*plane, row.known));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  Calls held(channel);
  held.start(4, {.item = "hold"});
  REQUIRE(eventually([&] { return backend.held() == kStreams; }));
  CHECK(connections(*runtime) == 1.0);
  CHECK(waits_for_streams(*runtime) == 0.0);
  for (const Answer& answer : finish(held, backend))
    CHECK(answer.ok());
}

TEST_CASE("streams: a new number of connections holds at once, and no connection is lost",
          "[e2e][runtime][A105-4][A105-18]") {
  HoldingBackend backend("c", kStreams);
  const auto plane = start_plane(world_yaml(1, {backend.address()}));
  const auto runtime = start_runtime(options(*plane));
  const auto channel = runtime->channel("xds:///orders");
  const std::string first = call(channel).connection;
  Calls held(channel);
  held.start(kStreams, {.item = "hold"});
  REQUIRE(eventually([&] { return backend.held() == kStreams; }));

  // The calls of before count, too: new ones need another connection.
  plane->update(resources(scaled_yaml(2)));
  CHECK(eventually([&] {
    const Answer answer = call(channel, {.timeout = 500ms});
    return answer.ok() && answer.connection != first;
  }));
  CHECK(connections(*runtime) == 2.0);
  for (const Answer& answer : finish(held, backend)) {
    CHECK(answer.ok());
    CHECK(answer.connection == first);
  }
  plane->update(resources(scaled_yaml(1)));
  CHECK(call(channel).ok());
  CHECK(connections(*runtime) == 2.0);
}

TEST_CASE("streams: a call gets the stream of another target's call on a shared connection",
          "[e2e][runtime][A105-10][A105-16]") {
  HoldingBackend backend("c", 1);
  const auto plane = start_plane(absl::StrCat(world_yaml(1, {backend.address()}),
                                              simple_yaml("carts", "d", {backend.address()})));
  const auto runtime = start_runtime(options(*plane, Known::kEither, 1));
  const auto orders = runtime->channel("xds:///orders");
  const auto carts = runtime->channel("xds:///carts");
  const std::string shared = call(orders).connection;
  REQUIRE(call(carts).connection == shared);

  // The other target's call has the only stream of the shared connection.
  grpc::ClientContext other;
  grpc::Status other_ended;
  std::thread other_call([&] {
    demo::v1::PlaceRequest request;
    request.set_item("hold");
    demo::v1::PlaceReply reply;
    other_ended = demo::v1::Orders::NewStub(carts)->Place(&other, request, &reply);
  });
  CHECK(eventually([&] { return backend.held() == 1; }));
  plane->update(resources(scaled_yaml(2)));
  CHECK(eventually([&] {
    const Answer answer = call(orders, {.timeout = 500ms});
    return answer.ok() && answer.connection != shared;
  }));
  Calls held(orders);
  held.start(1, {.item = "hold"});
  CHECK(eventually([&] { return backend.held() == 2; }));

  // All connections are full. Only the other target's call ends.
  Calls waiting(orders);
  waiting.start(1, {});
  CHECK(waiting.running() == 1);
  other.TryCancel();
  other_call.join();
  CHECK(other_ended.error_code() == grpc::StatusCode::CANCELLED);
  for (const Answer& answer : waiting.finish()) {
    INFO(answer.text());
    CHECK(answer.ok());
    CHECK(answer.connection == shared);
  }
  CHECK(held.running() == 1);
  for (const Answer& answer : finish(held, backend))
    CHECK(answer.ok());
}

TEST_CASE("streams: a call that waits goes elsewhere when its endpoint is removed",
          "[e2e][runtime][A105-9]") {
  HoldingBackend full("c", 1);
  const BackendProcess other("other");
  const auto plane = start_plane(world_yaml(2, {full.address()}));
  const auto runtime = start_runtime(options(*plane, Known::kEither, 1));
  const auto channel = runtime->channel("xds:///orders");
  Calls held(channel);
  held.start(2, {.item = "hold"});
  REQUIRE(eventually([&] { return full.held() == 2; }));
  Calls waiting(channel);
  waiting.start(3, {});
  CHECK(eventually([&] { return waiting.running() == 3; }));
  plane->update(resources(endpoints_yaml("c", {{other.address}})));
  for (const Answer& answer : waiting.finish()) {
    INFO(answer.text());
    CHECK(answer.ok());
    CHECK(answer.cluster == "other");
  }
  for (const Answer& answer : finish(held, full))
    CHECK(answer.ok());
}

TEST_CASE("streams: calls that wait count against the cluster's limit",
          "[e2e][runtime][A32][A105-17]") {
  HoldingBackend backend("c", 1);
  const auto plane =
      start_plane(world_yaml(2, {backend.address()}, ", thresholds: [{max_requests: 3}]"));
  const auto runtime = start_runtime(options(*plane, Known::kEither, 1));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).ok());
  Calls held(channel);
  held.start(3, {.item = "hold"});
  REQUIRE(eventually([&] { return backend.held() == 2; }));
  const Answer refused = call(channel);
  INFO(refused.text());
  CHECK(refused.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(refused.status.error_message(), Contains("3 calls in flight, the limit"));
  for (const Answer& answer : finish(held, backend)) {
    INFO(answer.text());
    CHECK(answer.ok());
  }
}

TEST_CASE("streams: many threads share few streams, and no call is lost",
          "[e2e][runtime][A105-8][A105-10]") {
  HoldingBackend backend("c", 1);
  const auto plane = start_plane(world_yaml(3, {backend.address()}));
  const auto runtime = start_runtime(options(*plane, Known::kEither, 1));
  const auto channel = runtime->channel("xds:///orders");
  constexpr int kCallers = 8;
  std::vector<std::thread> callers;
  callers.reserve(kCallers);
  std::atomic<int> failed{0};
  for (int thread = 0; thread < kCallers; ++thread) {
    callers.emplace_back([&, thread] {
      const auto stub = demo::v1::Orders::NewStub(channel);
      for (int i = 0; i < 100; ++i) {
        // Some calls give up while they wait, or while they have a stream.
        const bool is_hasty = (i + thread) % 7 == 0;
        const Answer answer = call(*stub, {.timeout = is_hasty ? 1ms : kPatience});
        if (!answer.ok() && !is_hasty) ++failed;
      }
    });
  }
  for (std::thread& caller : callers)
    caller.join();
  CHECK(failed == 0);
  CHECK(connections(*runtime) <= 3.0);
  // All streams are free again: each connection takes a call.
  Calls held(channel);
  const int open = static_cast<int>(connections(*runtime));
  held.start(open, {.item = "hold"});
  CHECK(eventually([&] { return backend.held() == static_cast<std::size_t>(open); }));
  for (const Answer& answer : finish(held, backend))
    CHECK(answer.ok());
}

}  // namespace signalbox::test
