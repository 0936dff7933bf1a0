// SPDX-License-Identifier: Apache-2.0
//
// How often the poller looks for gRPC's events. Tests check only that a pace (the pause between two
// looks) occurs sooner or later, since a busy machine makes every pause longer.
#include "actors/io/grpc_poller.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <thread>
#include <utility>

#include <grpcpp/alarm.h>

#include "tests/e2e/channel_world.hpp"

namespace signalbox::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kInARow = 3;

// Waits up to half a minute for kInARow consecutive pauses between two looks that satisfy
// `as_expected`.
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

// A tag of the poller; it gets an event every few milliseconds.
class News final : public actors::GrpcPoller::Tag {
 public:
  News() { set(); }

  ~News() override {
    is_ending_ = true;
    ended_.get_future().wait();
  }

  News(const News&) = delete;
  News& operator=(const News&) = delete;

  void done(bool /*ok*/) override {
    if (is_ending_) return ended_.set_value();
    set();
  }

 private:
  void set() { alarm_.Set(&interest_.queue(), actors::grpc_deadline(Clock::now() + 5ms), this); }

  const actors::GrpcPoller::Interest interest_;
  grpc::Alarm alarm_;
  std::atomic<bool> is_ending_ = false;
  std::promise<void> ended_;
};

TEST_CASE("grpc_poller: looks in rarely while the application's calls serve the sockets",
          "[channel]") {
  ChannelWorld world;
  EchoServer server;
  world.publish_ready({world.connect(server.address())});
  const auto call = [&] {
    grpc::ClientContext context;
    EchoReply reply;
    REQUIRE(world.stub->Unary(&context, {}, &reply).ok());
  };
  const auto is_short = [](auto pause) { return pause < 40ms; };
  CHECK(sees_pauses([](auto pause) { return pause > 45ms; }, call));

  // A thread in a call serves gRPC's events itself, so the poller can look less often. Four calls
  // between two looks are too few for that.
  std::uint64_t looks = 0;
  CHECK(sees_pauses(is_short, [&] {
    if (std::exchange(looks, actors::GrpcPoller::looks()) == looks)
      return std::this_thread::yield();
    for (int i = 0; i < 4; ++i)
      call();
  }));

  // Events that the poller finds make further events likely, so it looks often.
  {
    const News news;
    CHECK(sees_pauses(is_short, call));
  }

  // Threads in calls without a connection do not serve gRPC's events, so the poller looks often.
  world.retry = lb::RetryRules({{absl::StatusCode::kResourceExhausted}, 3, 1ms, 4ms});
  world.publish_failure(absl::UnavailableError("nobody is there"));
  CHECK(sees_pauses(is_short, [&] {
    grpc::ClientContext context;
    EchoReply reply;
    REQUIRE_FALSE(world.stub->Unary(&context, {}, &reply).ok());
  }));
}

}  // namespace
}  // namespace signalbox::test
