// SPDX-License-Identifier: Apache-2.0
//
// The events that a program's CallObserver gets, in their exact order, for drop-in calls.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"

#include "tests/e2e/conversation.hpp"
#include "tests/e2e/retry_world.hpp"
#include "tests/support/grpc_leak.hpp"
#include "tests/support/recording_observer.hpp"

namespace signalbox::test::call_observer_test {
namespace {

using testing::RecordingObserver;

struct Observed {
  // The events after the call's beginning.
  std::string events() const {
    const std::string all = observer->events();
    CHECK(absl::StartsWith(all, "began /"));
    CHECK(all.find("began /", 1) == std::string::npos);
    CHECK_FALSE(observer->went_back());
    const std::size_t end = all.find(", ");
    return end == std::string::npos ? "" : all.substr(end + 2);
  }

  void until(const std::string& event) const {
    const auto limit = std::chrono::steady_clock::now() + 20s;
    while (!absl::StrContains(observer->events(), event) &&
           std::chrono::steady_clock::now() < limit)
      std::this_thread::yield();
    REQUIRE(absl::StrContains(observer->events(), event));
  }

  std::shared_ptr<RecordingObserver> observer = std::make_shared<RecordingObserver>();
  std::shared_ptr<std::vector<std::string>> complaints =
      std::make_shared<std::vector<std::string>>();
  channel::TracedCall::Tracing tracing =
      std::make_shared<const channel::CallTracing>(channel::CallTracing{
          observer, "xds:///orders", [complaints = complaints](const std::string& text) {
            complaints->push_back(text);
          }});
};

struct ObservedWorld : Observed, ChannelWorld {
  ObservedWorld()
      : ChannelWorld(
            {}, grpc::InsecureChannelCredentials(), "xds:///orders", nullptr, false, tracing) {}
};

struct ObservedRetries : Observed, RetryWorld {
  explicit ObservedRetries(std::uint32_t max_attempts = 3)
      : RetryWorld(rules_of(max_attempts), nullptr, {}, false, tracing) {}
};

const auto kApis = {Api::kSync, Api::kAsync, Api::kCallback};
const char kOnce[] = "attempt 0, sent orders, attempt ends 0, ends 0";

Manner two_messages() {
  EchoRequest request;
  request.set_text("two");
  request.set_times(2);
  return {.name = "two", .requests = {request, request}};
}

TEST_CASE("call_observer: a call has one attempt, whatever its kind and API",
          "[channel][trace][A72]") {
  for (const Way& way : ways()) {
    INFO(way.name);
    ObservedRetries world;
    const Transcript ours = converse(way, two_messages(), world.channel, world.server.service());
    REQUIRE(ours.status.ok());
    CHECK(world.events() == kOnce);
    CHECK(world.observer->target() == "xds:///orders");
    CHECK(world.observer->endpoint() == world.server.address().str());
  }
}

TEST_CASE("call_observer: a call that waits says for what, and when the reason changes",
          "[channel][trace][A121]") {
  const Api api = GENERATE(values(kApis));
  INFO(to_string(api));
  ObservedWorld world;
  const EchoServer server;
  const auto connection = world.connect(server.address());
  std::thread later([&] {
    world.until("resolving");
    world.publish_queue();
    world.until("connecting");
    world.publish_ready({connection});
  });
  grpc::ClientContext context;
  EchoReply reply;
  CHECK(call(*world.stub, api, context, {}, reply).ok());
  later.join();
  CHECK(world.events() ==
        "call's delay resolving, delay ends, attempt 0, delay connecting, delay ends, "
        "sent orders, attempt ends 0, ends 0");
  const auto reasons = world.observer->reasons();
  REQUIRE(reasons.size() == 2);
  CHECK(absl::StartsWith(reasons[0], "waiting for "));
  CHECK(reasons[1] == "cluster orders: no connection yet");
}

TEST_CASE("call_observer: a call that is wait_for_ready waits on a failing picker with its error",
          "[channel][trace][A121]") {
  const Api api = GENERATE(values(kApis));
  INFO(to_string(api));
  ObservedWorld world;
  const EchoServer server;
  const auto connection = world.connect(server.address());
  world.publish_failure(absl::UnavailableError("too far"));
  std::thread later([&] {
    world.until("failing");
    world.publish_failure(absl::UnavailableError("still too far"));
    world.until("reason");
    world.publish_ready({connection});
  });
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  EchoReply reply;
  CHECK(call(*world.stub, api, context, {}, reply).ok());
  later.join();
  CHECK(world.events() ==
        "attempt 0, delay picker_failing_with_wait_for_ready, reason, delay ends, sent orders, "
        "attempt ends 0, ends 0");
  const auto reasons = world.observer->reasons();
  REQUIRE(reasons.size() == 2);
  CHECK(absl::StrContains(reasons[0], "too far"));
  CHECK(absl::StrContains(reasons[1], "still too far"));
}

TEST_CASE("call_observer: a connection that dies before the call is sent is a delay of the attempt",
          "[channel][trace][A121]") {
  const Api api = GENERATE(values(kApis));
  INFO(to_string(api));
  ObservedWorld world;
  EchoServer server;
  const EchoServer other;
  const auto connection = world.connect(server.address());
  const auto next = world.connect(other.address());
  world.publish_ready({connection});
  kill(server, connection);
  std::thread later([&] {
    world.until("mismatch");
    world.publish_ready({next});
  });
  grpc::ClientContext context;
  EchoReply reply;
  CHECK(call(*world.stub, api, context, {}, reply).ok());
  later.join();
  CHECK(world.events() ==
        "attempt 0, delay subchannel_state_mismatch, delay ends, sent orders, attempt ends 0, "
        "ends 0");
  CHECK(world.observer->endpoint() == other.address().str());
}

TEST_CASE("call_observer: each attempt of a retried call is seen, and has headers of its own",
          "[channel][trace][A72][A44]") {
  const Api api = GENERATE(values(kApis));
  INFO(to_string(api));
  ObservedRetries world;
  world.observer->header = "x-tenant";
  grpc::ClientContext context;
  context.AddMetadata("x-tenant", "blue");
  EchoReply reply;
  CHECK(call(*world.stub, api, context, failing(2), reply).ok());
  CHECK(reply.saw() ==
        "no deadline x-tenant=617474656d70742033");  // The hex digits are "attempt 3".
  CHECK(world.events() ==
        "attempt 0, sent orders, attempt ends 14 retry, "
        "attempt 1, sent orders, attempt ends 14 retry, "
        "attempt 2, sent orders, attempt ends 0, ends 0");
}

TEST_CASE("call_observer: a stream that is made again has the events of a unary call",
          "[channel][trace][A72][A44]") {
  for (const Way& way : ways()) {
    for (const int failures : {1, 9}) {
      INFO(way.name << ", " << failures << " failures");
      ObservedRetries world(2);
      world.server.service().failing.times = failures;
      converse(way, two_messages(), world.channel, world.server.service());
      CHECK(world.events() == (failures == 1 ? "attempt 0, sent orders, attempt ends 14 retry, "
                                               "attempt 1, sent orders, attempt ends 0, ends 0"
                                             : "attempt 0, sent orders, attempt ends 14 retry, "
                                               "attempt 1, sent orders, attempt ends 14, ends 14"));
    }
  }
}

TEST_CASE("call_observer: a call without an endpoint has no attempt, unless it may be retried",
          "[channel][trace]") {
  const Api api = GENERATE(values(kApis));
  INFO(to_string(api));
  grpc::ClientContext context;
  EchoReply reply;
  SECTION("without a retry policy") {
    ObservedWorld world;
    world.publish_failure(absl::UnavailableError("too far"));
    CHECK_FALSE(call(*world.stub, api, context, {}, reply).ok());
    CHECK(world.events() == "ends 14");
  }
  SECTION("with a retry policy") {
    ObservedRetries world(2);
    world.publish_failure(absl::UnavailableError("too far"));
    CHECK_FALSE(call(*world.stub, api, context, {}, reply).ok());
    CHECK(world.events() ==
          "attempt 0, attempt ends 14 retry, attempt 1, attempt ends 14, ends 14");
  }
}

TEST_CASE("call_observer: a call that is cancelled ends what it has begun", "[channel][trace]") {
  const Api api = GENERATE(values(kApis));
  INFO(to_string(api));
  grpc::ClientContext context;
  EchoReply reply;
  EchoRequest request;
  SECTION("while it waits") {
    ObservedWorld world;
    std::thread later([&] {
      world.until("resolving");
      context.TryCancel();
    });
    CHECK(call(*world.stub, api, context, request, reply).error_code() ==
          grpc::StatusCode::CANCELLED);
    later.join();
    CHECK(world.events() == "call's delay resolving, delay ends, ends 1");
  }
  SECTION("while the server has it") {
    ObservedRetries world;
    request.set_hold(true);
    std::thread later([&] {
      world.until("sent");
      context.TryCancel();
    });
    CHECK(call(*world.stub, api, context, request, reply).error_code() ==
          grpc::StatusCode::CANCELLED);
    later.join();
    CHECK(world.events() == "attempt 0, sent orders, attempt ends 1, ends 1");
  }
}

TEST_CASE("call_observer: a call that the program gives up is cancelled, and one never made is not",
          "[channel][trace]") {
  ObservedRetries world;
  SECTION("a stream without its end") {
    {
      grpc::ClientContext context;
      const auto stream = world.stub->Chat(&context);
      EchoReply reply;
      CHECK(stream->Write({}));
      CHECK(stream->Read(&reply));
      CHECK(world.events() == "attempt 0, sent orders");
    }
    CHECK(world.events() == "attempt 0, sent orders, attempt ends 1, ends 1");
  }
  SECTION("a call that was only prepared") {
    grpc::CompletionQueue queue;
    {
      const GrpcLeak leak;
      grpc::ClientContext context;
      const auto reader = world.stub->PrepareAsyncUnary(&context, {}, &queue);
      CHECK(reader != nullptr);
    }
    queue.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    CHECK_FALSE(queue.Next(&tag, &ok));
    CHECK(world.events().empty());
  }
}

TEST_CASE("call_observer: calls that it does not want, and calls with an event that throws, go on",
          "[channel][trace]") {
  const Api api = GENERATE(values(kApis));
  INFO(to_string(api));
  ObservedRetries world;
  grpc::ClientContext context;
  EchoReply reply;
  SECTION("not wanted") {
    world.observer->wants = false;
    CHECK(call(*world.stub, api, context, failing(1), reply).ok());
    CHECK(world.observer->events().empty());
    CHECK(world.complaints->empty());
  }
  SECTION("throws") {
    world.observer->throws_at = "sent orders";
    CHECK(call(*world.stub, api, context, failing(1), reply).ok());
    CHECK(world.events() == "attempt 0, sent orders");
    CHECK(world.complaints->size() == 1);
  }
}

}  // namespace
}  // namespace signalbox::test::call_observer_test
