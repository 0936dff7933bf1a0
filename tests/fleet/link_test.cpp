// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/link.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::fleet {
namespace {

using namespace std::chrono_literals;

// A network and its server, which refuses each connection (or each but the third), accepts and then
// ends it, or is silent. It notes when connections are dialed.
class Peer final : public Network {
 public:
  enum class Does { kRefuse, kAnswerThird, kEndUnanswered, kAnswerOnce, kNothing };

  Peer(Manner manner, Does does)
      : does_(does),
        link_(make_link(manner,
                        {clock_, *this, 0, 7, [this](const auto& event) { session(event); }})) {}

  void dial(ConnectionId connection) override {
    dialed.push_back(clock_.now() - Instant());
    const std::uint64_t number = connection.number;
    const Does does = does_ != Does::kAnswerThird ? does_
                      : number == 3               ? Does::kAnswerOnce
                                                  : Does::kRefuse;
    if (does == Does::kRefuse) clock_.after_exactly(1ms, [this, number] { link_->ended(number); });
    if (does == Does::kEndUnanswered || does == Does::kAnswerOnce) {
      clock_.after_exactly(1ms, [this, number] { link_->accepted(number); });
      if (does == Does::kAnswerOnce)
        clock_.after_exactly(2ms, [this, number] { link_->received(number, "response"); });
      clock_.after_exactly(3ms, [this, number] { link_->ended(number); });
    }
  }

  void hang_up(ConnectionId /*connection*/) override {}

  void send(ConnectionId /*connection*/, std::string /*bytes*/) override {}

  // The times of the first dials. The session asks for the next stream `wait` after the end of one.
  std::vector<double> run(Duration wait = Duration::zero(), std::size_t dials = 4) {
    wait_ = wait;
    link_->open(++stream_);
    while (dialed.size() < dials && clock_.next())
      clock_.run_next();
    std::vector<double> seconds;
    seconds.reserve(dialed.size());
    for (const Duration when : dialed)
      seconds.push_back(std::chrono::duration<double>(when).count());
    return seconds;
  }

  std::vector<Duration> dialed;
  int opened = 0;
  int closed = 0;

 private:
  void session(const AdsSessionEvent& event) {
    if (std::holds_alternative<AdsStreamOpened>(event)) ++opened;
    if (!std::holds_alternative<AdsStreamClosed>(event)) return;
    ++closed;
    clock_.after_exactly(wait_, [this] { link_->open(++stream_); });
  }

  Does does_;
  testing::FakeClock clock_{Instant()};
  std::unique_ptr<Link> link_;
  Duration wait_{};
  std::uint64_t stream_ = 0;
};

// Checks that the times between dials are `waits`, each changed by up to 20 % and 10 ms.
void check_waits(const std::vector<double>& times, const std::vector<double>& waits) {
  REQUIRE(times.size() == waits.size() + 1);
  for (std::size_t i = 0; i < waits.size(); ++i) {
    INFO("wait " << i);
    CHECK(times[i + 1] - times[i] >= 0.8 * waits[i]);
    CHECK(times[i + 1] - times[i] <= 1.2 * waits[i] + 0.01);
  }
}

using Does = Peer::Does;

}  // namespace

TEST_CASE("link: signalbox dials for each stream, at once", "[fleet]") {
  for (const Does does : {Does::kRefuse, Does::kEndUnanswered, Does::kAnswerOnce}) {
    Peer peer(Manner::kSignalbox, does);
    check_waits(peer.run(2s), {2, 2, 2});
  }
}

TEST_CASE("link: a channel of gRPC that is refused waits longer each time", "[fleet]") {
  Peer core(Manner::kGrpcCore, Does::kRefuse);
  check_waits(core.run(), {1, 1.6, 2.56});
  CHECK(core.closed == 0);  // The stream waits for the channel.

  Peer go(Manner::kGrpcGo, Does::kRefuse);
  const std::vector<double> times = go.run();
  check_waits(times, {1, 1.6, 2.56});
  CHECK(times[1] == Approx(1.001));  // The first wait is exact, and begins with the failure.
  CHECK(go.closed > 1);              // Each stream fails at once.
}

TEST_CASE("link: a channel of gRPC that was connected begins with the first wait again",
          "[fleet]") {
  Peer core(Manner::kGrpcCore, Does::kAnswerThird);
  // The third wait is that of the answered stream, and the last one is the channel's.
  check_waits(core.run(0s, 5), {1, 1.6, 1, 1});
}

TEST_CASE("link: a stream of gRPC without a response waits longer each time", "[fleet][A57]") {
  for (const Manner manner : {Manner::kGrpcCore, Manner::kGrpcGo}) {
    Peer peer(manner, Does::kEndUnanswered);
    check_waits(peer.run(), {1, 1.6, 2.56});
  }
}

TEST_CASE("link: after an answered stream gRPC's C core waits a second, and gRPC Go does not",
          "[fleet][A57]") {
  Peer core(Manner::kGrpcCore, Does::kAnswerOnce);
  check_waits(core.run(), {1, 1, 1});
  Peer go(Manner::kGrpcGo, Does::kAnswerOnce);
  check_waits(go.run(), {0, 0, 0});
}

TEST_CASE("link: a connection that is not made within 20 s counts as failed", "[fleet]") {
  Peer core(Manner::kGrpcCore, Does::kNothing);
  check_waits(core.run(), {20, 20, 20});  // The channel's wait is over before.
  Peer go(Manner::kGrpcGo, Does::kNothing);
  check_waits(go.run(), {21, 21.6, 22.56});
  Peer ours(Manner::kSignalbox, Does::kNothing);
  check_waits(ours.run(1s), {21, 21, 21});
}

}  // namespace signalbox::fleet
