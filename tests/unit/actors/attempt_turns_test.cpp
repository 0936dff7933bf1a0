// SPDX-License-Identifier: Apache-2.0
#include "actors/io/attempt_turns.hpp"

#include <algorithm>
#include <chrono>

#include <catch2/catch.hpp>

namespace signalbox::actors::attempt_turns_test {
namespace {

using namespace std::chrono_literals;
using Turns = AttemptTurns<int>;
using Keys = std::vector<int>;

constexpr Instant kStart{};

Turns turns_wanted_by(int count) {
  Turns turns(AttemptLimits{.at_once = 2, .slow_after = 250ms});
  for (int key = 1; key <= count; ++key)
    turns.want(key);
  return turns;
}

}  // namespace

TEST_CASE("attempt_turns: few attempts begin at once", "[scale][attempt_turns]") {
  Turns turns = turns_wanted_by(2);

  CHECK(turns.begin(kStart) == Keys{1, 2});
  CHECK(turns.begin(kStart).empty());
  CHECK(turns.next_turn() == std::nullopt);
}

TEST_CASE("attempt_turns: of many, the oldest and the newest begin when others are done",
          "[scale][attempt_turns][T1][T2]") {
  Turns turns = turns_wanted_by(6);
  CHECK(turns.begin(kStart) == Keys{1, 6});

  turns.done(6);
  CHECK(turns.begin(kStart + 1ms) == Keys{2});
  turns.done(1);
  turns.done(2);
  CHECK(turns.begin(kStart + 2ms) == Keys{5, 3});
}

TEST_CASE("attempt_turns: who comes last does not wait for 10,000 before him",
          "[scale][attempt_turns][T2]") {
  Turns turns = turns_wanted_by(10'000);
  turns.begin(kStart);
  turns.want(0);

  turns.done(1);
  turns.done(10'000);
  const Keys next = turns.begin(kStart);
  CHECK(std::ranges::count(next, 0) == 1);
}

TEST_CASE("attempt_turns: a hundred thousand that wait are withdrawn at once",
          "[scale][attempt_turns]") {
  constexpr int kMany = 100'000;
  Turns turns = turns_wanted_by(kMany);
  REQUIRE(turns.begin(kStart) == Keys{1, kMany});
  const auto begun = std::chrono::steady_clock::now();
  for (int key = kMany - 1; key > 2; --key)
    turns.withdraw(key);
  // If each withdrawal walked through all waiting attempts, this would take far longer.
  CHECK(std::chrono::steady_clock::now() - begun < 5s);
  turns.withdraw(3);  // Attempt 3 is already withdrawn.
  turns.done(1);
  CHECK(turns.begin(kStart) == Keys{2});
}

TEST_CASE("attempt_turns: a slow attempt holds nobody up for long", "[scale][attempt_turns][T1]") {
  Turns turns = turns_wanted_by(2);
  turns.begin(kStart);
  turns.want(3);
  turns.done(1);
  CHECK(turns.begin(kStart + 100ms) == Keys{3});

  turns.want(4);
  REQUIRE(turns.next_turn().has_value());
  CHECK(*turns.next_turn() <= kStart + 250ms);
  CHECK(turns.begin(kStart + 249ms).empty());
  CHECK(turns.begin(kStart + 250ms) == Keys{4});

  turns.want(5);
  turns.done(2);  // Attempt 4 has already replaced slow attempt 2, so this end frees no turn.
  CHECK(turns.begin(kStart + 251ms).empty());
  CHECK(turns.begin(kStart + 350ms) == Keys{5});
}

TEST_CASE("attempt_turns: who is not wanted any more loses his place",
          "[scale][attempt_turns][T2]") {
  Turns turns = turns_wanted_by(2);
  turns.begin(kStart);
  turns.want(3);
  turns.want(4);

  turns.withdraw(3);
  turns.done(1);
  CHECK(turns.begin(kStart) == Keys{4});
}

TEST_CASE("attempt_turns: 10,000 silent attempts have all begun after sixteen seconds",
          "[scale][attempt_turns]") {
  AttemptTurns<int> turns;
  constexpr int kAttempts = 10'000;
  for (int key = 0; key < kAttempts; ++key)
    turns.want(key);

  std::size_t begun = 0;
  std::size_t most = 0;
  Instant now = kStart;
  for (; begun < kAttempts && now <= kStart + 16s; now = turns.next_turn().value_or(now)) {
    const std::size_t turn = turns.begin(now).size();
    most = std::max(most, turn);
    begun += turn;
  }

  CHECK(begun == kAttempts);
  CHECK(most == AttemptLimits{}.at_once);
}

}  // namespace signalbox::actors::attempt_turns_test
