// SPDX-License-Identifier: Apache-2.0
#include "channel/target_table.hpp"

#include <chrono>
#include <future>
#include <memory>
#include <string>

#include <catch2/catch.hpp>

namespace signalbox::channel {
namespace {

constexpr std::chrono::seconds kPatience{60};  // More than the slowest machine needs.

using Board = std::shared_ptr<actors::TargetBoard>;

std::shared_ptr<Target> make_target(const Board& board) {
  auto target = std::make_shared<Target>();
  actors::ChannelPort port;
  port.status = board;
  target->open(std::make_shared<HostLink>(), std::move(port));
  return target;
}

std::shared_ptr<Target> add(TargetTable& table, const std::string& name, const Board& board) {
  return table.find_or_make(name, [&] { return make_target(board); });
}

Board some_board() {
  return std::make_shared<actors::TargetBoard>();
}

void publish(const Board& board, ConnectivityState state) {
  board->published(1, state, absl::OkStatus(), true, Instant{});
}

}  // namespace

TEST_CASE("target table: a target is ready when it can send calls, and all when each can",
          "[channel][target][status]") {
  TargetTable table;
  CHECK(table.ready("") == true);
  CHECK(table.ready("a") == std::nullopt);
  const Board board_a = some_board();
  const Board board_b = some_board();
  auto a = add(table, "a", board_a);
  const auto b = add(table, "b", board_b);
  CHECK(add(table, "a", some_board()) == a);
  CHECK(table.ready("") == false);
  publish(board_a, ConnectivityState::kReady);
  CHECK(table.ready("a") == true);
  CHECK(table.ready("b") == false);
  CHECK(table.ready("") == false);
  CHECK(table.readiness() == std::map<std::string, bool>{{"a", true}, {"b", false}});
  publish(board_b, ConnectivityState::kIdle);
  CHECK(table.ready("") == true);
  publish(board_a, ConnectivityState::kTransientFailure);
  CHECK(table.ready("a") == false);
  CHECK(table.ready("") == false);

  a = nullptr;
  CHECK(table.ready("a") == std::nullopt);
  CHECK(table.ready("") == true);
  CHECK(table.readiness() == std::map<std::string, bool>{{"b", true}});
  CHECK(table.in_use().size() == 1);
  a = add(table, "a", some_board());
  CHECK(table.ready("a") == false);
  CHECK(table.ready("") == false);
}

TEST_CASE("target table: readiness is read while another target is made",
          "[channel][target][status]") {
  TargetTable table;
  const Board board = some_board();
  const auto orders = add(table, "orders", board);
  publish(board, ConnectivityState::kReady);
  std::promise<void> begun;
  std::promise<void> gate;
  auto slow = std::async(std::launch::async, [&] {
    return table.find_or_make("slow", [&] {
      begun.set_value();
      gate.get_future().wait();
      return make_target(some_board());
    });
  });
  begun.get_future().wait();
  auto asked = std::async(std::launch::async, [&] {
    return table.ready("orders") == true && table.ready("") == true &&
           table.ready("slow") == std::nullopt && table.readiness().size() == 1;
  });
  const bool is_answered = asked.wait_for(kPatience) == std::future_status::ready;
  gate.set_value();
  CHECK(is_answered);
  CHECK(asked.get());
  const auto made = slow.get();
  CHECK(table.ready("slow") == false);
}

}  // namespace signalbox::channel
