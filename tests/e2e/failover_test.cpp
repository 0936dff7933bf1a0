// SPDX-License-Identifier: Apache-2.0
//
// Failover from backends that do not answer: stopped and killed processes, addresses that neither
// accept nor refuse connections, and a port that accepts a connection and then stays silent.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/attempt_record.hpp"
#include "tests/e2e/runtime_world.hpp"

namespace signalbox::test {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::Contains;

// Longer than any test, so a connect_timeout never ends an unanswered attempt.
const char kNoConnectTimeout[] = ", connect_timeout: 3600s";

std::string orders_yaml(const std::string& more, const std::string& endpoints) {
  return absl::StrCat(listener_yaml("orders", "orders"),
                      routes_yaml("orders", "c"),
                      cluster_yaml("c", "", more),
                      endpoints);
}

/// Keeps a process stopped during this object's life.
class Stopped {
 public:
  explicit Stopped(BackendProcess& backend) : backend_(backend) {
    backend_.process.send_signal(SIGSTOP);
    // A thread of the backend that runs when the signal is sent may still answer a call, so wait
    // until the whole process is stopped.
    siginfo_t info{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(backend_.process.pid()), &info, WSTOPPED) == 0);
  }

  ~Stopped() { backend_.process.send_signal(SIGCONT); }

  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;

 private:
  BackendProcess& backend_;
};

bool reaches(const std::shared_ptr<grpc::ChannelInterface>& channel, const std::string& cluster) {
  return eventually([&] { return call(channel).cluster == cluster; });
}

/// The open sockets of a process, such as "socket:[4711]". The system uses no number twice.
std::set<std::string> sockets_of(const BackendProcess& backend) {
  std::set<std::string> sockets;
  const std::string folder = absl::StrCat("/proc/", backend.process.pid(), "/fd");
  for (const auto& descriptor : std::filesystem::directory_iterator(folder)) {
    std::error_code is_closed;
    const auto opened = std::filesystem::read_symlink(descriptor, is_closed).string();
    if (opened.starts_with("socket:")) sockets.insert(opened);
  }
  return sockets;
}

}  // namespace

TEST_CASE(
    "failover: a backend that is stopped before the first connection is left after the "
    "failover timer",
    "[e2e][failover][A56][S11][S12]") {
  BackendProcess primary("primary");
  const BackendProcess secondary("secondary");
  std::optional<Stopped> stopped(primary);
  const auto plane = start_plane(orders_yaml(
      kNoConnectTimeout, endpoints_yaml("c", {{primary.address}, {secondary.address}})));
  RuntimeOptions options = options_for(plane->address());
  options.failover_timeout = 300ms;
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  const Answer answer = call(channel);
  INFO(answer.text());
  CHECK(answer.cluster == "secondary");  // The call waited; none failed.

  stopped.reset();
  CHECK(reaches(channel, "primary"));
}

TEST_CASE("failover: keepalive finds a backend that is stopped, and the next priority serves",
          "[e2e][failover][A8][A56][S11][S12]") {
  BackendProcess primary("primary");
  const BackendProcess secondary("secondary");
  const auto plane = start_plane(orders_yaml(
      kNoConnectTimeout, endpoints_yaml("c", {{primary.address}, {secondary.address}})));
  RuntimeOptions options = options_for(plane->address());
  options.failover_timeout = 300ms;
  options.keepalive_time = 1s;
  options.keepalive_timeout = 2s;
  const bool without_calls = GENERATE(false, true);
  options.keepalive_without_calls = without_calls;
  INFO("without calls: " << without_calls);
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).cluster == "primary");

  std::optional<Stopped> stopped(primary);
  if (!without_calls) {
    // The call was sent, and the stopped backend cannot answer it.
    const Answer lost = call(channel);
    INFO(lost.text());
    CHECK(lost.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  }
  CHECK(eventually(
      [&] { return metric(*runtime, "signalbox_priority_active", {"cluster=\"c\""}) == 1.0; }));
  CHECK(reaches(channel, "secondary"));

  stopped.reset();
  CHECK(reaches(channel, "primary"));
}

// The first back-off is an hour: waiting for it would fail the test.
TEST_CASE("failover: a backend that is started again is found without the back-off of strangers",
          "[e2e][failover][backoff][S12]") {
  std::optional<BackendProcess> primary(std::in_place, "primary");
  const std::string address = primary->address;
  const BackendProcess secondary("secondary");
  const auto plane =
      start_plane(orders_yaml("", endpoints_yaml("c", {{address}, {secondary.address}})));
  RuntimeOptions options = options_for(plane->address());
  options.initial_backoff = 1h;
  options.max_backoff = 1h;
  options.lost_backoff = 50ms;
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).cluster == "primary");

  primary.reset();
  REQUIRE(reaches(channel, "secondary"));  // At least one attempt was refused.
  primary.emplace("primary", std::vector<std::string>{"--listen", address});
  CHECK(reaches(channel, "primary"));
}

// A killed primary refuses connections. A stopped one accepts them and stays silent, and its
// failover window lasts longer than the test. The pings of a call find that it is stopped.
TEST_CASE("failover: the next call goes to a standby, over the connection that is there",
          "[e2e][failover][standby]") {
  const bool is_aggregate = GENERATE(false, true);
  const bool is_killed = GENERATE(false, true);
  CAPTURE(is_aggregate, is_killed);
  std::optional<BackendProcess> primary(std::in_place, "primary");
  const BackendProcess standby("standby");
  std::string yaml =
      orders_yaml(kNoConnectTimeout, endpoints_yaml("c", {{primary->address}, {standby.address}}));
  if (is_aggregate) {
    yaml = listener_yaml("orders", "orders") + routes_yaml("orders", "both") +
           aggregate_yaml("both", {"near", "far"}) + cluster_yaml("near", "", kNoConnectTimeout) +
           cluster_yaml("far", "", kNoConnectTimeout) +
           endpoints_yaml("near", {{primary->address}}) +
           endpoints_yaml("far", {{standby.address}});
  }
  const auto plane = start_plane(yaml);
  RuntimeOptions options = options_for(plane->address());
  options.standby_priorities = 1;
  options.failover_timeout = 1h;
  options.keepalive_time = 1s;
  options.keepalive_timeout = 5s;  // A busy machine answers late.
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel).cluster == "primary");
  const auto are_open = [&](double count) {
    return eventually([&] { return metric(*runtime, "signalbox_connections_open") == count; });
  };
  REQUIRE(are_open(2));
  const auto before = sockets_of(standby);

  std::optional<Stopped> stopped;
  if (is_killed) {
    primary.reset();
  } else {
    stopped.emplace(*primary);
    REQUIRE(call(channel).status.error_code() == grpc::StatusCode::UNAVAILABLE);
  }
  REQUIRE(are_open(1));
  const Answer answer = call(channel);
  INFO(answer.text());
  CHECK(answer.cluster == "standby");
  CHECK(std::ranges::includes(before, sockets_of(standby)));
}

TEST_CASE("failover: an attempt ends after its cluster's connect_timeout", "[e2e][failover][S12]") {
  const BlackHole first;
  const BlackHole second;
  const BackendProcess secondary("secondary");
  const std::vector<std::string> primaries{first.address(), second.address()};
  const auto plane =
      start_plane(orders_yaml(", connect_timeout: 0.3s", endpoints_yaml("c", {primaries})));
  RuntimeOptions options = options_for(plane->address());
  options.failover_timeout = 1h;
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  const Answer answer = call(channel);
  CHECK(answer.status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(answer.status.error_message(), Contains("was not made within 300 ms"));

  plane->update(resources(endpoints_yaml("c", {primaries, {secondary.address}})));
  CHECK(reaches(channel, "secondary"));
}

TEST_CASE("failover: where CDS sets no connect_timeout, an attempt outlives the failover window",
          "[e2e][failover][A56][D19]") {
  MuteSocket primary;
  primary.listen();
  const BackendProcess secondary("secondary");
  const auto plane = start_plane(
      orders_yaml("", endpoints_yaml("c", {{primary.address().str()}, {secondary.address}})));
  RuntimeOptions options = options_for(plane->address());
  options.failover_timeout = 300ms;
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  CHECK(call(channel).cluster == "secondary");

  // A dial of signalbox's own comes first; gRPC connects after its silence.
  if (actors::environment_allows_sockets()) primary.close_one();
  // The server accepts the connection and sends nothing for 12 s.
  const int taken = primary.take_one();
  REQUIRE(taken >= 0);
  pollfd closed{taken, POLLRDHUP, 0};
  CHECK(::poll(&closed, 1, 12'000) == 0);
  const std::string settings("\0\0\0\x4\0\0\0\0\0", 9);
  CHECK(::send(taken, settings.data(), settings.size(), MSG_NOSIGNAL) == std::ssize(settings));
  CHECK(eventually(
      [&] { return metric(*runtime, "signalbox_priority_active", {"cluster=\"c\""}) == 0.0; }));
  ::close(taken);
}

TEST_CASE("failover: an address where nobody answers does not hold up the next one",
          "[e2e][pick_first][A61]") {
  const BlackHole silent;
  const BackendProcess backend("backend");
  const auto with_family = [](const std::string& address) {
    const std::size_t colon = address.rfind(':');
    return absl::StrCat("{address: {socket_address: {address: ",
                        address.substr(0, colon),
                        ", port_value: ",
                        address.substr(colon + 1),
                        "}}}");
  };
  std::string yaml;
  SECTION("of one endpoint") {
    const std::string one = with_family(silent.address());
    yaml = orders_yaml(
        kNoConnectTimeout,
        absl::StrCat("  - {\"@type\": "
                     "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, "
                     "cluster_name: c, endpoints: [{locality: {zone: z}, load_balancing_weight: 1, "
                     "lb_endpoints: [{endpoint: ",
                     one.substr(0, one.size() - 1),
                     ", additional_addresses: [",
                     with_family(backend.address),
                     "]}}]}]}\n"));
  }
  SECTION("of a cluster whose policy is pick_first") {
    yaml = orders_yaml(
        absl::StrCat(kNoConnectTimeout,
                     ", load_balancing_policy: {policies: [{typed_extension_config: {name: p, "
                     "typed_config: {\"@type\": type.googleapis.com/"
                     "envoy.extensions.load_balancing_policies.pick_first.v3.PickFirst}}}]}"),
        endpoints_yaml("c", {{silent.address(), backend.address}}));
  }
  const auto plane = start_plane(yaml);
  RuntimeOptions options = options_for(plane->address());
  options.failover_timeout = 1h;
  const auto runtime = start_runtime(std::move(options));
  const Answer answer = call(runtime->channel("xds:///orders"));
  INFO(answer.text());
  CHECK(answer.cluster == "backend");
}

}  // namespace signalbox::test
