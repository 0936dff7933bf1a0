// SPDX-License-Identifier: Apache-2.0
//
// Small fleets: 200 clients, and a capacity in the same proportion as that of 10,000 clients in
// docs/operate.md.
#include "tests/fleet/fleet.hpp"

#include <chrono>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/fleet/report.hpp"

namespace signalbox::fleet {
namespace {

using namespace std::chrono_literals;

constexpr FleetOptions kSmall{.clients = 200, .capacity = 40};

Outcome run(absl::string_view scenario, Manner manner, const FleetOptions& options = kSmall) {
  const Scenario* found = scenario_named(scenario);
  REQUIRE(found != nullptr);
  return run_fleet(*found, manner, options);
}

}  // namespace

TEST_CASE("fleet: every client has the newest version in the end", "[fleet][A57]") {
  for (const Scenario& scenario : scenarios()) {
    for (const Manner manner : kManners) {
      INFO(scenario.name << ", " << to_string(manner));
      const Outcome outcome = run_fleet(scenario, manner, kSmall);
      CHECK(outcome.reached.size() == kSmall.clients);
      CHECK(outcome.reached_by(50) <= outcome.reached_by(99));
      CHECK(outcome.reached_by(99) <= outcome.reached_by(100));
    }
  }
}

TEST_CASE("fleet: a bad version has one NACK from each client, and no more", "[fleet][A46]") {
  for (const Manner manner : kManners) {
    INFO(to_string(manner));
    const Outcome outcome = run("bad", manner);
    CHECK(outcome.nacks == kSmall.clients);
    CHECK(outcome.most_nacks == 1);
  }
}

TEST_CASE(
    "fleet: signalbox does not repeat its NACK as fast as a server sends the refused response",
    "[fleet]") {
  // The server has the capacity for ten NACKs of each client a second, for 60 s.
  const FleetOptions fast{.clients = 200, .capacity = 2000};
  const Outcome ours = run("bad-again", Manner::kSignalbox, fast);
  // 1, 1.6, 2.6, 4.1, 6.6 and then 10 s are between NACKs, each at least 0.8 times as long.
  CHECK(ours.most_nacks >= 8);
  CHECK(ours.most_nacks <= 12);
  const Outcome grpc = run("bad-again", Manner::kGrpcCore, fast);
  CHECK(grpc.nacks > 40 * ours.nacks);
}

TEST_CASE("fleet: jitter spreads the clients that come back", "[fleet][A57]") {
  for (const char* scenario : {"restart", "away"}) {
    INFO(scenario);
    const Outcome ours = run(scenario, Manner::kSignalbox);
    const Outcome exact = run(scenario, Manner::kNoJitter);
    CHECK(ours.peak_connections() < exact.peak_connections());
    CHECK(ours.peak() < exact.peak());
  }
  // After ten minutes the clients come back over two minutes, and not in one second.
  CHECK(run("away", Manner::kSignalbox).peak_connections() < kSmall.clients / 10);
  CHECK(run("away", Manner::kNoJitter).peak_connections() > kSmall.clients / 2);
}

TEST_CASE("fleet: while the server is away, clients try less and less often", "[fleet][A57]") {
  const Outcome outcome = run("away", Manner::kSignalbox);
  // Each client waits 1 s, 1.6 s and so on up to 120 s, which makes 14 attempts in 600 s.
  CHECK(outcome.total().refused / kSmall.clients >= 13);
  CHECK(outcome.total().refused / kSmall.clients <= 15);
  const std::vector<Arrivals> seconds = outcome.seconds();
  CHECK(seconds[0].refused >= kSmall.clients);
  std::uint64_t last_minute = 0;
  for (std::size_t second = 540; second < 600; ++second)
    last_minute += seconds[second].refused;
  CHECK(last_minute <= kSmall.clients);
  CHECK(outcome.reached_by(100) <= 150s);
}

TEST_CASE("fleet: after a handover gRPC's C core spreads the connections, and signalbox does not",
          "[fleet][A57]") {
  // Signalbox connects at once, because its stream has lasted: all clients within their latencies.
  CHECK(run("handover", Manner::kSignalbox).peak_connections(1) == kSmall.clients);
  CHECK(run("handover", Manner::kGrpcCore).peak_connections(1) < kSmall.clients / 2);
}

TEST_CASE("fleet: a client that comes back costs nine messages", "[fleet]") {
  for (const char* scenario : {"handover", "away"}) {
    for (const Manner manner : kManners) {
      INFO(scenario << ", " << to_string(manner));
      const Outcome outcome = run(scenario, manner);
      CHECK(outcome.total().arrived() == kMessagesOfStart * kSmall.clients);
      CHECK(outcome.wasted == 0);
    }
  }
}

TEST_CASE(
    "fleet: a server that makes connections wait for 20 s works in vain, and yet all come back",
    "[fleet][A57]") {
  for (const Manner manner : kManners) {
    INFO(to_string(manner));
    const Outcome outcome = run("slow", manner);
    CHECK(outcome.wasted > 0);
    CHECK(outcome.longest_wait > 20s);
    CHECK(outcome.reached_by(100).has_value());
  }
}

TEST_CASE("fleet: after ten minutes signalbox is as fast as gRPC's C core, and faster than gRPC Go",
          "[fleet][A57]") {
  const auto ours = *run("away", Manner::kSignalbox).reached_by(99);
  CHECK(ours < *run("away", Manner::kGrpcGo).reached_by(99));
  const auto core = *run("away", Manner::kGrpcCore).reached_by(99);
  CHECK(ours < 1.2 * core);
  CHECK(ours > core / 1.2);
}

TEST_CASE("fleet: equal seeds give equal outcomes, and others do not", "[fleet]") {
  FleetOptions options = kSmall;
  const std::string once = json_of({run("restart", Manner::kSignalbox, options)});
  CHECK(json_of({run("restart", Manner::kSignalbox, options)}) == once);
  options.seed = 2;
  CHECK(json_of({run("restart", Manner::kSignalbox, options)}) != once);
}

TEST_CASE("fleet: a peak is that of any second, wherever it begins", "[fleet]") {
  Outcome outcome;
  outcome.tenths.resize(25);
  outcome.tenths[8] = {.connections = 1, .requests = 2};
  outcome.tenths[17] = {.connections = 3};
  outcome.tenths[18] = {.requests = 5, .refused = 9};
  CHECK(outcome.peak() == 8);
  CHECK(outcome.peak_connections() == 4);
  CHECK(outcome.peak_connections(1) == 3);
  CHECK(outcome.seconds().size() == 3);
  CHECK(outcome.seconds()[1].arrived() == 8);
  CHECK(outcome.total().refused == 9);
}

TEST_CASE("fleet: percentiles are those of all clients, served or not", "[fleet]") {
  Outcome outcome;
  outcome.options.clients = 4;
  outcome.reached = {1s, 2s, 3s};
  CHECK(outcome.reached_by(25) == Duration(1s));
  CHECK(outcome.reached_by(50) == Duration(2s));
  CHECK(outcome.reached_by(75) == Duration(3s));
  CHECK_FALSE(outcome.reached_by(99).has_value());
}

}  // namespace signalbox::fleet
