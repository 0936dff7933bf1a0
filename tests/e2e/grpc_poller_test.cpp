// SPDX-License-Identifier: Apache-2.0
//
// How often the poller looks in: only that a pace is seen sooner or later, as a busy machine makes
// any of them slower.
#include "actors/io/grpc_poller.hpp"

#include <chrono>
#include <functional>

#include "tests/e2e/channel_world.hpp"

namespace signalbox::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kInARow = 3;

// Whether so many pauses in a row between looks are as they should be, within half a minute.
bool sees_pauses(const std::function<bool(Clock::duration pause)>& as_expected,
                 const std::function<void()>& meanwhile) {
  const auto limit = Clock::now() + std::chrono::seconds(30);
  auto last = Clock::now();
  auto looks = actors::GrpcPoller::looks();
  for (int in_a_row = 0; in_a_row < kInARow && last < limit;) {
    meanwhile();
    const auto now = Clock::now();
    const auto seen = actors::GrpcPoller::looks();
    if (seen == looks && now < limit) continue;
    in_a_row = seen == looks + 1 && as_expected(now - last) ? in_a_row + 1 : 0;
    looks = seen;
    last = now;
  }
  return last < limit;
}

TEST_CASE("grpc_poller: looks in rarely while the application's calls serve the sockets",
          "[channel]") {
  using std::chrono_literals::operator""ms;
  ChannelWorld world;
  EchoServer server;
  world.publish_ready({world.connect(server.address())});
  const auto call = [&] {
    grpc::ClientContext context;
    EchoReply reply;
    CHECK(world.stub->Unary(&context, {}, &reply).ok());
  };
  const auto idle = [] { std::this_thread::sleep_for(1ms); };
  CHECK(sees_pauses([](auto pause) { return pause > 45ms; }, call));
  CHECK(sees_pauses([](auto pause) { return pause < 40ms; }, idle));
}

}  // namespace
}  // namespace signalbox::test
