// SPDX-License-Identifier: Apache-2.0
//
// A channel as its users see it: its connectivity state, the sources of its endpoints, the time of
// a failover, and the metrics of its clusters.
#include <chrono>
#include <mutex>

#include <catch2/catch.hpp>

#include "tests/e2e/cut_headers.hpp"
#include "tests/e2e/runtime_world.hpp"
#include "tests/support/talking_socket.hpp"

namespace signalbox::test::runtime_state_test {
namespace {

using Catch::Matchers::Contains;
using namespace std::chrono_literals;

std::chrono::system_clock::time_point deadline() {
  return std::chrono::system_clock::now() + kPatience;
}

// Waits until the channel is in the state `wanted`; false if it is not in time.
bool reaches(grpc::ChannelInterface& channel, grpc_connectivity_state wanted) {
  for (auto state = channel.GetState(true); state != wanted; state = channel.GetState(true)) {
    if (!channel.WaitForStateChange(state, deadline())) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("runtime: a channel connects, loses its backends, and is shut down in the end",
          "[e2e][runtime][state]") {
  std::optional<BackendProcess> backend(std::in_place, "good");
  const RefusingAddress nobody;
  const auto plane = start_plane("");
  auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  CHECK(channel->GetState(false) == GRPC_CHANNEL_CONNECTING);
  CHECK_FALSE(
      channel->WaitForStateChange(GRPC_CHANNEL_CONNECTING, std::chrono::system_clock::now()));
  plane->set_resources(resources(simple_yaml("orders", "c", {backend->address})));
  CHECK(channel->WaitForConnected(deadline()));
  CHECK(channel->GetState(false) == GRPC_CHANNEL_READY);
  CHECK(call(channel).ok());

  plane->update(resources(endpoints_yaml("c", {{nobody.address()}})));
  CHECK(reaches(*channel, GRPC_CHANNEL_TRANSIENT_FAILURE));
  plane->update(resources(endpoints_yaml("c", {{backend->address}})));
  CHECK(reaches(*channel, GRPC_CHANNEL_READY));

  grpc::CompletionQueue queue;
  int tag = 0;
  channel->NotifyOnStateChange(GRPC_CHANNEL_READY, deadline(), &queue, &tag);
  runtime = nullptr;
  void* got = nullptr;
  bool ok = false;
  REQUIRE(queue.Next(&got, &ok));
  CHECK(got == &tag);
  CHECK(ok);
  CHECK(channel->GetState(true) == GRPC_CHANNEL_SHUTDOWN);
  CHECK_FALSE(channel->WaitForStateChange(GRPC_CHANNEL_SHUTDOWN, std::chrono::system_clock::now()));
  queue.Shutdown();
  CHECK_FALSE(queue.Next(&got, &ok));
}

TEST_CASE("runtime: LOGICAL_DNS clusters ask the look-up of the options",
          "[e2e][runtime][A37-2][A37-20]") {
  const BackendProcess backend("good");
  std::mutex mutex;
  std::set<std::string> asked;
  bool is_known = false;
  const auto plane =
      start_plane(listener_yaml("orders", "orders") + routes_yaml("orders", "legacy") +
                  dns_yaml("legacy", "legacy.example", 4321));
  RuntimeOptions options = options_for(plane->address());
  options.name_lookup = [&](const std::string& name) -> absl::StatusOr<std::vector<std::string>> {
    const std::lock_guard lock(mutex);
    asked.insert(name);
    if (!is_known) return absl::UnavailableError("the name server is on strike");
    return std::vector<std::string>{backend.address};
  };
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  Calls waiting(channel);
  waiting.start(1, {.wait_for_ready = true});
  const Answer failed = call(channel);
  INFO(failed.text());
  CHECK(failed.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(failed.status.error_message(),
             Contains("legacy.example:4321") && Contains("on strike"));
  {
    const std::lock_guard lock(mutex);
    CHECK(asked == std::set<std::string>{"legacy.example:4321"});
    is_known = true;
  }
  const auto answers = waiting.finish();
  INFO(answers[0].text());
  CHECK(answers[0].cluster == "good");
  CHECK(call(channel).cluster == "good");
}

TEST_CASE("runtime: a primary that neither takes nor refuses is given up after failover_timeout",
          "[e2e][runtime][A56]") {
  const BlackHole primary;
  const BackendProcess secondary("secondary");
  const auto plane = start_plane(listener_yaml("orders", "orders") + routes_yaml("orders", "c") +
                                 cluster_yaml("c") +
                                 endpoints_yaml("c", {{primary.address()}, {secondary.address}}));
  RuntimeOptions options = options_for(plane->address());
  options.failover_timeout = std::chrono::milliseconds(300);
  const auto begin = std::chrono::steady_clock::now();
  const auto runtime = start_runtime(std::move(options));
  // The channel's metrics exist while the channel exists.
  const auto channel = runtime->channel("xds:///orders");
  const Answer answer = call(channel);
  const auto took = std::chrono::steady_clock::now() - begin;
  INFO(answer.text());
  CHECK(answer.cluster == "secondary");
  CHECK(took >= std::chrono::milliseconds(300));
  // The failover did not wait for gRPC's connection timeout (20 s) or the default
  // failover_timeout.
  CHECK(took < std::chrono::seconds(8));
  // The picker is published before the metric changes, so wait for the metric.
  CHECK(eventually(
      [&] { return metric(*runtime, "signalbox_priority_active", {"cluster=\"c\""}) == 1.0; }));
}

TEST_CASE("runtime: a server that ends its connections at once is asked with pauses",
          "[e2e][runtime][state]") {
  // A connection that gRPC has taken is READY before it ends.
  const TalkingSocket server({{"", http2_settings()}, {"PRI * HTTP/2.0", ""}});
  const auto begun = std::chrono::steady_clock::now();
  const auto plane = start_plane(simple_yaml("orders", "c", {server.address()}));
  RuntimeOptions options = options_for(plane->address());
  options.initial_backoff = options.lost_backoff = 1s;
  options.max_backoff = 10s;
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  // The pause is of a second, less a fifth. Without it all is over in milliseconds.
  REQUIRE(eventually([&] { return server.taken() >= 3; }));
  CHECK(std::chrono::steady_clock::now() - begun > 700ms);
}

TEST_CASE("runtime: a cluster that one channel leaves stays in the other's metrics",
          "[e2e][runtime][metrics]") {
  const BackendProcess backend("shared");
  const auto plane = start_plane(
      simple_yaml("orders", "a", {backend.address}) + listener_yaml("invoices", "invoices") +
      routes_yaml("invoices", "a") + cluster_yaml("b") + endpoints_yaml("b", {{backend.address}}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto orders = runtime->channel("xds:///orders");
  const auto invoices = runtime->channel("xds:///invoices");
  CHECK(call(orders).ok());
  CHECK(call(invoices).ok());
  const std::vector<std::string> ready_in_a{"cluster=\"a\"", "state=\"ready\""};
  // Each channel has the endpoint; both share one connection to it.
  CHECK(eventually([&] { return metric(*runtime, "signalbox_endpoints", ready_in_a) == 2.0; }));
  const auto policies = metric(*runtime, "signalbox_policies");
  plane->update(resources(routes_yaml("invoices", "b")));
  CHECK(eventually([&] {
    return call(invoices).ok() &&
           metric(*runtime, "signalbox_rpcs_completed_total", {"cluster=\"b\""}).value_or(0) > 0;
  }));
  // The tree of invoices has released the connection.
  CHECK(eventually([&] { return metric(*runtime, "signalbox_policies") == policies; }));
  CHECK(eventually([&] { return metric(*runtime, "signalbox_endpoints", ready_in_a) == 1.0; }));
  CHECK(metric(*runtime, "signalbox_priority_active", {"cluster=\"a\""}) == 0.0);
}

}  // namespace signalbox::test::runtime_state_test
