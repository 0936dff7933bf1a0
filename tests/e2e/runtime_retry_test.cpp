// SPDX-License-Identifier: Apache-2.0
//
// Retry policies as a control plane sets them, over the real runtime.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"

#include "tests/e2e/echo_server.hpp"
#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

using namespace std::chrono_literals;
using Catch::Contains;

std::string retrying(int retries, const std::string& base = "0.001s") {
  return absl::StrCat(", retry_policy: {retry_on: \"unavailable\", num_retries: ",
                      retries,
                      ", retry_back_off: {base_interval: ",
                      base,
                      "}}");
}

// All calls to `orders` go to the endpoint at `address`. `more`: further fields of the route's
// action, each preceded by a comma.
std::string world_yaml(const std::string& more, const std::string& address) {
  return absl::StrCat(listener_yaml("orders", "orders"),
                      routes_yaml("orders", "c", more),
                      cluster_yaml("c"),
                      endpoints_yaml("c", {{address}}));
}

EchoRequest failing(int failures, const std::string& pushback = "") {
  EchoRequest request;
  request.set_failures(failures);
  if (failures > 0) request.set_status(grpc::StatusCode::UNAVAILABLE);
  request.set_pushback(pushback);
  return request;
}

struct Echoed {
  grpc::Status status;
  EchoReply reply;
};

Echoed echo(const std::shared_ptr<grpc::ChannelInterface>& channel, const EchoRequest& request) {
  Echoed echoed;
  grpc::ClientContext context;
  echoed.status = Echo::Stub(channel).Unary(&context, request, &echoed.reply);
  return echoed;
}

// A server that ends every call with UNAVAILABLE.
class Unavailable {
 public:
  Unavailable() : server_(start_server(service_, address_)) {}

  const std::string& address() const { return address_; }

  int calls() const { return service_.calls; }

 private:
  struct Service final : Echo::Service {
    grpc::Status Unary(grpc::ServerContext* /*context*/,
                       const EchoRequest* /*request*/,
                       EchoReply* /*reply*/) override {
      ++calls;
      return {grpc::StatusCode::UNAVAILABLE, "broken"};
    }

    std::atomic<int> calls = 0;
  };

  Service service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

double retries(const Runtime& runtime, const std::string& result) {
  return metric(runtime,
                "signalbox_retries_total",
                {"cluster=\"c\"", absl::StrCat("result=\"", result, "\"")})
      .value_or(0);
}

}  // namespace

TEST_CASE("runtime: a route's retry policy is followed", "[e2e][runtime][retry][A44][A6]") {
  EchoServer server;
  const auto plane = start_plane(world_yaml(retrying(2), server.address().str()));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");

  const Echoed third = echo(channel, failing(2));
  INFO(third.status.error_message());
  REQUIRE(third.status.ok());
  CHECK(third.reply.previous_attempts() == 2);
  CHECK(retries(*runtime, "retried") == 2);

  const Echoed never = echo(channel, failing(9));
  CHECK(never.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(never.status.error_message() == "as asked");
  CHECK(server.service().calls == 6);
  CHECK(retries(*runtime, "exhausted") == 1);

  CHECK_FALSE(echo(channel, failing(9, "-1")).status.ok());
  CHECK(server.service().calls == 7);
  CHECK(retries(*runtime, "pushed_back") == 1);

  EchoRequest other = failing(1);
  other.set_status(grpc::StatusCode::INTERNAL);
  CHECK(echo(channel, other).status.error_code() == grpc::StatusCode::INTERNAL);
  EchoRequest committed;  // Sends headers first and then the status, so the call is not retried.
  committed.set_status(grpc::StatusCode::UNAVAILABLE);
  CHECK_FALSE(echo(channel, committed).status.ok());
  CHECK(server.service().calls == 9);
  CHECK(retries(*runtime, "committed") == 1);
}

TEST_CASE("runtime: a backend of its own process is retried", "[e2e][runtime][retry][A44]") {
  const BackendProcess backend("backend", {"--failing-attempts", "2"});
  const int most = GENERATE(1, 2);
  const auto plane = start_plane(world_yaml(retrying(most), backend.address));
  const auto runtime = start_runtime(options_for(plane->address()));
  Calls calls(runtime->channel("xds:///orders"));
  calls.start(20, {});
  for (const Answer& answer : calls.finish()) {
    INFO(answer.text());
    CHECK(answer.ok() == (most == 2));
  }
  CHECK(retries(*runtime, "retried") == 20 * most);
  CHECK(retries(*runtime, "exhausted") == (most == 2 ? 0 : 20));
}

TEST_CASE("runtime: without a retry policy nothing is retried", "[e2e][runtime][retry][A44]") {
  EchoServer server;
  const auto plane = start_plane(world_yaml("", server.address().str()));
  const auto runtime = start_runtime(options_for(plane->address()));
  CHECK_FALSE(echo(runtime->channel("xds:///orders"), failing(1)).status.ok());
  CHECK(server.service().calls == 1);
  CHECK_FALSE(metric(*runtime, "signalbox_retries_total"));
}

TEST_CASE("runtime: a route's timeout is for all attempts of a call",
          "[e2e][runtime][retry][A44][A31-24]") {
  EchoServer server;
  const auto plane = start_plane(world_yaml(
      retrying(2) + ", max_stream_duration: {max_stream_duration: 60s}", server.address().str()));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  CHECK(echo(channel, failing(9, "61000")).status.error_message() == "as asked");
  CHECK(server.service().calls == 1);
  CHECK(retries(*runtime, "too_late") == 1);
}

TEST_CASE("runtime: a retry stays with its call's cluster, which nothing leads to any more",
          "[e2e][runtime][retry][A31-4][A31-10][A44]") {
  EchoServer chosen;
  EchoServer later;
  const auto plane = start_plane(world_yaml(retrying(2), chosen.address().str()));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(echo(channel, failing(0)).status.ok());

  // The retry comes after 3 s (pushback), long after the change takes effect. If the change takes
  // longer, the test still passes.
  Echoed retried;
  std::thread caller([&] { retried = echo(channel, failing(1, "3000")); });
  CHECK(eventually([&] { return retries(*runtime, "retried") == 1; }));
  plane->update(resources(routes_yaml("orders", "d") + cluster_yaml("d") +
                          endpoints_yaml("d", {{later.address().str()}})));
  CHECK(eventually([&] { return echo(channel, failing(0)).reply.port() == later.service().port; }));
  caller.join();
  CHECK(retried.status.ok());
  CHECK(retried.reply.port() == chosen.service().port);
}

TEST_CASE("runtime: no call fails where one of two endpoints answers UNAVAILABLE",
          "[e2e][runtime][retry][A44]") {
  struct Row {
    const char* when;
    const char* policy;
    const char* predicate;
    bool elsewhere;
    bool apart;  // Each endpoint is in a locality of its own.
  };

  constexpr const char* kPrevious =
      ", retry_host_predicate: [{name: envoy.retry_host_predicates.previous_hosts, typed_config: "
      "{\"@type\": type.googleapis.com/"
      "envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate}}]";
  const auto row = GENERATE_COPY(values<Row>({
      {"round robin", "ROUND_ROBIN", "", true, false},
      {"least request", "LEAST_REQUEST", "", true, false},
      {"two localities", "ROUND_ROBIN", "", true, true},
      {"as the route says, against the option", "ROUND_ROBIN", kPrevious, false, false},
  }));
  INFO(row.when);
  const Unavailable broken;
  EchoServer server;
  const std::string policy = absl::StrCat(
      ", retry_policy: {retry_on: \"unavailable\", num_retries: 4, retry_back_off: {base_interval: "
      "0.001s, max_interval: 0.001s}",
      row.predicate,
      "}");
  std::string endpoints = endpoints_yaml("c", {{broken.address()}, {server.address().str()}});
  // Both endpoints are in priority 0: in a locality each (`apart`), or in one.
  if (row.apart) {
    endpoints = replaced(endpoints, "priority: 1", "priority: 0");
  } else {
    endpoints = endpoints_yaml("c", {{broken.address(), server.address().str()}});
  }
  const auto plane =
      start_plane(absl::StrCat(listener_yaml("orders", "orders"),
                               routes_yaml("orders", "c", policy),
                               cluster_yaml("c", "", absl::StrCat(", lb_policy: ", row.policy)),
                               endpoints));
  RuntimeOptions options = options_for(plane->address());
  options.retry_elsewhere = row.elsewhere;
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  // Waits until both endpoints are connected.
  REQUIRE(eventually([&] {
    const bool is_served = echo(channel, failing(0)).status.ok();
    return is_served && broken.calls() > 0;
  }));
  int failed = 0;
  for (int i = 0; i < 1'000; ++i)
    failed += echo(channel, failing(0)).status.ok() ? 0 : 1;
  CHECK(failed == 0);
  CHECK(broken.calls() > 200);
}

TEST_CASE("runtime: all attempts of a call stay on the endpoint that its hash gives",
          "[e2e][runtime][retry][A42][A44]") {
  EchoServer one;
  EchoServer other;
  const auto plane = start_plane(absl::StrCat(
      listener_yaml("orders", "orders"),
      routes_yaml("orders", "c", retrying(2) + ", hash_policy: [{header: {header_name: user}}]"),
      cluster_yaml("c", "", ", lb_policy: RING_HASH"),
      endpoints_yaml("c", {{one.address().str(), other.address().str()}})));
  RuntimeOptions options = options_for(plane->address());
  REQUIRE(options.retry_elsewhere);
  const auto runtime = start_runtime(std::move(options));
  Echo::Stub stub(runtime->channel("xds:///orders"));
  const auto echo_of = [&](int user, int failures) {
    Echoed echoed;
    grpc::ClientContext context;
    context.AddMetadata("user", absl::StrCat("user-", user));
    echoed.status = stub.Unary(&context, failing(failures), &echoed.reply);
    return echoed;
  };
  // The probability that all users share an endpoint is one in 500 million runs. After this loop,
  // both endpoints are connected.
  constexpr int kUsers = 30;
  std::vector<int> homes;
  for (int user = 0; user < kUsers; ++user) {
    const Echoed first = echo_of(user, 0);
    INFO(first.status.error_message());
    REQUIRE(first.status.ok());
    homes.push_back(first.reply.port());
  }
  REQUIRE(std::ranges::count(homes, one.service().port) > 0);
  REQUIRE(std::ranges::count(homes, other.service().port) > 0);
  for (int user = 0; user < kUsers; ++user) {
    const bool is_at_one = homes[static_cast<std::size_t>(user)] == one.service().port;
    const int at_home = (is_at_one ? one : other).service().calls;
    const int elsewhere = (is_at_one ? other : one).service().calls;
    const Echoed third = echo_of(user, 2);
    INFO(third.status.error_message());
    REQUIRE(third.status.ok());
    CHECK(third.reply.previous_attempts() == 2);
    CHECK((is_at_one ? one : other).service().calls == at_home + 3);
    CHECK((is_at_one ? other : one).service().calls == elsewhere);
  }
  CHECK(retries(*runtime, "retried") == 2 * kUsers);
}

TEST_CASE("runtime: calls that back off end with the runtime", "[e2e][runtime][retry]") {
  EchoServer server;
  const auto plane = start_plane(world_yaml(retrying(2), server.address().str()));
  auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  Echoed ended;
  std::thread caller([&] { ended = echo(channel, failing(9, "3600000")); });
  CHECK(eventually([&] { return retries(*runtime, "retried") == 1; }));
  runtime = nullptr;
  caller.join();
  CHECK(ended.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(ended.status.error_message(), Contains("the signalbox runtime was shut down"));
  CHECK(server.service().calls == 1);
}

TEST_CASE("runtime: the options of retries", "[e2e][runtime][retry][A6]") {
  EchoServer server;
  const auto plane = start_plane(world_yaml(retrying(4), server.address().str()));
  RuntimeOptions options = options_for(plane->address());
  SECTION("the tokens of a target are those of all its channels") {
    options.retry_throttling = RetryThrottling{.max_tokens = 4, .token_ratio = 1};
    const auto runtime = start_runtime(std::move(options));
    const auto one = runtime->channel("xds:///orders");
    const auto other = runtime->channel("xds:///orders");
    // The failures on "one" take the target's retry tokens from 4 to 3, then to 2. With 2 of 4 left
    // the second failure is not retried.
    CHECK_FALSE(echo(one, failing(9)).status.ok());
    CHECK(server.service().calls == 2);
    CHECK_FALSE(echo(other, failing(1)).status.ok());
    CHECK(server.service().calls == 3);
    CHECK(retries(*runtime, "throttled") == 2);
  }
  SECTION("how large a request may be") {
    options.retry_buffer_bytes = 100;
    const auto runtime = start_runtime(std::move(options));
    EchoRequest large = failing(1);
    large.set_text(std::string(200, 'x'));
    CHECK_FALSE(echo(runtime->channel("xds:///orders"), large).status.ok());
    CHECK(retries(*runtime, "too_large") == 1);
    CHECK(echo(runtime->channel("xds:///orders"), failing(1)).status.ok());
  }
  SECTION("where they go: there is no other endpoint") {
    options.retry_elsewhere = GENERATE(false, true);
    const auto runtime = start_runtime(std::move(options));
    CHECK(echo(runtime->channel("xds:///orders"), failing(1)).status.ok());
    CHECK(metric(*runtime, "signalbox_picks_total", {"cluster=\"c\"", "result=\"complete\""}) == 2);
  }
  SECTION("what cannot be") {
    struct Row {
      RetryThrottling throttling;
      std::string what;
    };

    const auto row = GENERATE(values<Row>({
        {{.max_tokens = 0}, "max_tokens: must be more than 0 and at most 1000, found 0"},
        {{.max_tokens = 1001}, "max_tokens: must be more than 0 and at most 1000, found 1001"},
        {{.token_ratio = -0.5}, "token_ratio: must be more than 0 and at most 1000, found -0.5"},
    }));
    options.retry_throttling = row.throttling;
    const auto runtime = Runtime::start(std::move(options));
    REQUIRE_FALSE(runtime.ok());
    CHECK_THAT(std::string(runtime.status().message()),
               Contains("RuntimeOptions::retry_throttling." + row.what));
  }
}

TEST_CASE("runtime: with a retry policy no call fails when all primary backends are killed",
          "[e2e][runtime][retry][failover][A44][A56]") {
  const BackendProcess secondary("secondary");
  const auto plane = start_plane(absl::StrCat(listener_yaml("orders", "orders"),
                                              routes_yaml("orders", "c", retrying(4, "0.025s")),
                                              cluster_yaml("c"),
                                              endpoints_yaml("c", {{secondary.address}})));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).cluster == "secondary");
  const auto reaches = [&](const std::string& cluster) {
    return eventually([&] { return call(channel).cluster == cluster; });
  };
  Traffic traffic(channel, 2);
  for (int round = 0; round < 20; ++round) {
    INFO("round " << round);
    BackendProcess first("primary");
    BackendProcess second("primary");
    plane->update(
        resources(endpoints_yaml("c", {{first.address, second.address}, {secondary.address}})));
    REQUIRE(reaches("primary"));
    Calls held(channel);
    held.start(8, {.work_us = 100'000});  // In flight when their backend dies.
    first.process.send_signal(SIGKILL);
    second.process.send_signal(SIGKILL);
    REQUIRE(reaches("secondary"));
    for (const Answer& answer : held.finish()) {
      INFO(answer.text());
      CHECK(answer.ok());
    }
  }
  CHECK(retries(*runtime, "retried") > 0);
  const std::vector<std::string> failures = traffic.finish();
  CHECK(failures == std::vector<std::string>{});
}

}  // namespace signalbox::test
