// SPDX-License-Identifier: Apache-2.0
//
// What HTTP filters decide about calls of the drop-in channel: delays, ends, added headers.
#include <atomic>

#include "tests/e2e/channel_world.hpp"
#include "tests/support/filter_fixture.hpp"

namespace signalbox::test {
namespace {

using signalbox::testing::ScriptedFilter;

lb::FilterChainPtr chain_of(std::function<void(FilterCall&)> script) {
  return std::make_shared<const lb::FilterChain>(
      lb::FilterChain{.filters = {std::make_shared<const ScriptedFilter>(std::move(script))}});
}

TEST_CASE("filters: a delayed call waits without a thread, and is then as any other",
          "[channel][filter][A33]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  const bool late = GENERATE(false, true);
  INFO(to_string(api) << (late ? ", its route comes later" : ""));
  ChannelWorld world;
  EchoServer server;
  const auto connection = world.connect(server.address());
  world.filters = chain_of([](FilterCall& call) { call.delay(20ms); });
  if (!late) world.publish_ready({connection});
  std::thread later([&] {
    if (!late) return;
    world.wait_for_queue(1);
    world.publish_ready({connection});
  });
  const auto began = std::chrono::steady_clock::now();
  grpc::ClientContext context;
  EchoRequest request;
  EchoReply reply;
  request.set_text("at last");
  const auto status = call(*world.stub, api, context, request, reply);
  later.join();
  INFO(status.error_message());
  REQUIRE(status.ok());
  CHECK(std::chrono::steady_clock::now() - began >= 20ms);
  CHECK(reply.text() == "at last");
  CHECK(context.GetServerTrailingMetadata().count("load") == 1);
  CHECK(world.counts->queued() == 1);
  CHECK(world.waiting->size() == 0);
  world.wait_for_no_uses();
}

TEST_CASE("filters: a call can be cancelled while it is delayed, whatever is published",
          "[channel][filter][A33]") {
  ChannelWorld world;
  EchoServer server;
  const auto connection = world.connect(server.address());
  const auto hold = std::make_shared<int>(0);
  world.filters = chain_of([&](FilterCall& call) { call.delay(1h, hold); });
  world.publish_ready({connection});
  grpc::ClientContext context;
  std::thread other([&] {
    world.wait_for_queue(1);
    for (int i = 0; i < 100; ++i)
      world.publish_ready({connection});
    CHECK(world.waiting->size() == 1);
    context.TryCancel();
  });
  EchoReply reply;
  const auto status = world.stub->Unary(&context, {}, &reply);
  other.join();
  CHECK(status.error_code() == grpc::StatusCode::CANCELLED);
  CHECK(server.service().calls == 0);
  world.wait_for_no_uses();
  world.filters = nullptr;
  world.publish_ready({connection});
  CHECK(hold.use_count() == 1);
}

TEST_CASE("filters: a delayed call fails when the runtime ends", "[channel][filter][A33]") {
  ChannelWorld world;
  world.filters = chain_of([](FilterCall& call) { call.delay(1h); });
  world.publish_ready({});
  std::thread other([&] {
    world.wait_for_queue(1);
    world.waiting->close();
  });
  grpc::ClientContext context;
  EchoReply reply;
  const auto status = world.stub->Unary(&context, {}, &reply);
  other.join();
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  world.wait_for_no_uses();
}

TEST_CASE("filters: OK ends a unary call without its message, and a stream as it should",
          "[channel][filter][A33]") {
  const bool delayed = GENERATE(false, true);
  ChannelWorld world;
  world.filters = chain_of([&](FilterCall& call) {
    if (delayed) call.delay(1ms);
    call.end(absl::OkStatus());
  });
  world.publish_ready({});
  EchoReply reply;
  {
    grpc::ClientContext context;
    CHECK(world.stub->Unary(&context, {}, &reply).error_code() == grpc::StatusCode::UNIMPLEMENTED);
  }
  grpc::ClientContext context;
  const auto stream = world.stub->Expand(&context, {});
  CHECK_FALSE(stream->Read(&reply));
  CHECK(stream->Finish().ok());
}

TEST_CASE("filters: what one adds is sent once, beside the application's own",
          "[channel][filter][A39]") {
  const bool delayed = GENERATE(false, true);
  ChannelWorld world;
  EchoServer server;
  const auto connection = world.connect(server.address());
  world.filters = chain_of([&](FilterCall& call) {
    call.headers().each("x-own", [&](absl::string_view value) {
      CHECK(call.add_header("x-seen", std::string(value)));
    });
    if (delayed) call.delay(1ms);
  });
  world.publish_ready({connection});
  grpc::ClientContext context;
  context.AddMetadata("x-own", "1");
  EchoReply reply;
  REQUIRE(world.stub->Unary(&context, {}, &reply).ok());
  CHECK(reply.saw() == "no deadline x-own=31 x-seen=31");
}

TEST_CASE("filters: no wake-up is lost while delays end and pickers come and go",
          "[channel][filter][race]") {
  ChannelWorld world;
  EchoServer server;
  const auto connection = world.connect(server.address());
  world.filters = chain_of([](FilterCall& call) {
    call.delay(std::chrono::microseconds(call.draw_below(Salt::kFilter, 2'000)));
  });
  std::atomic<bool> stop{false};
  std::thread publisher([&] {
    while (!stop) {
      world.publish_queue();
      world.publish(nullptr);
      world.publish_ready({connection});
    }
  });
  RaceEnds ends;
  race_calls(*world.stub, 150, ends);
  stop = true;
  publisher.join();
  CHECK(ends.wrong == 0);
  CHECK(ends.ok > 300);
  CHECK(ends.ok + ends.expected == 600);
  CHECK(world.waiting->size() == 0);
  world.wait_for_no_uses();
}

}  // namespace
}  // namespace signalbox::test
