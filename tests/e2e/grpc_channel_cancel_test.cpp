// SPDX-License-Identifier: Apache-2.0
//
// Calls that the application cancels while one gRPC call replaces another. The replaced one is a
// holding call (the gRPC call that stands for a waiting call) or a failed attempt. The application
// then cancels a gRPC call that is over or that does not exist yet. The gRPC call that follows must
// be cancelled, too.
#include <functional>
#include <future>
#include <thread>
#include <utility>

#include "actors/io/grpc_access.hpp"
#include "actors/io/grpc_poller.hpp"
#include "tests/e2e/retry_world.hpp"

namespace signalbox::test {
namespace {

// Runs `act` when the call's attempt ends: after the last check that the call is still wanted, and
// before the back-off begins.
class AtEnd final : public CallTracker {
 public:
  explicit AtEnd(std::function<void()> act) : act_(std::move(act)) {}

  void ended(const CallEnd& /*end*/) const noexcept override { act_(); }

 private:
  const std::function<void()> act_;
};

// Runs `act` when the credentials are given to a call for the nth time. For a waiting call the
// first is the holding call, and the next is the real call that takes its place. The holding call
// of a further attempt gets none.
class AtApplication final : public grpc::CallCredentials {
 public:
  AtApplication(int nth, std::function<void()> act) : left_(nth), act_(std::move(act)) {}

  bool ApplyToCall(grpc_call*) override {
    if (--left_ == 0) act_();
    return true;
  }

 private:
  grpc::SecureCallCredentials* AsSecureCredentials() override { return nullptr; }

  std::atomic<int> left_;
  const std::function<void()> act_;
};

// Gives gRPC the time to report the ends of the calls that were cancelled so far: cancels further
// calls, and waits until their ends are reported.
void wait_for_ends() {
  const actors::GrpcPoller::Hold poller;
  const auto channel = grpc::CreateChannel("ipv4:127.0.0.1:1", grpc::InsecureChannelCredentials());
  for (int i = 0; i < 16; ++i) {
    const grpc::ClientContext context;
    grpc_call* const call = GrpcAccess::make_call(
        GrpcAccess::c_channel(*channel), "/no/call", context, poller.callback_queue());
    std::promise<void> ended;
    actors::watch_end(call, /*send=*/false, [&](const absl::Status&) { ended.set_value(); });
    grpc_call_cancel(call, nullptr);
    auto end = ended.get_future();
    CHECK(end.wait_for(10s) == std::future_status::ready);
    grpc_call_unref(call);
  }
}

const auto kWaitable = {Api::kAsync, Api::kCallback};

// A cancelled call is not retried, although the retry policy has its status code.
lb::RetryRules rules_for_cancelled() {
  return lb::RetryRules(
      {{absl::StatusCode::kCancelled, absl::StatusCode::kUnavailable}, 3, 1ms, 4ms});
}

// Publishes a picker; its second pick cancels the call. `waits`: that pick then has the call wait;
// else the pick is complete. `world`, `context` and `asked` (the number of picks) must outlive the
// calls.
void cancel_at_second_pick(RetryWorld& world,
                           grpc::ClientContext& context,
                           std::atomic<int>& asked,
                           bool waits) {
  world.publish([&world, &context, &asked, waits](const PickArgs&) {
    if (asked++ == 0) return answer(Complete{world.connection.get()});
    context.TryCancel();
    return waits ? PickResult{} : answer(Complete{world.connection.get()});
  });
}

TEST_CASE("retried_call: one that is cancelled just before it backs off does not",
          "[channel][retry][cancel][A6]") {
  const Api api = GENERATE(values(kWaitable));
  INFO(to_string(api));
  RetryWorld world(rules_of(3));
  grpc::ClientContext context;
  const AtEnd cancel([&] { context.TryCancel(); });
  world.publish([&](const PickArgs&) {
    PickResult result = answer(Complete{world.connection.get()});
    result.trackers.add(cancel);
    return result;
  });
  EchoReply reply;
  const auto status =
      call(*world.stub, api, context, failing_with(kForever, /*failures=*/1), reply);
  CHECK(status.error_code() == grpc::StatusCode::CANCELLED);
  CHECK(world.server.service().calls == 1);
  world.wait_for_no_uses();
  world.publish(nullptr);  // Destroys the snapshot, and with it the tracker.
}

TEST_CASE("retried_call: one that is cancelled while its next attempt is picked does not send it",
          "[channel][retry][cancel][A6]") {
  const Api api = GENERATE(values(kWaitable));
  const bool waits = GENERATE(false, true);
  INFO(to_string(api) << (waits ? ", it waits" : ", it is complete"));
  RetryWorld world(rules_for_cancelled());
  grpc::ClientContext context;
  std::atomic<int> asked{0};
  cancel_at_second_pick(world, context, asked, waits);
  EchoReply reply;
  const auto status = call(*world.stub, api, context, failing(1), reply);
  CHECK(status.error_code() == grpc::StatusCode::CANCELLED);
  CHECK(asked == 2);
  CHECK(world.server.service().calls == 1);
}

TEST_CASE("retried_call: cancelling it reaches an attempt that has waited",
          "[channel][retry][cancel][A6]") {
  const Api api = GENERATE(values(kWaitable));
  INFO(to_string(api));
  RetryWorld world(rules_of(3));
  auto& service = world.server.service();
  service.failing.times = 1;
  std::promise<void> waits;
  std::atomic<int> asked{0};
  world.publish([&](const PickArgs&) {
    if (asked++ == 0) return answer(Complete{world.connection.get()});
    service.failing.is_held = true;
    service.failing.times = 1;
    waits.set_value();
    return PickResult{};
  });
  grpc::ClientContext context;
  std::thread later([&] {
    CHECK(waits.get_future().wait_for(10s) == std::future_status::ready);
    world.publish_ready({world.connection});
    const auto limit = std::chrono::steady_clock::now() + 10s;
    while (service.calls < 2 && std::chrono::steady_clock::now() < limit)
      std::this_thread::yield();
    context.TryCancel();
  });
  EchoReply reply;
  const auto status = call(*world.stub, api, context, {}, reply);
  later.join();
  CHECK(status.error_code() == grpc::StatusCode::CANCELLED);
  CHECK(service.calls == 2);
}

TEST_CASE(
    "retried_call, streams: one that is cancelled while its next attempt is picked does not send "
    "it",
    "[channel][retry][cancel][A6]") {
  struct Reactor final : grpc::ClientBidiReactor<EchoRequest, EchoReply> {
    void OnDone(const grpc::Status& end) override { ended.set_value(end); }

    std::promise<grpc::Status> ended;
  };

  const bool waits = GENERATE(false, true);
  INFO((waits ? "it waits" : "it is complete"));
  RetryWorld world(rules_for_cancelled());
  auto& service = world.server.service();
  service.failing.times = 1;
  grpc::ClientContext context;
  std::atomic<int> asked{0};
  cancel_at_second_pick(world, context, asked, waits);
  Reactor reactor;
  EchoRequest request;
  EchoReply reply;
  world.stub->async()->Chat(&context, &reactor);
  reactor.StartWriteLast(&request, grpc::WriteOptions());
  reactor.StartRead(&reply);
  reactor.StartCall();
  auto ended = reactor.ended.get_future();
  CHECK(ended.wait_for(10s) == std::future_status::ready);
  world.waiting->close();  // Ends all waiting calls.
  CHECK(ended.get().error_code() == grpc::StatusCode::CANCELLED);
  CHECK(asked == 2);
  CHECK(service.calls == 1);
}

// Cancels a waiting call at the moment when it is bound (gets its connection). Returns false if the
// call was not cancelled, because a thread of gRPC's executor bound it: gRPC reports no ends of
// calls while that thread is busy, so wait_for_ends() would fail there.
bool cancel_as_it_is_bound(Api api, bool is_attempt) {
  const GrpcConnects maker;
  RetryWorld world(rules_of(3));
  auto& service = world.server.service();
  service.failing.times = is_attempt ? 1 : 0;
  grpc::ClientContext context;
  std::promise<void> waits;
  std::atomic<int> asked{0};
  world.publish([&](const PickArgs&) {
    const int before = asked++;
    if (is_attempt && before == 0) return answer(Complete{world.connection.get()});
    if (before == (is_attempt ? 1 : 0)) waits.set_value();
    return PickResult{};
  });
  std::atomic<bool> is_cancelled{false};
  const auto caller = std::this_thread::get_id();
  std::thread::id publisher;
  context.set_credentials(std::make_shared<AtApplication>(/*nth=*/2, [&] {
    const auto self = std::this_thread::get_id();
    if (self != caller && self != publisher) return;
    is_cancelled = true;
    // The server holds a call that reaches it by mistake, so that the call does not end by itself.
    service.failing.is_held = true;
    service.failing.times = 1;
    context.TryCancel();
    wait_for_ends();
  }));
  std::thread later([&] {
    CHECK(waits.get_future().wait_for(10s) == std::future_status::ready);
    publisher = std::this_thread::get_id();
    world.publish_ready({world.connection});
  });
  EchoReply reply;
  const auto status = call(*world.stub, api, context, {}, reply);
  later.join();
  if (!is_cancelled) return false;
  CHECK(status.error_code() == grpc::StatusCode::CANCELLED);
  return true;
}

TEST_CASE("queued_call: one that is cancelled while it is bound ends", "[channel][queue][cancel]") {
  const bool is_attempt = GENERATE(false, true);
  const Api api = GENERATE(values(kWaitable));
  INFO(to_string(api) << (is_attempt ? ", the second attempt" : ", the first"));
  bool is_done = false;
  for (int i = 0; i < 100 && !is_done; ++i)
    is_done = cancel_as_it_is_bound(api, is_attempt);
  CHECK(is_done);
}

// The credentials cancel the call at a moment when gRPC has not yet reported the end of the holding
// call (the gRPC call that stands for a waiting call).
TEST_CASE("queued_call: one that is cancelled while it is bound is not sent, be it ever so quick",
          "[channel][queue][cancel][race]") {
  const GrpcConnects maker;
  RetryWorld world(rules_of(3));
  for (int i = 0; i < 50; ++i) {
    world.publish_queue();
    grpc::ClientContext context;
    context.set_credentials(std::make_shared<AtApplication>(2, [&] { context.TryCancel(); }));
    EchoReply reply;
    const LatePublisher later(world, [&] { world.publish_ready({world.connection}); });
    const auto status = call(*world.stub, Api::kAsync, context, {}, reply);
    CHECK(status.error_code() == grpc::StatusCode::CANCELLED);
  }
  CHECK(world.server.service().calls == 0);
}

}  // namespace
}  // namespace signalbox::test
