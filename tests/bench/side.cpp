// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/side.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>

namespace signalbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kConnectTime = std::chrono::seconds(120);
constexpr auto kSideSettleTime = std::chrono::milliseconds(300);
// The first picker with weights has those of two endpoints at least. After this time it has all.
constexpr auto kWeightsTime = std::chrono::seconds(1);
constexpr auto kSideCallTime = std::chrono::seconds(20);
constexpr auto kLookEvery = std::chrono::milliseconds(20);
// The pause of wait_for_connections(). It is longer than kLookEvery, because each look reads up to
// 10,000 lines of /proc/net/tcp, which takes CPU time while a start is measured.
constexpr auto kGlanceEvery = std::chrono::milliseconds(200);

// Counts the established connections to the port in a file with the format of /proc/net/tcp:
//   sl  local_address rem_address   st …
int connections_in(const char* file, int port) {
  std::ifstream lines(file);
  std::string line, number, local, remote, state;
  int count = 0;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    words >> number >> local >> remote >> state;
    const auto colon = remote.rfind(':');
    int remote_port = 0;
    if (colon != std::string::npos && state == "01" &&
        absl::SimpleHexAtoi(remote.substr(colon + 1), &remote_port) && remote_port == port) {
      ++count;
    }
  }
  return count;
}

// gRPC opens IPv4 or IPv6 sockets for an IPv4 address, so both files are read.
int connections_to(int port) {
  return connections_in("/proc/net/tcp", port) + connections_in("/proc/net/tcp6", port);
}

// Counts the connections to `port` until there are `endpoints`. Calls `meanwhile` before each
// count. DEADLINE_EXCEEDED after kConnectTime; an error of `meanwhile` is returned at once.
absl::Status look_until_connected(int endpoints,
                                  int port,
                                  absl::FunctionRef<absl::Status()> meanwhile) {
  const auto deadline = Clock::now() + kConnectTime;
  for (;;) {
    if (auto status = meanwhile(); !status.ok()) return status;
    const int connected = connections_to(port);
    if (connected >= endpoints) return absl::OkStatus();
    if (Clock::now() > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("only ", connected, " of ", endpoints, " endpoints are connected"));
    }
  }
}

absl::Status call_for(Stub& stub, Clock::duration length) {
  const auto end = Clock::now() + length;
  while (Clock::now() < end) {
    const grpc::Status status = call_once(stub);
    if (!status.ok()) {
      return absl::UnavailableError(absl::StrCat("warm-up: ", status.error_message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Side> make_side(bool is_ours, const std::string& target, const SideOptions& chosen) {
  Side side;
  if (is_ours) {
    RuntimeOptions options;
    if (!chosen.counts_calls) options.metrics_detail = MetricsDetail::kNone;
    if (chosen.assumes_connections) options.transport = EndpointTransport::kAssumed;
    options.scheduler_threads = chosen.scheduler_threads;
    options.standby_priorities = chosen.standby_priorities;
    options.limits.max_routes = chosen.max_routes;
    if (!chosen.record.empty()) options.record = RecordOptions{.path = chosen.record};
    auto runtime = Runtime::start(std::move(options));
    if (!runtime.ok()) return runtime.status();
    side.runtime = *std::move(runtime);
    auto router = side.runtime->router(target);
    if (!router.ok()) return router.status();
    side.router = *std::move(router);
  }
  side.channel = open_channel(side, target);
  side.stub = demo::v1::Orders::NewStub(side.channel);
  return side;
}

std::shared_ptr<grpc::ChannelInterface> open_channel(const Side& side, const std::string& target) {
  if (side.runtime != nullptr) return side.runtime->channel(target);
  return grpc::CreateChannel(target, grpc::InsecureChannelCredentials());
}

std::vector<std::string> paths_of(std::size_t routes) {
  if (routes == 0) return {kMethodPath};
  std::vector<std::string> paths;
  paths.reserve(routes);
  for (std::size_t route = 0; route < routes; ++route)
    paths.push_back(absl::StrCat("/bench.v1.Service", route, "/Get"));
  return paths;
}

grpc::Status call_once(Stub& stub) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + kSideCallTime);
  demo::v1::PlaceReply reply;
  return stub.Place(&context, {}, &reply);
}

absl::Status wait_for_connections(int endpoints, int port) {
  return look_until_connected(endpoints, port, [] {
    std::this_thread::sleep_for(kGlanceEvery);
    return absl::OkStatus();
  });
}

absl::Status wait_for_weights(const Side& side) {
  const auto is_by_weights = [](const PickStep& step) {
    return absl::StrContains(step.reason, "from its load reports");
  };
  const auto deadline = Clock::now() + kConnectTime;
  while (!std::ranges::any_of(side.router->explain({.path = kMethodPath}).steps, is_by_weights)) {
    if (Clock::now() > deadline)
      return absl::DeadlineExceededError("no pick goes by the load reports of endpoints");
    std::this_thread::sleep_for(kLookEvery);
  }
  std::this_thread::sleep_for(kWeightsTime);
  return absl::OkStatus();
}

absl::Status warm_up(Stub& stub, int endpoints, int port) {
  const auto call = [&stub] { return call_for(stub, kLookEvery); };
  if (auto status = look_until_connected(endpoints, port, call); !status.ok()) return status;
  return call_for(stub, kSideSettleTime);
}

}  // namespace signalbox::bench
