// SPDX-License-Identifier: Apache-2.0
#include "channel/grpc/state_watch.hpp"
#include "tests/e2e/channel_world.hpp"

namespace signalbox::test {
namespace {

TEST_CASE("state_watch: GetState says what the control plane says, and passes the wish on",
          "[channel][state]") {
  ChannelWorld world;
  CHECK(world.channel->GetState(false) == GRPC_CHANNEL_IDLE);
  CHECK_FALSE(world.connectivity->asked_to_connect());
  CHECK(world.channel->GetState(true) == GRPC_CHANNEL_IDLE);
  CHECK(world.connectivity->asked_to_connect());
  world.connectivity->set(ConnectivityState::kTransientFailure);
  CHECK(world.channel->GetState(false) == GRPC_CHANNEL_TRANSIENT_FAILURE);
}

TEST_CASE("state_watch: WaitForConnected returns when it is READY", "[channel][state]") {
  ChannelWorld world;
  std::thread other([&] {
    while (!world.connectivity->asked_to_connect())
      std::this_thread::yield();
    world.connectivity->set(ConnectivityState::kConnecting);
    world.connectivity->set(ConnectivityState::kReady);
  });
  CHECK(world.channel->WaitForConnected(std::chrono::system_clock::now() + 10s));
  other.join();
  CHECK_FALSE(world.channel->WaitForStateChange(GRPC_CHANNEL_READY,
                                                std::chrono::system_clock::now() + 20ms));
}

TEST_CASE("state_watch: NotifyOnStateChange posts its tag at a change or at the deadline",
          "[channel][state]") {
  ChannelWorld world;
  grpc::CompletionQueue queue;
  int one = 0;
  void* tag = nullptr;
  bool ok = true;
  const auto soon = std::chrono::system_clock::now() + 30ms;
  const auto late = std::chrono::system_clock::now() + 1h;

  world.channel->NotifyOnStateChange(GRPC_CHANNEL_IDLE, soon, &queue, &one);
  REQUIRE(queue.Next(&tag, &ok));
  CHECK(tag == &one);
  CHECK_FALSE(ok);

  world.channel->NotifyOnStateChange(GRPC_CHANNEL_READY, late, &queue, &one);
  REQUIRE(queue.Next(&tag, &ok));
  CHECK(ok);

  world.channel->NotifyOnStateChange(GRPC_CHANNEL_IDLE, late, &queue, &one);
  SECTION("a change") {
    world.connectivity->set(ConnectivityState::kConnecting);
  }
  SECTION("the end of the runtime") {
    world.waiting->close();
    world.connectivity->tell();
  }
  SECTION("the end of the channel") {
    world.stub = nullptr;
    world.channel = nullptr;
  }
  REQUIRE(queue.Next(&tag, &ok));
  CHECK(tag == &one);
  CHECK(ok);
  queue.Shutdown();
  CHECK_FALSE(queue.Next(&tag, &ok));
}

}  // namespace
}  // namespace signalbox::test
