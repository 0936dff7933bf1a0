// SPDX-License-Identifier: Apache-2.0
#include "xds/client/stream_pace.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::xds {
namespace {

using namespace std::chrono_literals;
using Ending = StreamPace::Ending;

// No jitter, so the test knows the exact waits.
StreamPaceOptions exact() {
  StreamPaceOptions options;
  options.backoff.jitter = 0;
  return options;
}

// One stream: whether it brought a response, its age at the end, and the wait after it.
struct Stream {
  bool answered = false;
  Duration age{};
  Duration wait{};
  Ending ending = Ending::kByServer;
};

Duration end(StreamPace& pace, const Stream& stream, Instant& now) {
  pace.opened(now);
  if (stream.answered) pace.answered();
  now += stream.age;
  const Duration wait = pace.closed(stream.ending, now);
  now += wait;
  return wait;
}

constexpr auto kRefused = Ending::kRefused;
constexpr auto kUnneeded = Ending::kUnneeded;

// A server that is up for 2 s, and down for 3 s; it answers while it is up.
bool is_up(Instant now) {
  return (now - Instant{}) % 5s < 2s;
}

}  // namespace

TEST_CASE("stream pace: how long a server is left alone", "[xds][stream_pace][A57][B8]") {
  struct Row {
    const char* when;
    std::vector<Stream> streams;
  };

  const auto row = GENERATE(values<Row>({
      {"it does not answer: longer each time [A57]",
       {{false, 0s, 1s}, {false, 0s, 1600ms}, {false, 30s, 2560ms}}},
      {"a response ends the back-off of failures, however short its stream [A57]",
       {{false, 0s, 1s}, {false, 0s, 1600ms}, {true, 0s, 1s}, {false, 0s, 1s}}},
      {"it answers once and closes: longer each time [B8]",
       {{true, 0s, 1s}, {true, 5s, 1600ms}, {true, 9'999ms, 2560ms}}},
      {"a routine end: at once [A57]", {{true, 10s, 0s}, {true, 30min, 0s}, {true, 10s, 0s}}},
      {"a stream that lasts ends the back-off of those that do not [B8]",
       {{true, 0s, 1s}, {true, 0s, 1600ms}, {true, 10s, 0s}, {true, 0s, 1s}}},
      {"a failure does not end it [B8]",
       {{true, 0s, 1s}, {false, 0s, 1s}, {true, 0s, 1600ms}, {false, 20s, 1s}, {true, 0s, 2560ms}}},
      {"what is of no use is refused: longer each time, however long it took [B7]",
       {{true, 1h, 1s, kRefused}, {false, 0s, 1600ms, kRefused}, {true, 1h, 2560ms, kRefused}}},
      {"it is not needed any more: a second after its opening, and no back-off is changed",
       {{true, 0s, 1s, kUnneeded},
        {false, 200ms, 800ms, kUnneeded},
        {true, 5s, 0s, kUnneeded},
        {true, 0s, 1s},
        {false, 0s, 1s},
        {true, 5s, 0s, kUnneeded},
        {true, 0s, 1600ms}}},
  }));
  DYNAMIC_SECTION(row.when) {
    StreamPace pace(exact(), 1);
    Instant now;
    for (const Stream& stream : row.streams)
      CHECK(end(pace, stream, now) == stream.wait);
  }
}

TEST_CASE("stream pace: the wait has a spread of 20 % and ends at 120 s",
          "[xds][stream_pace][A57][S9]") {
  const bool answered = GENERATE(false, true);
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(0, 20)));
  StreamPace pace({}, seed);
  Instant now;
  double base = 1.0;
  for (int n = 0; n < 20; ++n) {
    const double wait = std::chrono::duration<double>(end(pace, {answered}, now)).count();
    CHECK(wait >= std::max(1.0, 0.8 * base) - 1e-6);
    CHECK(wait <= 1.2 * base + 1e-6);
    base = std::min(base * 1.6, 120.0);
  }
  CHECK(base == 120.0);
}

TEST_CASE("stream pace: never more than one stream a second, for hours",
          "[xds][stream_pace][B8][S9]") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(0, 20)));
  // The most eager options: no back-off, and every stream counts as one that lasts.
  StreamPaceOptions eager;
  eager.backoff = {.initial = 0s, .max = 0s};
  eager.lasting = 0s;
  for (const StreamPaceOptions& options : {StreamPaceOptions{}, eager}) {
    StreamPace pace(options, seed);
    Instant now;
    for (std::uint64_t n = seed; now < Instant{} + 3h; ++n) {
      const Instant opened = now;
      end(pace, {n % 3 == 0, 1ms * (n % 700), {}, n % 5 == 0 ? kRefused : Ending::kByServer}, now);
      REQUIRE(now - opened >= 1s);
    }
  }
}

TEST_CASE("stream pace: a server that answers once and closes is asked ever more rarely",
          "[xds][stream_pace][B8][S9]") {
  StreamPace pace(exact(), 1);
  Instant now;
  int streams = 0;
  for (; now < Instant{} + 6h; ++streams)
    end(pace, {true, 1ms}, now);
  CHECK(streams < 200);  // In 21,600 seconds.
}

TEST_CASE("stream pace: a server that flaps is asked ever more rarely, until it stands",
          "[xds][stream_pace][B8][S9]") {
  StreamPace pace(exact(), 1);
  Instant now;
  int streams = 0;
  for (; now < Instant{} + 1h; ++streams) {
    const bool up = is_up(now);
    const Duration left = 2s - (now - Instant{}) % 5s;
    end(pace, {up, up ? left : 0s}, now);
  }
  CHECK(streams < 200);
  // Now the server stays up. An answered stream that lasts has no wait after its end.
  CHECK(end(pace, {true, 1min}, now) == 0s);
  CHECK(end(pace, {true, 1min}, now) == 0s);
}

}  // namespace signalbox::xds
