// SPDX-License-Identifier: Apache-2.0
#include "actors/status_board.hpp"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/printed.hpp"

namespace signalbox::actors {
namespace {

const ClusterPlace kPlace{ClusterName("c"), ClusterName("all")};

lb::SubchannelSeen ready(const Address& address) {
  return {.state = EndpointState::kReady,
          .raw = ConnectivityState::kReady,
          .connection = std::make_shared<const Connection>(address)};
}

}  // namespace

TEST_CASE("change log: keeps the last 64 changes, and numbers all of them", "[actors][status]") {
  ChangeLog log;
  CHECK(log.last().empty());
  for (int i = 1; i <= 64; ++i)
    log.add("xds:///orders", {.cluster = ClusterName(std::to_string(i))});
  REQUIRE(log.last().size() == 64);
  CHECK(log.last().front().number == 1);
  log.add("xds:///carts", {.cluster = ClusterName("65")});
  const auto last = log.last();
  REQUIRE(last.size() == 64);
  CHECK(last.front().number == 2);
  CHECK(last.front().move.cluster == ClusterName("2"));
  CHECK(last.back().number == 65);
  CHECK(last.back().move.cluster == ClusterName("65"));
  CHECK(last.back().target == "xds:///carts");
}

TEST_CASE("status board: a target is ready when its calls can be sent", "[actors][status]") {
  struct Row {
    ConnectivityState state;
    absl::Status failure;
    bool is_configured;
    bool ready;
  };

  const auto row = GENERATE(values<Row>({
      {ConnectivityState::kReady, {}, true, true},
      {ConnectivityState::kIdle, {}, true, true},
      {ConnectivityState::kConnecting, {}, true, false},
      {ConnectivityState::kTransientFailure, {}, true, false},
      {ConnectivityState::kReady, {}, false, false},
      {ConnectivityState::kReady, absl::UnavailableError("gone"), true, false},
  }));
  TargetBoard board("xds:///orders");
  CHECK_FALSE(board.ready());
  board.published(7, row.state, row.failure, row.is_configured, Instant{});
  CHECK(board.ready() == row.ready);
  const TargetPieces pieces = board.pieces();
  CHECK(pieces.ready == row.ready);
  CHECK(pieces.state == row.state);
  CHECK(pieces.failure == row.failure);
  CHECK(pieces.generation == 7);
}

TEST_CASE("status board: the time of a state is that of its first publication",
          "[actors][status]") {
  TargetBoard board("xds:///orders");
  CHECK_FALSE(board.pieces().since);
  const Instant start{std::chrono::seconds(5)};
  board.published(1, ConnectivityState::kConnecting, {}, true, start);
  board.published(2, ConnectivityState::kConnecting, {}, true, start + std::chrono::seconds(1));
  CHECK(board.pieces().since == start);
  board.published(2, ConnectivityState::kReady, {}, true, start + std::chrono::seconds(2));
  CHECK(board.pieces().since == start + std::chrono::seconds(2));
}

TEST_CASE("status board: a piece ends with its actor, not with the successor's",
          "[actors][status]") {
  TargetBoard board("xds:///orders");
  PrioritiesSeen seen{.cluster = kPlace.cluster, .aggregate = kPlace.aggregate};
  seen.active = 0;
  auto first = board.show(seen);
  seen.active = 1;
  auto second = board.show(seen);
  first = nullptr;  // The old actor's piece ends after its successor's piece has begun.
  REQUIRE(board.pieces().priorities.contains(kPlace));
  CHECK(board.pieces().priorities.at(kPlace)->active == 1);
  second = nullptr;
  CHECK(board.pieces().priorities.empty());

  auto load = board.show(TierLoad{kPlace.aggregate, kPlace.cluster, 2, 70});
  CHECK(board.pieces().loads.at({kPlace, 2}) == 70);
  load = nullptr;
  CHECK(board.pieces().loads.empty());

  // Pieces that have ended do not accumulate.
  for (int i = 0; i < 1000; ++i)
    board.show(PrioritiesSeen{.cluster = ClusterName(std::to_string(i))});
  CHECK(board.pieces().priorities.empty());
}

TEST_CASE("status board: the revision rises with each change of the pieces", "[actors][status]") {
  const auto log = std::make_shared<ChangeLog>();
  TargetBoard board("xds:///orders", log);
  std::uint64_t last = board.revision();
  const auto has_changed = [&] { return std::exchange(last, board.revision()) < board.revision(); };
  CHECK_FALSE(has_changed());

  board.applied({}, Instant{});
  CHECK(has_changed());
  board.drop_config();
  CHECK(has_changed());
  board.moved({.cluster = kPlace.cluster});
  CHECK(has_changed());
  CHECK(log->number() == 1);

  const auto publish = [&](Generation generation,
                           ConnectivityState state,
                           const absl::Status& failure,
                           bool is_configured) {
    board.published(generation, state, failure, is_configured, Instant{});
    return has_changed();
  };
  const absl::Status gone = absl::NotFoundError("gone");
  CHECK(publish(1, ConnectivityState::kConnecting, {}, true));
  CHECK_FALSE(publish(1, ConnectivityState::kConnecting, {}, true));
  CHECK(publish(2, ConnectivityState::kConnecting, {}, true));
  CHECK(publish(2, ConnectivityState::kReady, {}, true));
  CHECK(publish(2, ConnectivityState::kReady, gone, true));
  CHECK(publish(2, ConnectivityState::kReady, {}, true));
  CHECK(publish(2, ConnectivityState::kReady, {}, false));
  CHECK_FALSE(publish(2, ConnectivityState::kReady, {}, false));

  auto priorities = board.show(PrioritiesSeen{.cluster = kPlace.cluster});
  CHECK(has_changed());
  priorities = nullptr;
  CHECK(has_changed());
  auto load = board.show(TierLoad{kPlace.aggregate, kPlace.cluster, 2, 70});
  CHECK(has_changed());
  load = nullptr;
  CHECK(has_changed());

  auto table = board.open_table(kPlace);
  CHECK(has_changed());
  const Address address("10.0.0.1:80");
  table->set(address, ready(address));
  CHECK(has_changed());
  table->set(address, std::nullopt);
  CHECK(has_changed());
  table = nullptr;
  CHECK(has_changed());
  CHECK(board.pieces().subchannels.empty());
  CHECK_FALSE(has_changed());
}

TEST_CASE("status board: a table of subchannels never keeps a connection", "[actors][status]") {
  TargetBoard board("xds:///orders");
  auto table = board.open_table(kPlace);
  const Address address("10.0.0.1:80");
  auto seen = ready(address);
  table->set(address, seen);
  table->set(Address("10.0.0.2:80"), lb::SubchannelSeen{.state = EndpointState::kConnecting});
  auto known = board.pieces().subchannels.at(kPlace);
  CHECK(known.size() == 2);
  CHECK(known.at(address).state == EndpointState::kReady);
  CHECK(known.at(address).connection.lock() == seen.connection);
  seen.connection = nullptr;
  CHECK(known.at(address).connection.expired());
  table->set(address, std::nullopt);
  CHECK(board.pieces().subchannels.at(kPlace).size() == 1);
  table = nullptr;
  CHECK(board.pieces().subchannels.empty());
}

TEST_CASE("status board: readers see whole pieces while an actor writes", "[actors][status]") {
  TargetBoard board("xds:///orders");
  const auto table = board.open_table(kPlace);
  std::atomic<bool> done{false};
  std::thread actor([&] {
    for (int round = 0; round < 200; ++round) {
      for (int i = 0; i < 50; ++i) {
        const Address address("10.0.0." + std::to_string(i) + ":80");
        lb::SubchannelSeen seen{.state = EndpointState::kEjected};
        seen.ejections = 7;
        seen.why = absl::UnavailableError("ejected");
        table->set(address, round % 2 == 0 ? std::optional(seen) : std::nullopt);
      }
    }
    done = true;
  });
  std::size_t looked = 0;
  bool whole = true;
  while (!done || looked == 0) {
    const TargetPieces pieces = board.pieces();
    for (const auto& [address, piece] : pieces.subchannels.at(kPlace)) {
      whole = whole && piece.state == EndpointState::kEjected && piece.ejections == 7 &&
              piece.why == absl::UnavailableError("ejected");
    }
    ++looked;
  }
  actor.join();
  CHECK(whole);
}

}  // namespace signalbox::actors
