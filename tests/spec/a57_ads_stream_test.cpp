// SPDX-License-Identifier: Apache-2.0
//
// gRFC A57, XdsClient Failure Mode Behavior: the session with one server.
#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <variant>

#include <catch2/catch.hpp>

#include "tests/support/decode_at_once.hpp"
#include "xds/client/ads_session.hpp"

namespace signalbox::xds {
namespace {

using namespace std::chrono_literals;

// Decodes every message as a valid LDS response.
absl::StatusOr<DecodedResponse> any_listener(absl::string_view bytes) {
  DecodedResponse response;
  response.received.version = std::string(bytes);
  response.nonce = std::string(bytes);
  return response;
}

// A session that wants the listener `l`, and the effects of its last step.
class Session {
 public:
  Session() : core_(AdsSessionOptions{.server = "cp:1", .decode = decode_at_once(any_listener)}) {
    step(Subscribe{ResourceType::kListener, {"l"}});
  }

  void step(const AdsSessionEvent& event) {
    effects_ = core_.step(event, now);
    if (const auto* sent = find<SendBytes>()) {  // The write ends at once.
      const AdsSessionEffects more = core_.step(AdsBytesWritten{sent->stream}, now);
      effects_.insert(effects_.end(), more.begin(), more.end());
    }
    if (const auto* open = find<OpenStream>()) stream = open->stream;
    if (const auto* start = find<StartTimer>()) timer_ = *start;
  }

  void opened() { step(AdsStreamOpened{stream}); }

  void answered() { step(AdsBytesReceived{stream, "v1"}); }

  void closed() { step(AdsStreamClosed{stream, absl::UnavailableError("gone")}); }

  // Lets the back-off elapse, after which the session opens a stream. Returns the back-off in
  // seconds.
  double reopened() {
    now += timer_.delay;
    step(TimerFired{timer_.timer});
    REQUIRE(find<OpenStream>() != nullptr);
    return std::chrono::duration<double>(timer_.delay).count();
  }

  template <typename Effect>
  const Effect* find() const {
    for (const AdsSessionEffect& effect : effects_) {
      if (const auto* found = std::get_if<Effect>(&effect)) return found;
    }
    return nullptr;
  }

  Instant now;
  std::uint64_t stream = 0;

 private:
  AdsSession core_;
  AdsSessionEffects effects_;
  StartTimer timer_;
};

}  // namespace

// --- "Handling ADS Stream Termination" ---------------------------------------

SCENARIO("A57: a stream that is closed without a response is a connectivity error", "[spec][A57]") {
  GIVEN("a stream on which nothing was received") {
    Session session;
    session.opened();
    WHEN("it is closed") {
      session.closed();
      THEN("watchers are told, with the server and the reason") {
        const auto* told = session.find<ServerStatusChanged>();
        REQUIRE(told != nullptr);
        CHECK(told->status == absl::UnavailableError("xDS server cp:1: gone"));
      }
    }
  }
}

SCENARIO("A57: a stream that is closed after a response is no error", "[spec][A57]") {
  GIVEN("a stream that has been up for the maximum age of its connection") {
    Session session;
    session.opened();
    session.answered();
    session.now += 30min;
    WHEN("it is closed") {
      session.closed();
      THEN("nobody is told, and the next one is opened at once") {
        CHECK(session.find<ServerStatusChanged>() == nullptr);
        CHECK(session.find<OpenStream>() != nullptr);
      }
    }
  }
}

SCENARIO("A57: each successive attempt without a response waits longer", "[spec][A57]") {
  GIVEN("a server that is not there") {
    Session session;
    double base = 1.0;
    for (int attempt = 0; attempt < 12; ++attempt) {
      session.closed();
      const double wait = session.reopened();
      THEN("attempt " + std::to_string(attempt) + " waits 1 s x 1.6^n, 20 % either way, <= 120 s") {
        CHECK(wait >= std::max(1.0, 0.8 * base) - 1e-6);
        CHECK(wait <= 1.2 * base + 1e-6);
      }
      base = std::min(base * 1.6, 120.0);
    }
    WHEN("an attempt does receive a response") {
      session.opened();
      session.answered();
      session.now += 1min;
      session.closed();
      session.closed();
      THEN("the back-off begins anew") {
        CHECK(session.reopened() <= 1.2);
      }
    }
  }
}

// --- "Handling Resources That Do Not Exist" ----------------------------------

SCENARIO("A57: the does-not-exist timer runs only on a connected stream", "[spec][A57]") {
  GIVEN("a stream that is being opened") {
    Session session;
    THEN("nothing counts as asked for") {
      CHECK(session.find<SubscriptionSent>() == nullptr);
    }
    WHEN("it is connected, and the subscription is sent") {
      session.opened();
      THEN("that is what counts") {
        REQUIRE(session.find<SubscriptionSent>() != nullptr);
        CHECK(session.find<SubscriptionSent>()->names == std::set<std::string>{"l"});
      }
      AND_WHEN("it is lost") {
        session.closed();
        THEN("nothing counts as asked for, until the next one is connected") {
          REQUIRE(session.find<SubscriptionSent>() != nullptr);
          CHECK(session.find<SubscriptionSent>()->names.empty());
          session.reopened();
          CHECK(session.find<SubscriptionSent>() == nullptr);
          session.opened();
          CHECK(session.find<SubscriptionSent>()->names == std::set<std::string>{"l"});
        }
      }
    }
  }
}

}  // namespace signalbox::xds
