// SPDX-License-Identifier: Apache-2.0
#include "channel/unsent_call.hpp"
#include "tests/e2e/channel_world.hpp"

namespace signalbox::test {
namespace {

bool is_ready(const ConnectionPtr& connection) {
  return static_cast<const actors::GrpcConnection&>(*connection).is_ready();
}

// The server is gone, and gRPC has noticed it; the snapshot has not.
void kill(EchoServer& server, const ConnectionPtr& connection) {
  server.stop();
  const auto limit = std::chrono::steady_clock::now() + 10s;
  while (is_ready(connection) && std::chrono::steady_clock::now() < limit)
    std::this_thread::yield();
  REQUIRE_FALSE(is_ready(connection));
}

TEST_CASE("grpc_channel: a call that was given a dead connection waits, and is picked again",
          "[channel][repick]") {
  const Api api = GENERATE(Api::kSync, Api::kAsync, Api::kCallback);
  const bool wait_for_ready = GENERATE(false, true);
  INFO(to_string(api));
  ChannelWorld world;
  EchoServer dying;
  EchoServer living;
  const auto dead = world.connect(dying.address());
  const auto alive = world.connect(living.address());
  world.publish_ready({dead});
  kill(dying, dead);
  std::thread later([&] {
    world.wait_for_queue(1);
    world.publish_ready({alive});
  });
  grpc::ClientContext context;
  EchoReply reply;
  context.set_wait_for_ready(wait_for_ready);
  CHECK(call(*world.stub, api, context, {}, reply).ok());
  later.join();
  CHECK(reply.port() == living.service().port);
  CHECK(world.counts->repicked() == 1);
  world.wait_for_no_uses();
  CHECK_FALSE(dead->in_use());
}

// Bound while the connection lives, started after its death: what threads that are interrupted
// between the two can run into at any time.
TEST_CASE("unsent_call: a call whose connection died before it was sent is made again",
          "[channel][repick]") {
  ChannelWorld world;
  EchoServer dying;
  EchoServer living;
  const auto dead = world.connect(dying.address());
  const auto alive = world.connect(living.address());
  world.publish_ready({dead});
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  EchoRequest request;
  EchoReply reply;
  grpc::Status status;
  context.AddMetadata("tenant", "blue");
  context.set_wait_for_ready(GENERATE(false, true));
  auto reader = [&] {
    request.set_text("twice");
    return world.stub->PrepareAsyncUnary(&context, request, &queue);
  }();
  kill(dying, dead);
  const auto finish = [&] {
    void* tag = nullptr;
    bool ok = false;
    REQUIRE(queue.Next(&tag, &ok));
    CHECK(tag == &status);
    CHECK(ok);
    CHECK(world.counts->repicked() > 0);
    queue.Shutdown();
    CHECK_FALSE(queue.Next(&tag, &ok));
  };
  const auto start = [&] {
    reader->StartCall();
    reader->Finish(&reply, &status, &status);
  };

  SECTION("on the connection that is there now") {
    world.publish_ready({alive});
    start();
    finish();
    REQUIRE(status.ok());
    CHECK(reply.text() == "twice");
    CHECK(reply.port() == living.service().port);
    CHECK(context.GetServerInitialMetadata().count("server") == 1);
    CHECK(context.GetServerTrailingMetadata().count("load") == 1);
    CHECK(world.stats->started() == 2);
    CHECK(world.stats->completed(0) == 1);
  }
  SECTION("after it has waited for one") {
    start();
    std::thread later([&] {
      world.wait_for_queue(1);
      world.publish_ready({alive});
    });
    finish();
    later.join();
    REQUIRE(status.ok());
    CHECK(reply.text() == "twice");
  }
  SECTION("and can be cancelled while it waits for one") {
    start();
    std::thread later([&] {
      world.wait_for_queue(1);
      context.TryCancel();
    });
    finish();
    later.join();
    CHECK(status.error_code() == grpc::StatusCode::CANCELLED);
  }
  SECTION("and fails as the next pick says") {
    world.publish([](const PickArgs&) {
      PickResult result;
      result.outcome = Drop{absl::UnavailableError("nothing left")};
      return result;
    });
    start();
    finish();
    CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
    CHECK(status.error_message() == "nothing left (cluster orders, target xds:///orders, node id node-7)");
  }
  world.wait_for_no_uses();
  CHECK_FALSE(dead->in_use());
  CHECK_FALSE(alive->in_use());
}

TEST_CASE("grpc_channel: of calls under way when a server goes, those not sent do not fail",
          "[channel][repick][race]") {
  ChannelWorld world;
  EchoServer living;
  const auto alive = world.connect(living.address());
  int failed_unsent = 0;
  std::int64_t finished = 0;
  for (int round = 0; round < 20; ++round) {
    EchoServer dying;
    const auto dead = world.connect(dying.address());
    world.publish_ready({dead});
    std::atomic<bool> stop{false};
    std::atomic<int> bad{0};
    std::atomic<int> done{0};
    std::vector<std::thread> callers;
    for (int thread = 0; thread < 3; ++thread) {
      callers.emplace_back([&] {
        while (!stop) {
          grpc::ClientContext context;
          EchoReply reply;
          const auto status = world.stub->Unary(&context, {}, &reply);
          ++done;
          if (!status.ok() && actors::never_reached_transport(context.c_call())) ++bad;
        }
      });
    }
    while (done < 30)
      std::this_thread::yield();
    kill(dying, dead);
    world.publish_ready({alive});
    const int before = done;
    while (done < before + 30)
      std::this_thread::yield();
    stop = true;
    for (auto& caller : callers)
      caller.join();
    failed_unsent += bad;
    finished += done;
  }
  CHECK(failed_unsent == 0);
  CHECK(finished >= 1'200);
  world.wait_for_no_uses();
}

}  // namespace
}  // namespace signalbox::test
