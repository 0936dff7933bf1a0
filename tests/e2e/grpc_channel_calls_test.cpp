// SPDX-License-Identifier: Apache-2.0
//
// Each started call is counted once, with the status that the application got, through every API,
// no matter how far it got. Calls that wait for an endpoint are counted by the reason of the wait.
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/conversation.hpp"
#include "tests/e2e/retry_world.hpp"
#include "tests/support/grpc_leak.hpp"

namespace signalbox::test {
namespace {

using Code = grpc::StatusCode;
using Calls = std::map<int, std::int64_t>;  ///< By code; only codes that occurred.

// The counted calls, by status code. A call is counted when the application gets its status, or
// when its context ends.
Calls calls_of(const ChannelWorld& world) {
  Calls calls;
  for (std::size_t code = 0; code < kStatusCodes; ++code) {
    if (const std::int64_t count = world.callers->calls(code); count != 0)
      calls[static_cast<int>(code)] = count;
  }
  return calls;
}

std::int64_t sum_of(const StripedHistogram* histogram) {
  if (histogram == nullptr) return 0;
  const auto buckets = histogram->counts().buckets;
  return std::accumulate(buckets.begin(), buckets.end(), std::int64_t{0});
}

std::int64_t waits(const ChannelWorld& world, DelayType type) {
  return sum_of(world.callers->waits_of(type));
}

Manner two_messages() {
  EchoRequest request;
  request.set_text("two");
  request.set_times(2);
  return {.name = "two", .requests = {request, request}};
}

TEST_CASE("calls: every kind of call counts once when it succeeds", "[channel][calls]") {
  for (const Way& way : ways()) {
    INFO(way.name);
    RetryWorld world(rules_of(3));
    const Transcript ours = converse(way, two_messages(), world.channel, world.server.service());
    REQUIRE(ours.status.ok());
    CHECK(calls_of(world) == Calls{{Code::OK, 1}});
    CHECK(sum_of(&world.callers->durations()) == 1);
    CHECK(sum_of(&world.stats->durations()) == 1);
    CHECK(waits(world, {DelayReason::kConnecting}) == 0);
  }
}

TEST_CASE("calls: a call that is retried counts once, and its attempts as often as they were made",
          "[channel][calls][A44]") {
  for (const Way& way : ways()) {
    for (const int failures : {1, 2, 9}) {
      for (const int reads : {0, 1}) {
        INFO(way.name << ", " << failures << " failures, after " << reads << " messages");
        RetryWorld world(rules_of(3));
        auto& service = world.server.service();
        service.failing.reads = reads;
        service.failing.times = failures;
        const Transcript ours = converse(way, two_messages(), world.channel, service);
        const bool succeeds = failures < 3;
        CHECK(ours.status.ok() == succeeds);
        CHECK(calls_of(world) == Calls{{succeeds ? Code::OK : Code::UNAVAILABLE, 1}});
        CHECK(sum_of(&world.callers->durations()) == 1);
        CHECK(sum_of(&world.stats->durations()) == world.stats->started());
      }
    }
  }
}

TEST_CASE("calls: a call that reaches no endpoint counts with the code that its caller gets",
          "[channel][calls]") {
  struct Row {
    std::string name;
    std::function<void(ChannelWorld&)> publish;
    std::function<void(grpc::ClientContext&)> prepare;
    Code code;
  };

  const auto fails = [](ChannelWorld& world) {
    world.publish_failure(absl::UnavailableError("all endpoints failed"));
  };
  const std::vector<Row> rows{
      {"its pick fails", fails, nullptr, Code::UNAVAILABLE},
      {"its pick fails, and its retry policy gives up",
       [&](ChannelWorld& world) {
         world.retry = rules_of(3);
         fails(world);
       },
       nullptr,
       Code::UNAVAILABLE},
      {"it is dropped",
       [](ChannelWorld& world) {
         world.publish([](const PickArgs&) {
           PickResult result;
           result.outcome = Drop{absl::ResourceExhaustedError("too many")};
           return result;
         });
       },
       nullptr,
       Code::RESOURCE_EXHAUSTED},
      {"its deadline passes while it waits",
       [](ChannelWorld&) {},
       [](grpc::ClientContext& context) {
         context.set_deadline(std::chrono::system_clock::now() + 20ms);
       },
       Code::DEADLINE_EXCEEDED},
      {"its metadata cannot be sent",
       fails,
       [](grpc::ClientContext& context) { context.AddMetadata("Upper", "case"); },
       Code::INTERNAL}};
  EchoServer server;  // No picker leads to it.
  for (const Way& way : ways()) {
    for (const Row& row : rows) {
      INFO(way.name << ": " << row.name);
      ChannelWorld world;
      row.publish(world);
      Manner manner = two_messages();
      manner.prepare = row.prepare;
      converse(way, manner, world.channel, server.service());
      CHECK(calls_of(world) == Calls{{row.code, 1}});
      CHECK(sum_of(&world.callers->durations()) == 1);
      CHECK(world.stats->started() == 0);
      CHECK(sum_of(&world.stats->durations()) == 0);
      const bool waited = row.code == Code::DEADLINE_EXCEEDED;
      CHECK(waits(world, {DelayReason::kResolving}) == (waited ? 1 : 0));
    }
  }
}

TEST_CASE("calls: a call that is cancelled counts as CANCELLED", "[channel][calls]") {
  ChannelWorld world;
  SECTION("while it waits") {
    const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
    INFO(to_string(api));
    grpc::ClientContext context;
    EchoReply reply;
    std::thread canceller([&] {
      world.wait_for_queue(1);
      context.TryCancel();
    });
    CHECK(call(*world.stub, api, context, {}, reply).error_code() == Code::CANCELLED);
    canceller.join();
    CHECK(calls_of(world) == Calls{{Code::CANCELLED, 1}});
  }
  SECTION("by the end of its context") {
    EchoServer server;
    world.publish_ready({world.connect(server.address())});
    {
      grpc::ClientContext context;
      const auto chat = world.stub->Chat(&context);
      CHECK(chat->Write({}));
      EchoReply reply;
      CHECK(chat->Read(&reply));
      CHECK(calls_of(world).empty());
    }
    CHECK(calls_of(world) == Calls{{Code::CANCELLED, 1}});
    CHECK(sum_of(&world.stats->durations()) == 1);
  }
}

TEST_CASE("calls: a call that is prepared and never started is no call", "[channel][calls]") {
  EchoServer server;
  ChannelWorld world;
  world.publish_ready({world.connect(server.address())});
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
  CHECK(calls_of(world).empty());
}

TEST_CASE("calls: a wait has a part for each of its reasons", "[channel][calls]") {
  EchoServer server;
  ChannelWorld world;
  const auto connection = world.connect(server.address());
  std::thread later([&] {
    world.wait_for_queue(1);
    world.publish_queue();
    world.publish_failure(absl::UnavailableError("all endpoints failed"));
    world.publish([](const PickArgs&) {
      PickResult result;
      result.priority = 1;
      return result;
    });
    world.publish_ready({connection});
  });
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  EchoReply reply;
  const auto status = world.stub->Unary(&context, {}, &reply);
  later.join();
  REQUIRE(status.ok());
  CHECK(calls_of(world) == Calls{{Code::OK, 1}});
  CHECK(waits(world, {DelayReason::kResolving}) == 1);
  CHECK(waits(world, {DelayReason::kConnecting}) == 1);
  CHECK(waits(world, {DelayReason::kFailing}) == 1);
  CHECK(waits(world, {DelayReason::kConnecting, 1}) == 1);
}

TEST_CASE("calls: a connection that died unnoticed is a reason to wait", "[channel][calls]") {
  EchoServer first;
  EchoServer second;
  ChannelWorld world;
  const auto dead = world.connect(first.address());
  const auto alive = world.connect(second.address());
  world.publish_ready({dead});
  kill(first, dead);
  std::thread later([&] {
    world.wait_for_queue(1);
    world.publish_ready({alive});
  });
  grpc::ClientContext context;
  EchoReply reply;
  const auto status = world.stub->Unary(&context, {}, &reply);
  later.join();
  REQUIRE(status.ok());
  CHECK(calls_of(world) == Calls{{Code::OK, 1}});
  CHECK(waits(world, {DelayReason::kStalePick}) == 1);
}

TEST_CASE("calls: racing ends count once each", "[channel][calls]") {
  EchoServer server;
  ChannelWorld world;
  world.publish_ready({world.connect(server.address())});
  RaceEnds ends;
  race_calls(*world.stub, 100, ends);
  CHECK(ends.wrong == 0);
  std::int64_t all = 0;
  for (const auto& [code, count] : calls_of(world))
    all += count;
  CHECK(all == 400);
  CHECK(calls_of(world)[Code::OK] == ends.ok);
  CHECK(sum_of(&world.callers->durations()) == 400);
}

}  // namespace
}  // namespace signalbox::test
