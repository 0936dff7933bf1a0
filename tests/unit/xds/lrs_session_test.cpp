// SPDX-License-Identifier: Apache-2.0
#include "xds/lrs/lrs_session.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include <catch2/catch.hpp>
#include <google/protobuf/text_format.h>

#include "messages/overloaded.hpp"
#include "signalbox/envoy/service/load_stats/v3/lrs.pb.h"

namespace signalbox::xds::lrs_session_test {
namespace {

using envoy::service::load_stats::v3::LoadStatsRequest;
using envoy::service::load_stats::v3::LoadStatsResponse;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string response(const std::string& text) {
  LoadStatsResponse message;
  REQUIRE(::google::protobuf::TextFormat::ParseFromString(text, &message));
  return message.SerializeAsString();
}

// An LRS session, and its surroundings: the actor that runs its effects, the load book of one
// cluster "c", and the server. A call is only a number here.
class World {
 public:
  World() : session_(options()) {}

  void call(std::uint64_t calls) { calls_ += calls; }

  void feed(const LrsSessionEvent& event) {
    for (auto& effect : session_.step(event, now)) {
      std::visit(
          Overloaded{
              [&](const OpenStream& order) { stream = order.stream; },
              [&](const CloseStream&) { stream = 0; },
              [&](const SendBytes& order) { sent.push_back(order.bytes); },
              [&](const ReadNext&) { ++reads; },
              [&](const ReadLoad& order) { answer(order.selection); },
              [&](const SettleLoad& order) { settle(order.number); },
              [&](const LoadReportSent&) { ++reported; },
              [&](const LoadServerNoted& order) { notes.push_back(order.text); },
              [&](const StreamEnded& order) { ends.push_back(order.how); },
              [&](const StartTimer& order) { timers.emplace_back(now + order.delay, order.timer); },
          },
          effect);
    }
  }

  void open() { feed(AdsStreamOpened{stream}); }

  void written() { feed(AdsBytesWritten{stream}); }

  void close(absl::Status status) { feed(AdsStreamClosed{stream, std::move(status)}); }

  void respond(const std::string& text) { feed(AdsBytesReceived{stream, response(text)}); }

  // Lets `time` pass, and fires the timers in order.
  void wait(Duration time) {
    const Instant end = now + time;
    while (true) {
      const auto next = std::min_element(
          timers.begin(), timers.end(), [](auto& a, auto& b) { return a.first < b.first; });
      if (next == timers.end() || next->first > end) break;
      now = std::max(now, next->first);
      const TimerId timer = next->second;
      timers.erase(next);
      feed(TimerFired{timer});
    }
    now = end;
  }

  // Opens the stream. The server asks for reports of all clusters every `interval` seconds.
  void start(int interval = 10) {
    feed(LoadReportsWanted{});
    serve(interval);
  }

  // The next stream opens, and the server asks for reports as in start().
  void serve(int interval) {
    open();
    written();
    order(interval);
  }

  void order(int interval) {
    respond("send_all_clusters: true load_reporting_interval { seconds: " +
            std::to_string(interval) + " }");
  }

  LoadStatsRequest last() const {
    LoadStatsRequest message;
    REQUIRE(message.ParseFromString(sent.back()));
    return message;
  }

  std::uint64_t last_issued() const {
    const LoadStatsRequest message = last();
    if (message.cluster_stats().empty()) return 0;
    return message.cluster_stats(0).upstream_locality_stats(0).total_issued_requests();
  }

  Instant now{seconds(1000)};
  bool in_use = true;
  std::uint64_t stream = 0;
  std::vector<std::string> sent;
  std::vector<std::string> notes;
  std::vector<StreamEnd> ends;
  std::vector<std::pair<Instant, TimerId>> timers;
  int reads = 0;
  int reported = 0;
  std::uint64_t settled = 0;
  std::optional<LoadSelection> asked;

 private:
  static LrsSessionOptions options() {
    LrsSessionOptions options;
    envoy::config::core::v3::Node node;
    node.set_id("me");
    options.node = node.SerializeAsString();
    options.pace.backoff.jitter = 0;
    return options;
  }

  void answer(const std::optional<LoadSelection>& selection) {
    LoadReading reading{.number = ++readings_, .is_in_use = in_use, .is_owed = calls_ > settled};
    if (selection) {
      asked = selection;
      seen_ = calls_;
      if (!selection->all) reading.unknown = selection->clusters;
      const bool wanted = selection->all || reading.unknown.erase("c") > 0;
      if (wanted && calls_ > settled)
        reading.clusters = {
            {.cluster = ClusterName("c"), .localities = {{.issued = calls_ - settled}}}};
    }
    feed(LoadRead{reading});
  }

  void settle(std::uint64_t number) {
    REQUIRE(number == readings_);
    settled = seen_;
  }

  LrsSession session_;
  std::uint64_t calls_ = 0;
  std::uint64_t seen_ = 0;
  std::uint64_t readings_ = 0;
};

TEST_CASE("lrs session: no stream before load is wanted", "[xds][lrs][C1]") {
  World world;
  world.wait(seconds(100));
  CHECK(world.stream == 0);
  world.feed(LoadReportsWanted{});
  CHECK(world.stream == 1);
  world.feed(LoadReportsWanted{});
  CHECK(world.stream == 1);
}

TEST_CASE("lrs session: the node goes first, reports follow the server's answer",
          "[xds][lrs][C1][C3]") {
  World world;
  world.feed(LoadReportsWanted{});
  CHECK(world.sent.empty());
  world.open();
  REQUIRE(world.sent.size() == 1);
  CHECK(world.last().node().id() == "me");
  world.written();
  world.call(3);
  world.wait(seconds(20));
  CHECK(world.sent.size() == 1);

  world.order(25);
  CHECK(world.reads == 1);
  world.wait(seconds(4));
  CHECK(world.sent.size() == 1);
  world.wait(seconds(1));
  REQUIRE(world.sent.size() == 2);
  CHECK_FALSE(world.last().has_node());
  CHECK(world.last_issued() == 3);
  CHECK(world.settled == 0);
  world.written();
  CHECK(world.settled == 3);
  CHECK(world.reported == 1);

  world.call(2);
  world.wait(seconds(25));
  CHECK(world.sent.size() == 3);
  CHECK(world.last_issued() == 2);
}

TEST_CASE("lrs session: a newer response replaces the older one", "[xds][lrs][C2]") {
  World world;
  world.start(10);
  world.respond("clusters: \"c\" load_reporting_interval { seconds: 2 }");
  world.call(1);
  world.wait(seconds(2));
  CHECK(world.asked == LoadSelection{.all = false, .clusters = {"c"}});
  CHECK(world.last_issued() == 1);
  world.written();
  // Equal responses in quick succession do not delay the next report.
  world.call(1);
  for (int i = 0; i < 30; ++i) {
    world.wait(milliseconds(100));
    world.respond("clusters: \"c\" load_reporting_interval { seconds: 2 }");
  }
  CHECK(world.last_issued() == 1);
  CHECK(world.settled == 1);
  world.written();
  CHECK(world.settled == 2);
}

TEST_CASE("lrs session: changing intervals in a quick row do not put the report off",
          "[xds][lrs][C2]") {
  World world;
  world.start(3);
  world.call(1);
  for (int i = 0; i < 40; ++i) {
    world.wait(milliseconds(100));
    world.respond("send_all_clusters: true load_reporting_interval { seconds: " +
                  std::to_string(2 + i % 2) + " }");
  }
  CHECK(world.last_issued() == 1);
}

TEST_CASE("lrs session: a server that changes the interval without end has few timers",
          "[xds][lrs][C2]") {
  const bool is_rising = GENERATE(false, true);
  World world;
  world.start(3600);
  world.call(1);
  for (int i = 0; i < 10'000; ++i) {
    world.respond("send_all_clusters: true load_reporting_interval { seconds: " +
                  std::to_string(1800 + i % 2) +
                  " nanos: " + std::to_string(is_rising ? i : 20'000 - i) + " }");
  }
  CHECK(world.timers.size() <= 6);
  world.order(5);
  world.wait(seconds(5));
  CHECK(world.last_issued() == 1);
  world.written();
  world.call(1);
  world.wait(seconds(5));
  CHECK(world.last_issued() == 1);
  CHECK(world.sent.size() == 3);
  world.written();
  world.order(3600);
  world.call(1);
  world.wait(seconds(3599));
  CHECK(world.sent.size() == 3);
  world.wait(seconds(2));
  CHECK(world.sent.size() == 4);
}

TEST_CASE("lrs session: a report that was not written comes with the next stream, once",
          "[xds][lrs][C7]") {
  World world;
  world.start(5);
  world.call(4);
  world.wait(seconds(5));
  CHECK(world.last_issued() == 4);
  world.close(absl::UnavailableError("gone"));
  CHECK(world.settled == 0);

  world.call(1);
  world.wait(seconds(2));
  CHECK(world.stream == 2);
  world.open();
  CHECK(world.last().node().id() == "me");
  world.written();
  world.order(5);
  world.wait(seconds(5));
  CHECK(world.last_issued() == 5);
  world.written();
  CHECK(world.settled == 5);
  world.wait(seconds(5));
  CHECK(world.last_issued() == 0);
}

TEST_CASE("lrs session: a report that was written is not sent again", "[xds][lrs][C7]") {
  World world;
  world.start(5);
  world.call(4);
  world.wait(seconds(5));
  world.written();
  world.close(absl::UnavailableError("gone"));
  world.wait(seconds(2));
  world.serve(5);
  world.wait(seconds(5));
  CHECK(world.last_issued() == 0);
}

TEST_CASE("lrs session: the last calls of a cluster that goes outlive a stream", "[xds][lrs][C7]") {
  World world;
  world.start(5);
  world.call(4);
  world.in_use = false;
  world.close(absl::UnavailableError("gone"));
  world.wait(seconds(2));
  CHECK(world.stream == 2);
  world.close(absl::UnavailableError("still gone"));
  world.wait(seconds(5));
  CHECK(world.stream == 3);
  world.serve(5);
  world.wait(seconds(5));
  CHECK(world.last_issued() == 4);
  world.written();
  world.wait(seconds(5));
  CHECK(world.stream == 0);
}

TEST_CASE("lrs session: streams that end before the interval is over do not put off reports",
          "[xds][lrs][C2]") {
  const bool in_use = GENERATE(false, true);
  World world;
  world.start(60);
  world.call(4);
  world.in_use = in_use;
  int streams = 1;
  for (; world.settled == 0 && streams < 20; ++streams) {
    world.wait(seconds(15));
    if (world.sent.size() > static_cast<std::size_t>(streams)) break;
    world.close(absl::OkStatus());
    world.wait(milliseconds(1));
    REQUIRE(world.stream == static_cast<std::uint64_t>(streams) + 1);
    world.serve(60);
  }
  CHECK(streams == 4);
  CHECK(world.last_issued() == 4);
}

TEST_CASE(
    "lrs session: a server that asked for load before, and is silent now, gets the last calls",
    "[xds][lrs][C7]") {
  World world;
  world.start(5);
  world.call(4);
  world.in_use = false;
  world.close(absl::UnavailableError("gone"));
  world.wait(seconds(2));
  world.open();
  world.written();
  world.wait(seconds(300));
  CHECK(world.stream == 2);
  world.order(5);
  world.wait(seconds(5));
  CHECK(world.last_issued() == 4);
  world.written();
  world.wait(seconds(5));
  CHECK(world.stream == 0);
}

TEST_CASE("lrs session: no stream for past calls to a server that never asked for load",
          "[xds][lrs][C1]") {
  World world;
  world.feed(LoadReportsWanted{});
  world.open();
  world.written();
  world.call(4);
  world.in_use = false;
  world.close(absl::UnimplementedError(""));
  world.wait(seconds(1'000));
  CHECK(world.stream == 1);
}

TEST_CASE("lrs session: a server that does not read delays reports, and loses nothing",
          "[xds][lrs][C7]") {
  World world;
  world.start(5);
  world.call(1);
  world.wait(seconds(5));
  const std::size_t sent = world.sent.size();
  world.call(2);
  world.wait(seconds(60));
  CHECK(world.sent.size() == sent);
  const auto told = std::ranges::count_if(world.notes, [](const std::string& note) {
    return absl::StrContains(note, "the server does not read");
  });
  CHECK(told == 1);
  world.written();  // The transport has written the first report.
  CHECK(world.settled == 1);
  CHECK(world.last_issued() == 2);  // The next report was due, so it follows at once.
  world.written();
  world.call(4);
  world.wait(seconds(5));
  CHECK(world.last_issued() == 4);
}

TEST_CASE("lrs session: a report that fell due behind an unwritten request follows it at once",
          "[xds][lrs][C3]") {
  World world;
  world.feed(LoadReportsWanted{});
  world.open();
  world.order(2);
  world.call(1);
  world.wait(seconds(3));
  CHECK(world.sent.size() == 1);  // The first request is not written yet.
  CHECK(absl::StrContains(world.notes.back(), "the server does not read"));
  world.written();
  CHECK(world.sent.size() == 2);
  CHECK(world.last_issued() == 1);
}

TEST_CASE("lrs session: reports without counts are sent once", "[xds][lrs][C3]") {
  World world;
  world.start(1);
  world.wait(seconds(1));
  REQUIRE(world.sent.size() == 2);
  CHECK(world.last().cluster_stats_size() == 0);
  world.written();
  world.wait(seconds(5));
  CHECK(world.sent.size() == 2);
  world.call(1);
  world.wait(seconds(1));
  CHECK(world.sent.size() == 3);
}

TEST_CASE("lrs session: the stream ends when nothing is in use and all is reported",
          "[xds][lrs][C1]") {
  World world;
  world.start(5);
  world.call(7);
  world.in_use = false;
  world.wait(seconds(5));
  CHECK(world.last_issued() == 7);
  CHECK(world.stream == 1);
  world.written();
  world.wait(seconds(5));
  CHECK(world.stream == 0);
  world.wait(seconds(500));
  CHECK(world.stream == 0);

  world.in_use = true;
  world.feed(LoadReportsWanted{});
  CHECK(world.stream == 2);
}

TEST_CASE("lrs session: load that is wanted again does not open streams in quick succession",
          "[xds][lrs][C7]") {
  World world;
  world.start(1);
  world.wait(milliseconds(1500));
  world.close(absl::UnavailableError("the server moves"));
  world.wait(seconds(1));
  REQUIRE(world.stream == 2);
  const Instant opened = world.now;
  world.in_use = false;
  world.serve(1);
  world.wait(milliseconds(1));
  REQUIRE(world.stream == 0);  // A report was due, and had nothing to say.
  world.in_use = true;
  world.feed(LoadReportsWanted{});
  while (world.stream == 0 && world.now < opened + seconds(5))
    world.wait(milliseconds(1));
  CHECK(world.stream == 3);
  CHECK(world.now >= opened + milliseconds(990));
  CHECK(world.now <= opened + milliseconds(1010));

  // The wait ends without a stream if no load is wanted then.
  world.in_use = false;
  world.serve(1);
  world.wait(seconds(100));
  REQUIRE(world.stream == 0);
  world.in_use = true;
  world.feed(LoadReportsWanted{});
  CHECK(world.stream == 4);
}

TEST_CASE("lrs session: a silent server's stream ends when nothing is in use", "[xds][lrs][C1]") {
  World world;
  world.feed(LoadReportsWanted{});
  world.open();
  world.written();
  world.wait(seconds(31));
  CHECK(world.stream == 1);
  REQUIRE(world.notes.size() == 1);
  CHECK(absl::StrContains(world.notes[0], "has not said yet which load it wants"));
  world.wait(seconds(3600));
  CHECK(world.stream == 1);
  CHECK(world.notes.size() == 1);
  world.in_use = false;
  world.wait(seconds(60));
  CHECK(world.stream == 0);
}

TEST_CASE("lrs session: a lost server is tried again with back-off while load is in use",
          "[xds][lrs][C7]") {
  World world;
  world.feed(LoadReportsWanted{});
  std::vector<Instant> tries;
  for (int i = 0; i < 5; ++i) {
    tries.push_back(world.now);
    const std::uint64_t before = world.stream;
    world.close(absl::UnavailableError("refused"));
    while (world.stream == before)
      world.wait(milliseconds(10));
  }
  CHECK(world.ends == std::vector<StreamEnd>(5, StreamEnd::kNoResponse));
  CHECK(tries[1] - tries[0] <= milliseconds(1010));
  CHECK(tries[4] - tries[3] > seconds(4));
  CHECK(world.notes.size() == 1);  // Five failures in a row give one note.

  world.in_use = false;
  world.close(absl::UnavailableError("refused"));
  const std::uint64_t last = world.stream;
  world.wait(seconds(1000));
  CHECK(world.stream == last);
}

TEST_CASE("lrs session: an answered stream that lasted is opened again at once", "[xds][lrs][C7]") {
  World world;
  world.start(60);
  world.wait(seconds(20));
  world.close(absl::UnavailableError("the server moves"));
  world.wait(milliseconds(1));
  CHECK(world.stream == 2);
}

TEST_CASE("lrs session: a server without the service is told, with what that means",
          "[xds][lrs][C7]") {
  World world;
  world.feed(LoadReportsWanted{});
  world.close(absl::UnimplementedError("unknown service"));
  REQUIRE(world.notes.size() == 1);
  CHECK(world.notes[0] ==
        "unknown service: UNIMPLEMENTED: the server has no load reporting service; load is counted "
        "on, and reported when the server is back");
}

TEST_CASE("lrs session: garbage ends the stream and loses nothing", "[xds][lrs][C2]") {
  World world;
  world.start(5);
  world.call(1);
  world.feed(AdsBytesReceived{world.stream, "\x0a\xff garbage"});
  CHECK(world.stream == 0);
  CHECK(world.ends == std::vector<StreamEnd>{StreamEnd::kError});
  CHECK(absl::StrContains(world.notes.back(), "is no LoadStatsResponse"));
  world.wait(seconds(2));
  CHECK(world.stream == 2);
  world.serve(5);
  world.wait(seconds(5));
  CHECK(world.last_issued() == 1);
}

TEST_CASE("lrs session: a response that is too large ends the stream, and is told",
          "[xds][lrs][C2]") {
  World world;
  world.start(5);
  world.wait(seconds(20));
  world.close(absl::ResourceExhaustedError("too long"));
  CHECK(world.ends == std::vector<StreamEnd>{StreamEnd::kError});
  CHECK(absl::StrContains(world.notes.back(), "too long"));
  world.wait(milliseconds(500));
  CHECK(world.stream == 1);  // The next stream waits, although this one lasted.
}

TEST_CASE("lrs session: unknown clusters are told once, and the others reported",
          "[xds][lrs][C2]") {
  World world;
  world.feed(LoadReportsWanted{});
  world.open();
  world.written();
  world.respond("clusters: \"c\" clusters: \"bogus\" load_reporting_interval { seconds: 1 }");
  world.call(1);
  world.wait(seconds(1));
  CHECK(world.last_issued() == 1);
  world.written();
  world.call(1);
  world.wait(seconds(1));
  REQUIRE(world.notes.size() == 1);
  CHECK(absl::StrContains(world.notes[0], "or have no lrs_server: bogus"));
}

TEST_CASE("lrs session: a failure is told again after the server was back", "[xds][lrs]") {
  World world;
  world.start(5);
  for (int i = 0; i < 2; ++i) {
    // The end of a stream that was answered gives no note.
    world.close(absl::UnavailableError("first"));
    while (world.stream % 2 == 1)
      world.wait(milliseconds(100));
    world.close(absl::UnavailableError("lost"));
    const std::uint64_t before = world.stream;
    while (world.stream == before)
      world.wait(milliseconds(100));
    world.serve(5);
  }
  CHECK(world.notes.size() == 2);
}

TEST_CASE("lrs session: late events of former streams change nothing", "[xds][lrs]") {
  World world;
  world.start(5);
  world.call(1);
  world.wait(seconds(5));
  world.close(absl::UnavailableError("gone"));
  world.wait(seconds(2));
  REQUIRE(world.stream == 2);
  world.feed(AdsBytesWritten{1});
  world.feed(AdsStreamOpened{1});
  world.feed(AdsBytesReceived{1, "garbage"});
  world.feed(AdsStreamClosed{1, absl::UnavailableError("again")});
  CHECK(world.settled == 0);
  CHECK(world.stream == 2);
}

}  // namespace
}  // namespace signalbox::xds::lrs_session_test
