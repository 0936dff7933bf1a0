// SPDX-License-Identifier: Apache-2.0
#include "channel/grpc/grpc_channel.hpp"

#include <atomic>

#include "absl/strings/match.h"

#include "tests/e2e/channel_world.hpp"

namespace signalbox::test {
namespace {

std::string text(const grpc::string_ref& value) {
  return {value.data(), value.size()};
}

TEST_CASE("grpc_channel: a picked call reaches the chosen server, and lets go of all it held",
          "[channel]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  INFO(to_string(api));
  ChannelWorld world;
  EchoServer one;
  EchoServer two;
  const auto first = world.connect(one.address());
  const auto second = world.connect(two.address());
  world.publish_ready({first, second});

  for (int i = 0; i < 10; ++i) {
    grpc::ClientContext context;
    EchoRequest request;
    EchoReply reply;
    request.set_text("hello");
    REQUIRE(call(*world.stub, api, context, request, reply).ok());
    CHECK(reply.text() == "hello");
    CHECK(absl::EndsWith(context.peer(), ":" + std::to_string(reply.port())));
    CHECK(text(context.GetServerInitialMetadata().find("server")->second) == "echo");
    CHECK(text(context.GetServerTrailingMetadata().find("load")->second) == "0.5");
    // The context still exists, but the ended call holds nothing any more (D1 in
    // channel/grpc/grpc_channel.hpp).
    CHECK_FALSE(world.cluster->in_use());
    CHECK_FALSE(first->in_use());
    CHECK_FALSE(second->in_use());
  }
  CHECK(one.service().calls == 5);
  CHECK(two.service().calls == 5);
  CHECK(world.stats->started() == 10);
  CHECK(world.stats->completed(0) == 10);
  CHECK(world.counts->queued() == 0);
}

TEST_CASE("grpc_channel: a status of the server is the call's, and is counted", "[channel]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  INFO(to_string(api));
  ChannelWorld world;
  EchoServer server;
  world.publish_ready({world.connect(server.address())});
  grpc::ClientContext context;
  EchoRequest request;
  EchoReply reply;
  request.set_status(grpc::StatusCode::UNAVAILABLE);
  const auto status = call(*world.stub, api, context, request, reply);
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(status.error_message() == "as asked");
  CHECK(server.service().calls == 1);  // The call was sent, so it is not made again.
  CHECK(world.stats->completed(grpc::StatusCode::UNAVAILABLE) == 1);
  CHECK(world.counts->repicked() == 0);
  world.wait_for_no_uses();
}

TEST_CASE("grpc_channel: a failed pick fails the call with its status, the target and the node",
          "[channel][A57]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  INFO(to_string(api));
  ChannelWorld world;
  world.publish_failure(absl::UnavailableError("no endpoint is ready"));
  grpc::ClientContext context;
  EchoReply reply;
  const auto status = call(*world.stub, api, context, {}, reply);
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(status.error_message() ==
        "xds:///orders: cluster orders: no endpoint is ready (node ID: node-7)");
  CHECK(world.stats->started() == 0);
  world.wait_for_no_uses();
}

TEST_CASE("grpc_channel: a dropped call fails even if it is wait_for_ready", "[channel]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  INFO(to_string(api));
  ChannelWorld world;
  world.publish([](const PickArgs&) {
    PickResult result;
    result.outcome = Drop{absl::UnavailableError("dropped by category lb")};
    return result;
  });
  grpc::ClientContext context;
  EchoReply reply;
  context.set_wait_for_ready(true);
  const auto status = call(*world.stub, api, context, {}, reply);
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(absl::StrContains(status.error_message(), ": cluster orders: dropped by category lb"));
}

TEST_CASE("grpc_channel: the picker sees path and headers", "[channel]") {
  ChannelWorld world;
  std::string seen;
  world.publish([&](const PickArgs& args) {
    seen = std::string(args.path);
    args.headers->each("tenant",
                       [&](absl::string_view value) { seen += " " + std::string(value); });
    args.headers->each("absent", [&](absl::string_view) { seen += " ?"; });
    PickResult result;
    result.outcome = Drop{absl::UnavailableError("seen")};
    return result;
  });
  grpc::ClientContext context;
  EchoReply reply;
  context.AddMetadata("tenant", "blue");
  context.AddMetadata("tenant", "green");
  CHECK_FALSE(call(*world.stub, Api::kSync, context, {}, reply).ok());
  CHECK(seen == "/signalbox.test.Echo/Unary blue green");
}

TEST_CASE("grpc_channel: a route's timeout shortens the deadline, and never lengthens it",
          "[channel][A31]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  INFO(to_string(api));
  const auto [route, own] = GENERATE(
      table<Duration, std::optional<Duration>>({{80ms, std::nullopt}, {80ms, 1h}, {1h, 80ms}}));
  ChannelWorld world;
  EchoServer server;
  world.timeout = route;
  world.publish_ready({world.connect(server.address())});
  grpc::ClientContext context;
  EchoRequest request;
  EchoReply reply;
  request.set_hold(true);
  if (own) {
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::duration_cast<std::chrono::milliseconds>(*own));
  }
  const auto start = std::chrono::steady_clock::now();
  const auto status = call(*world.stub, api, context, request, reply);
  CHECK(status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  CHECK(std::chrono::steady_clock::now() - start >= 75ms);
  CHECK(std::chrono::steady_clock::now() - start < 10s);
  CHECK(world.stats->completed(grpc::StatusCode::DEADLINE_EXCEEDED) == 1);
  world.wait_for_no_uses();
}

TEST_CASE("grpc_channel: as the application hears of the end, the cluster is let go",
          "[channel][A31-4]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  const bool queued = GENERATE(false, true);
  const bool fails = GENERATE(false, true);
  INFO(to_string(api) << (queued ? ", after it waited" : "") << (fails ? ", failed" : ""));
  ChannelWorld world;
  EchoServer server;
  const auto connection = world.connect(server.address());
  const auto answer = [&] {
    fails ? world.publish_failure(absl::UnavailableError("all down"))
          : world.publish_ready({connection});
  };
  std::optional<LatePublisher> late;
  if (queued) {
    world.publish_queue();
    late.emplace(world, answer);
  } else {
    answer();
  }
  grpc::ClientContext context;
  EchoReply reply;
  CHECK(call(*world.stub, api, context, {}, reply).ok() == !fails);
  CHECK_FALSE(world.cluster->in_use());
}

TEST_CASE("grpc_channel: cancelling a call that was sent cancels it at the server", "[channel]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  const bool queued = GENERATE(false, true);
  INFO(to_string(api) << (queued ? ", after it waited" : ""));
  ChannelWorld world;
  EchoServer server;
  const auto connection = world.connect(server.address());
  if (!queued) world.publish_ready({connection});
  grpc::ClientContext context;
  EchoRequest request;
  EchoReply reply;
  request.set_hold(true);
  std::thread other([&] {
    if (queued) {
      world.wait_for_queue(1);
      world.publish_ready({connection});
    }
    while (server.service().calls == 0)
      std::this_thread::yield();
    context.TryCancel();
  });
  const auto status = call(*world.stub, api, context, request, reply);
  other.join();
  CHECK(status.error_code() == grpc::StatusCode::CANCELLED);
  world.wait_for_no_uses();
}

TEST_CASE("grpc_channel: 200 calls in flight are unharmed by snapshots that change", "[channel]") {
  ChannelWorld world;
  EchoServer one;
  EchoServer two;
  const auto first = world.connect(one.address());
  const auto second = world.connect(two.address());
  world.publish_ready({first, second});

  struct Call {
    grpc::ClientContext context;
    EchoReply reply;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<EchoReply>> reader;
  };

  grpc::CompletionQueue queue;
  std::vector<Call> calls(200);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    EchoRequest request;
    request.set_text(std::to_string(i));
    calls[i].reader = world.stub->AsyncUnary(&calls[i].context, request, &queue);
    calls[i].reader->Finish(&calls[i].reply, &calls[i].status, &calls[i]);
    if (i % 20 == 0) world.publish_ready({i % 40 == 0 ? second : first});
    if (i % 50 == 25) world.publish_queue();
  }
  world.publish_ready({second});
  void* tag = nullptr;
  bool ok = false;
  for (std::size_t i = 0; i < calls.size(); ++i)
    REQUIRE(queue.Next(&tag, &ok));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    CHECK(calls[i].status.ok());
    CHECK(calls[i].reply.text() == std::to_string(i));
  }
  CHECK(one.service().calls + two.service().calls == 200);
  CHECK(world.stats->completed(0) == 200);
  CHECK(world.counts->queued() > 0);
  queue.Shutdown();
  CHECK_FALSE(queue.Next(&tag, &ok));
  world.wait_for_no_uses();
  CHECK_FALSE(first->in_use());
  CHECK_FALSE(second->in_use());
}

TEST_CASE("grpc_channel: a prepared call that is never started leaves nothing behind",
          "[channel]") {
  const bool ready = GENERATE(false, true);
  ChannelWorld world;
  EchoServer server;
  if (ready) world.publish_ready({world.connect(server.address())});
  grpc::CompletionQueue queue;
  {
    // The test uses a stream, because gRPC itself leaks the request of a unary call that is never
    // started.
    grpc::ClientContext context;
    const auto stream = world.stub->PrepareAsyncChat(&context, &queue);
  }
  queue.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  CHECK_FALSE(queue.Next(&tag, &ok));
  CHECK(world.stats->started() == 0);
  world.wait_for_no_uses();
}

TEST_CASE("grpc_channel: a streaming call works, whether or not it waited", "[channel]") {
  const bool queued = GENERATE(false, true);
  ChannelWorld world;
  EchoServer server;
  const auto connection = world.connect(server.address());
  if (!queued) world.publish_ready({connection});
  std::thread later;
  if (queued) {
    later = std::thread([&] {
      world.wait_for_queue(1);
      world.publish_ready({connection});
    });
  }
  {
    grpc::ClientContext context;
    const auto stream = world.stub->Chat(&context);
    EchoRequest request;
    EchoReply reply;
    for (const char* word : {"a", "b", "c"}) {
      request.set_text(word);
      REQUIRE(stream->Write(request));
      REQUIRE(stream->Read(&reply));
      CHECK(reply.text() == word);
    }
    CHECK(stream->WritesDone());
    CHECK_FALSE(stream->Read(&reply));
    CHECK(stream->Finish().ok());
    CHECK_FALSE(world.cluster->in_use());
  }
  if (later.joinable()) later.join();
  CHECK(world.stats->completed(0) == 1);
}

TEST_CASE("grpc_channel: a call that someone makes on the connection itself is not observed",
          "[channel]") {
  ChannelWorld world;
  EchoServer server;
  const auto connection = world.connect(server.address());
  world.publish_ready({connection});
  const auto& connected = static_cast<const actors::GrpcConnection&>(*connection);
  const auto stub = Echo::NewStub(connected.channel());
  grpc::ClientContext context;
  context.set_authority(std::string(connected.authority()));
  EchoReply reply;
  CHECK(stub->Unary(&context, {}, &reply).ok());
  CHECK(world.stats->started() == 0);
}

TEST_CASE("grpc_channel: after the runtime's end, new calls fail with a clear text", "[channel]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  INFO(to_string(api));
  ChannelWorld world;
  EchoServer server;
  world.publish_ready({world.connect(server.address())});
  world.waiting->close();
  grpc::ClientContext context;
  EchoReply reply;
  context.set_wait_for_ready(true);
  const auto status = call(*world.stub, api, context, {}, reply);
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(absl::StrContains(status.error_message(), ": the signalbox runtime has been shut down"));
  CHECK(world.channel->GetState(false) == GRPC_CHANNEL_SHUTDOWN);
}

}  // namespace
}  // namespace signalbox::test
