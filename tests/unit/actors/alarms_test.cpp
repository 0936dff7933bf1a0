// SPDX-License-Identifier: Apache-2.0
#include "actors/alarms.hpp"

#include <chrono>
#include <string>

#include <catch2/catch.hpp>

namespace signalbox::actors {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{};

std::string words_of(const std::vector<std::pair<int, char>>& due) {
  std::string words;
  for (const auto& [key, what] : due)
    words += std::to_string(key) + what;
  return words;
}

TEST_CASE("alarms: what is due is taken once, the earliest first", "[scale][alarms]") {
  Alarms<int, char> alarms;
  CHECK(alarms.next() == std::nullopt);
  alarms.set(1, kStart + 3s, 'a');
  alarms.set(2, kStart + 1s, 'b');
  alarms.set(3, kStart + 2s, 'c');
  CHECK(alarms.next() == kStart + 1s);
  CHECK(words_of(alarms.take_due(kStart)).empty());
  CHECK(words_of(alarms.take_due(kStart + 2s)) == "2b3c");
  CHECK(alarms.next() == kStart + 3s);
  CHECK(words_of(alarms.take_due(kStart + 9s)) == "1a");
  CHECK(alarms.next() == std::nullopt);
}

TEST_CASE("alarms: a key has one, and takes it along when it goes", "[scale][alarms]") {
  Alarms<int, char> alarms;
  alarms.set(1, kStart + 1s, 'a');
  alarms.set(1, kStart + 2s, 'b');
  alarms.set(2, kStart + 2s, 'c');
  CHECK(alarms.next() == kStart + 2s);
  alarms.drop(2);
  alarms.drop(3);
  CHECK(words_of(alarms.take_due(kStart + 9s)) == "1b");
  alarms.drop(1);
  CHECK(alarms.next() == std::nullopt);
}

}  // namespace
}  // namespace signalbox::actors
