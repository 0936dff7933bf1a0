// SPDX-License-Identifier: Apache-2.0
//
// RetryWorld — a ChannelWorld with one server, and a route with a retry policy.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/e2e/channel_world.hpp"

namespace signalbox::test {

inline constexpr char kForever[] = "3600000";  ///< A pushback of an hour, in ms.

inline lb::RetryRules rules_of(std::uint32_t max_attempts,
                               Duration base = 1ms,
                               Duration most = 4ms) {
  return lb::RetryRules({{absl::StatusCode::kResourceExhausted, absl::StatusCode::kUnavailable},
                         max_attempts,
                         base,
                         most});
}

/// The request of a call that fails `failures` times, then succeeds.
inline EchoRequest failing(int failures, int status = grpc::StatusCode::UNAVAILABLE) {
  EchoRequest request;
  request.set_text("again");
  request.set_failures(failures);
  request.set_status(failures > 0 ? status : 0);
  return request;
}

/// As failing(), with UNAVAILABLE and the server's pushback (grpc-retry-pushback-ms).
inline EchoRequest failing_with(const std::string& pushback, int failures = 9) {
  EchoRequest request = failing(failures);
  request.set_pushback(pushback);
  return request;
}

/// A server, and a route to it with a retry policy.
struct RetryWorld : ChannelWorld {
  using Interceptors =
      std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>;

  explicit RetryWorld(const lb::RetryRules& rules,
                      std::shared_ptr<lb::RetryThrottle> throttle = nullptr,
                      Interceptors interceptors = {},
                      bool elsewhere = false,
                      channel::TracedCall::Tracing tracing = nullptr)
      : ChannelWorld(std::move(interceptors),
                     grpc::InsecureChannelCredentials(),
                     "xds:///orders",
                     std::move(throttle),
                     elsewhere,
                     std::move(tracing)) {
    retry = rules;
    connection = connect(server.address());
    publish_ready({connection});
  }

  ~RetryWorld() {
    wait_for_no_uses();
    CHECK_FALSE(connection->in_use());
    CHECK(waiting->size() == 0);
  }

  RetryWorld(const RetryWorld&) = delete;
  RetryWorld& operator=(const RetryWorld&) = delete;

  /// Makes a call, and runs `act` as soon as the call waits for its back-off.
  grpc::Status call_and(Api api,
                        grpc::ClientContext& context,
                        const EchoRequest& request,
                        const std::function<void()>& act) {
    std::thread meanwhile([&] {
      wait_for_queue(1);
      act();
    });
    EchoReply reply;
    grpc::Status status = call(*stub, api, context, request, reply);
    meanwhile.join();
    return status;
  }

  EchoServer server;
  ConnectionPtr connection;
};

/// Writes to a stream until a write fails, then reads the stream's only reply. Returns the stream's
/// status.
inline grpc::StatusCode write_until_lost(Echo::Stub& stub, grpc::ClientContext& context) {
  EchoRequest request;
  request.set_text("x");
  EchoReply reply;
  const auto stream = stub.Chat(&context);
  const auto limit = std::chrono::steady_clock::now() + 20s;
  while (stream->Write(request) && std::chrono::steady_clock::now() < limit)
    std::this_thread::yield();
  CHECK(stream->Read(&reply));
  CHECK_FALSE(stream->Read(&reply));
  return stream->Finish().error_code();
}

/// A picker that gives the answers in turn, then the last one again and again.
inline ScriptedPicker::Script in_turn(std::vector<PickResult> answers,
                                      std::atomic<std::size_t>& asked) {
  return [answers = std::move(answers), &asked](const PickArgs&) {
    return answers[std::min(asked++, answers.size() - 1)];
  };
}

/// A picker's answer without trackers.
template <typename Outcome>
PickResult answer(Outcome outcome) {
  PickResult result;
  result.outcome = std::move(outcome);
  return result;
}

}  // namespace signalbox::test
