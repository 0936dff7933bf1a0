// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/seating.hpp"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

namespace signalbox::lb {
namespace {

std::vector<std::string> addresses(std::size_t count) {
  std::vector<std::string> made;
  for (std::size_t i = 0; i < count; ++i)
    made.push_back(absl::StrCat("10.", i / 65'536, ".", i / 256 % 256, ".", i % 256, ":8080"));
  return made;
}

Seating seating_of(const std::vector<std::string>& keys) {
  return Seating(std::vector<absl::string_view>(keys.begin(), keys.end()));
}

TEST_CASE("seating: each key has a seat of its own", "[lb][seating]") {
  for (const std::size_t count : {1, 2, 3, 7, 100, 1'000, 10'000}) {
    CAPTURE(count);
    const auto keys = addresses(count);
    const Seating seating = seating_of(keys);
    CHECK(seating.size() >= count);
    CHECK(seating.size() <= count + count / 8 + 1);
    std::set<std::size_t> taken;
    for (const std::string& key : keys) {
      const std::size_t seat = seating.seat_of(key);
      CHECK(seat < seating.size());
      CHECK(seat == seating.seat_of(key));
      taken.insert(seat);
    }
    CHECK(taken.size() == count);
  }
}

TEST_CASE("seating: nobody sits nowhere", "[lb][seating]") {
  CHECK(Seating().size() == 0);
  CHECK(seating_of({}).size() == 0);
}

TEST_CASE("seating: whoever asks is sent to some seat", "[lb][seating]") {
  const Seating seating = seating_of(addresses(100));
  for (std::size_t length = 0; length < 200; ++length)
    CHECK(seating.seat_of(std::string(length, 'x')) < seating.size());
}

TEST_CASE("seating: one key twice has one seat, and the others keep theirs", "[lb][seating]") {
  auto keys = addresses(50);
  keys.push_back(keys[7]);
  const Seating seating = seating_of(keys);
  std::set<std::size_t> taken;
  for (const std::string& key : keys)
    taken.insert(seating.seat_of(key));
  // Who was to sit in a group with the two may have lost his own.
  CHECK(taken.size() > 40);
}

}  // namespace
}  // namespace signalbox::lb
