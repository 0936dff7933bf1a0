// SPDX-License-Identifier: Apache-2.0
#include "lb/subchannel/load_stream_core.hpp"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <catch2/catch.hpp>

#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

using namespace std::chrono_literals;

std::string to_text(const LoadStreamEffect& effect) {
  return std::visit(
      Overloaded{[](const OpenLoadStream& it) {
                   return absl::StrCat("open ", it.stream, " ", it.period / 1ms, "ms");
                 },
                 [](const CloseLoadStream& it) { return absl::StrCat("close ", it.stream); },
                 [](const StartLoadTimer& it) {
                   return absl::StrCat("timer ", it.timer, " ", it.delay / 1ms, "ms");
                 },
                 [](const CancelLoadTimer& it) { return absl::StrCat("cancel ", it.timer); },
                 [](const NoteLoadStreamEnd& it) {
                   switch (it.how) {
                     case LoadStreamEnd::kEnded:
                       return std::string("ended");
                     case LoadStreamEnd::kNoReport:
                       return std::string("no-report");
                     case LoadStreamEnd::kUnimplemented:
                       return std::string("unimplemented");
                   }
                   return std::string("?");
                 }},
      effect);
}

// A core, by default without jitter, and a clock.
struct Stream {
  explicit Stream(double jitter = 0, std::uint64_t seed = 1)
      : core({.backoff = {.jitter = jitter}, .seed = seed}) {}

  std::string step(const LoadStreamEvent& event) {
    std::vector<std::string> texts;
    for (const LoadStreamEffect& effect : core.step(event, now))
      texts.push_back(to_text(effect));
    return absl::StrJoin(texts, ", ");
  }

  std::string watch(std::uint64_t listener, Duration period) {
    return step(LoadWatched{listener, period});
  }

  std::string unwatch(std::uint64_t listener) { return step(LoadUnwatched{listener}); }

  std::string closed(std::uint64_t stream, absl::StatusCode code = absl::StatusCode::kUnavailable) {
    return step(LoadStreamClosed{stream, code});
  }

  LoadStreamCore core;
  Instant now{1h};
};

}  // namespace

TEST_CASE("load_stream_core: one stream while there is a listener", "[lb][A51]") {
  Stream stream;
  CHECK(stream.watch(1, 10s) == "open 1 10000ms");
  CHECK(stream.core.is_watched());
  CHECK(stream.watch(2, 10s).empty());
  CHECK(stream.unwatch(1).empty());
  CHECK(stream.unwatch(2) == "close 1");
  CHECK_FALSE(stream.core.is_watched());
  CHECK(stream.closed(1).empty());
  CHECK(stream.watch(3, 5s) == "open 2 5000ms");
}

TEST_CASE("load_stream_core: the smallest period is asked for", "[lb][A51]") {
  Stream stream;
  CHECK(stream.watch(1, 10s) == "open 1 10000ms");
  CHECK(stream.watch(2, 20s).empty());
  CHECK(stream.watch(3, 2s) == "close 1, open 2 2000ms");
  CHECK(stream.unwatch(3) == "close 2, open 3 10000ms");
  CHECK(stream.watch(1, 30s) == "close 3, open 4 20000ms");
  CHECK(stream.watch(4, 0s) == "close 4, open 5 0ms");
}

TEST_CASE("load_stream_core: after UNIMPLEMENTED the connection is not asked again", "[lb][A51]") {
  Stream stream;
  stream.watch(1, 10s);
  CHECK(stream.closed(1, absl::StatusCode::kUnimplemented) == "unimplemented");
  CHECK(stream.core.is_refused());
  CHECK(stream.watch(2, 1s).empty());
  CHECK(stream.unwatch(1).empty());
  CHECK(stream.unwatch(2).empty());
  CHECK(stream.watch(3, 1s).empty());
  CHECK(stream.step(LoadRetryDue{1}).empty());
}

TEST_CASE("load_stream_core: streams without a report are opened ever less often", "[lb][A51]") {
  Stream stream;
  stream.watch(1, 10s);
  CHECK(stream.closed(1) == "no-report, timer 2 1000ms");
  stream.now += 1s;
  CHECK(stream.step(LoadRetryDue{2}) == "open 3 10000ms");
  // The back-off is 1600 ms. The 600 ms for which the stream was open count as a part of it.
  stream.now += 600ms;
  CHECK(stream.closed(3) == "no-report, timer 4 1000ms");
  stream.now += 1s;
  CHECK(stream.step(LoadRetryDue{4}) == "open 5 10000ms");
  std::uint64_t number = 5;
  Duration longest{};
  for (int failure = 0; failure < 20; ++failure) {
    const LoadStreamEffects effects =
        stream.core.step(LoadStreamClosed{number, absl::StatusCode::kInternal}, stream.now);
    REQUIRE(effects.size() == 2);
    const auto timer = std::get<StartLoadTimer>(effects[1]);
    CHECK(timer.delay >= longest);
    longest = timer.delay;
    stream.now += timer.delay;
    stream.step(LoadRetryDue{timer.timer});
    number = timer.timer + 1;
  }
  CHECK(longest == 120s);
}

TEST_CASE("load_stream_core: a report resets the back-off", "[lb][A51]") {
  Stream stream;
  stream.watch(1, 10s);
  stream.closed(1);
  stream.now += 1s;
  stream.step(LoadRetryDue{2});
  CHECK(stream.step(LoadReported{3}).empty());
  stream.now += 30s;
  CHECK(stream.closed(3) == "ended, open 4 10000ms");
  // If a server ends each stream right after a report, the next stream begins a second later at the
  // earliest.
  stream.step(LoadReported{4});
  CHECK(stream.closed(4) == "ended, timer 5 1000ms");
  stream.now += 1s;
  CHECK(stream.step(LoadRetryDue{5}) == "open 6 10000ms");
  CHECK(stream.closed(6) == "no-report, timer 7 1600ms");
}

TEST_CASE("load_stream_core: waits have jitter from the seed", "[lb][A51]") {
  const auto first_wait = [](std::uint64_t seed) {
    Stream stream(0.2, seed);
    stream.core.step(LoadWatched{1, 10s}, stream.now);
    const auto effects =
        stream.core.step(LoadStreamClosed{1, absl::StatusCode::kUnavailable}, stream.now);
    return std::get<StartLoadTimer>(effects[1]).delay;
  };
  CHECK(first_wait(1) == first_wait(1));
  CHECK(first_wait(1) != first_wait(2));
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CHECK(first_wait(seed) >= 800ms);
    CHECK(first_wait(seed) <= 1200ms);
  }
}

TEST_CASE("load_stream_core: without listeners nothing waits, and the back-off is not forgotten",
          "[lb][A51]") {
  Stream stream;
  stream.watch(1, 10s);
  CHECK(stream.closed(1) == "no-report, timer 2 1000ms");
  CHECK(stream.watch(2, 1s).empty());
  CHECK(stream.unwatch(2).empty());
  CHECK(stream.unwatch(1) == "cancel 2");
  CHECK(stream.step(LoadRetryDue{2}).empty());
  stream.now += 400ms;
  CHECK(stream.watch(1, 5s) == "timer 3 600ms");
  stream.now += 600ms;
  CHECK(stream.step(LoadRetryDue{3}) == "open 4 5000ms");
}

TEST_CASE("load_stream_core: late words of an earlier stream or timer change nothing",
          "[lb][A51]") {
  Stream stream;
  stream.watch(1, 10s);
  stream.watch(2, 1s);
  CHECK(stream.step(LoadReported{1}).empty());
  CHECK(stream.closed(1, absl::StatusCode::kUnimplemented).empty());
  CHECK_FALSE(stream.core.is_refused());
  CHECK(stream.closed(2) == "no-report, timer 3 1000ms");
  CHECK(stream.closed(2).empty());
  CHECK(stream.step(LoadRetryDue{1}).empty());
}

TEST_CASE("load_stream_core: a lost connection ends everything", "[lb][A51]") {
  Stream open;
  open.watch(1, 10s);
  CHECK(open.step(LoadConnectionLost{}) == "close 1");
  CHECK(open.watch(2, 1s).empty());
  CHECK(open.unwatch(1).empty());

  Stream waiting;
  waiting.watch(1, 10s);
  waiting.closed(1);
  CHECK(waiting.step(LoadConnectionLost{}) == "cancel 2");
  CHECK(waiting.step(LoadRetryDue{2}).empty());
}

}  // namespace signalbox::lb
