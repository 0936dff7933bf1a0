// SPDX-License-Identifier: Apache-2.0
#include "channel/pick/traced_call.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include <catch2/catch.hpp>

#include "tests/support/recording_observer.hpp"

namespace signalbox::channel::traced_call_test {
namespace {

using namespace std::chrono_literals;
using testing::RecordingObserver;

constexpr DelayType kResolving{DelayReason::kResolving};
constexpr DelayType kConnecting{DelayReason::kConnecting, 0};
constexpr DelayType kNextConnecting{DelayReason::kConnecting, 1};

class NoHeaders final : public AttemptHeaders {
 public:
  bool set(absl::string_view, absl::string_view) override { return false; }
};

struct World {
  std::unique_ptr<TracedCall> begin() { return TracedCall::begin(tracing, "/a.b/C", nullptr, {}); }

  void send(TracedCall& call, Instant at) {
    NoHeaders headers;
    call.attempt_sent("orders", "10.0.0.1:80", headers, at);
  }

  std::shared_ptr<RecordingObserver> observer = std::make_shared<RecordingObserver>();
  std::vector<std::string> complaints;
  TracedCall::Tracing tracing = std::make_shared<const CallTracing>(CallTracing{
      observer, "xds:///orders", [this](const std::string& text) { complaints.push_back(text); }});
};

const Instant kNow{1h};

TEST_CASE("traced_call: without an observer, and for a call that it does not want, there is none",
          "[channel][trace]") {
  CHECK(TracedCall::begin(nullptr, "/a.b/C", nullptr, kNow) == nullptr);
  World world;
  world.observer->wants = false;
  CHECK(world.begin() == nullptr);
  CHECK(world.observer->events().empty());
}

TEST_CASE("traced_call: delays before the route are the call's, later ones the attempt's",
          "[channel][trace][A121]") {
  World world;
  const auto call = world.begin();
  call->waits(kResolving, "waiting for LDS", /*in_attempt=*/false, kNow);
  call->waits(kResolving, "waiting for LDS", /*in_attempt=*/false, kNow + 1s);
  call->waits(kResolving, "waiting for CDS", /*in_attempt=*/false, kNow + 2s);
  call->waits(kConnecting, "no connection yet", /*in_attempt=*/true, kNow + 3s);
  call->waits(kNextConnecting, "no connection yet", /*in_attempt=*/true, kNow + 4s);
  call->waits_no_longer(kNow + 5s);
  call->waits_no_longer(kNow + 5s);
  world.send(*call, kNow + 5s);
  call->attempt_ended(0, "", std::nullopt, 0, kNow + 6s);
  call->call_ended(0, "", kNow + 6s);
  CHECK(world.observer->events() ==
        "pick /a.b/C, call's delay resolving, reason, delay ends, attempt 0, "
        "delay p0:connecting, delay ends, delay p1:connecting, delay ends, sent orders, "
        "attempt ends 0, ends 0");
  CHECK(world.observer->reasons() ==
        std::vector<std::string>{
            "waiting for LDS", "waiting for CDS", "no connection yet", "no connection yet"});
  CHECK(world.observer->target() == "xds:///orders");
  CHECK(world.observer->endpoint() == "10.0.0.1:80");
  CHECK_FALSE(world.observer->went_back());
}

TEST_CASE("traced_call: a call that ends first ends its delay and its attempt",
          "[channel][trace][A121]") {
  World world;
  const auto call = world.begin();
  SECTION("in a delay of its attempt") {
    call->waits(kConnecting, "", /*in_attempt=*/true, kNow);
    call->call_ended(4, "too late", kNow + 1s);
    CHECK(world.observer->events() ==
          "pick /a.b/C, attempt 0, delay p0:connecting, delay ends, attempt ends 4, ends 4");
  }
  SECTION("in a delay of its own") {
    call->waits(kResolving, "", /*in_attempt=*/false, kNow);
    call->call_ended(4, "too late", kNow + 1s);
    CHECK(world.observer->events() == "pick /a.b/C, call's delay resolving, delay ends, ends 4");
  }
  SECTION("after it was sent") {
    world.send(*call, kNow);
    call->call_ended(1, "", kNow + 1s);
    CHECK(world.observer->events() ==
          "pick /a.b/C, attempt 0, sent orders, attempt ends 1, ends 1");
  }
  const std::string events = world.observer->events();
  world.send(*call, kNow + 2s);
  call->waits(kResolving, "", /*in_attempt=*/false, kNow + 2s);
  call->call_ended(0, "", kNow + 2s);
  CHECK(world.observer->events() == events);  // call_ended() is the last event.
}

TEST_CASE("traced_call: attempts have their number, and transparent retries say so",
          "[channel][trace][A72][A6]") {
  World world;
  const auto call = world.begin();
  world.send(*call, kNow);
  call->attempt_ended(14, "", 0s, /*previous_attempts=*/0, kNow);
  world.send(*call, kNow);
  call->attempt_ended(14, "", 5ms, /*previous_attempts=*/1, kNow);
  call->attempt_began(kNow);
  call->attempt_ended(14, "", std::nullopt, /*previous_attempts=*/1, kNow);
  call->call_ended(14, "", kNow);
  CHECK(world.observer->events() ==
        "pick /a.b/C, attempt 0, sent orders, attempt ends 14 retry, "
        "attempt 0 transparent, sent orders, attempt ends 14 retry, "
        "attempt 1, attempt ends 14, ends 14");
}

TEST_CASE("traced_call: a started call that is destroyed was given up, another one never began",
          "[channel][trace]") {
  World world;
  world.begin() = nullptr;
  CHECK(world.observer->events() == "pick /a.b/C");
  world.begin()->started();
  CHECK(world.observer->events() == "pick /a.b/C, pick /a.b/C, ends 1");
}

TEST_CASE("traced_call: an observer that throws gets no more events of the call, and is named",
          "[channel][trace]") {
  World world;
  const std::string thrower =
      GENERATE("pick /a.b/C", "delay p0:connecting", "sent orders", "ends 0");
  world.observer->throws_at = thrower;
  if (const auto call = world.begin(); call != nullptr) {
    call->waits(kConnecting, "", /*in_attempt=*/true, kNow);
    world.send(*call, kNow);
    call->attempt_ended(0, "", std::nullopt, 0, kNow);
    call->call_ended(0, "", kNow);
  }
  CHECK(absl::EndsWith(world.observer->events(), thrower));
  CHECK(world.complaints ==
        std::vector<std::string>{"xds:///orders: RuntimeOptions::call_observer threw: no room; "
                                 "the call goes on without it"});
}

}  // namespace
}  // namespace signalbox::channel::traced_call_test
