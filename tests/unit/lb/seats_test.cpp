// SPDX-License-Identifier: Apache-2.0
#include "lb/session/seats.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

namespace signalbox::lb {
namespace {

std::vector<std::string> cookies(std::size_t count) {
  std::vector<std::string> made;
  for (std::size_t i = 0; i < count; ++i)
    made.push_back(absl::StrCat("10.", i / 65'536, ".", i / 256 % 256, ".", i % 256, ":8080;c"));
  return made;
}

// Seats for the hosts of these cookies. owner() says which cookie's seat was found.
struct Hall {
  explicit Hall(std::vector<std::string> all) : owners(std::move(all)), seats(owners.size()) {
    for (const std::string& owner : owners) {
      Seat seat;
      seat.set(Complete(&connection));
      seat.hosts = &owner;
      seats.give(CookieKey(owner), seat);
    }
  }

  const std::string* owner(absl::string_view cookie, const Seat* first = nullptr) const {
    const Seat* const seat = seats.find(CookieKey(cookie), first);
    return seat == nullptr ? nullptr : seat->hosts;
  }

  const Connection connection{Address("10.0.0.1:80")};
  const std::vector<std::string> owners;
  Seats seats;
};

TEST_CASE("seats: a cookie leads to its owner, asked for before or not", "[lb][session]") {
  for (const std::size_t count : {1, 2, 3, 7, 100, 1'000, 10'000}) {
    CAPTURE(count);
    const Hall hall(cookies(count));
    for (const std::string& cookie : hall.owners) {
      REQUIRE(hall.owner(cookie) == &cookie);
      REQUIRE(hall.owner(cookie, hall.seats.at(CookieKey(cookie))) == &cookie);
    }
  }
}

TEST_CASE("seats: nearly all sit where the cookie says", "[lb][session]") {
  const Hall hall(cookies(1'000));
  int at_once = 0;
  for (const std::string& cookie : hall.owners)
    at_once += hall.seats.at(CookieKey(cookie))->key == CookieKey(cookie) ? 1 : 0;
  CHECK(at_once > 700);
}

TEST_CASE("seats: who has no seat finds none", "[lb][session]") {
  const Hall hall(cookies(100));
  for (std::size_t length = 0; length < 200; ++length) {
    const std::string stranger(length, 'x');
    CHECK(hall.owner(stranger) == nullptr);
    CHECK(hall.owner(stranger, hall.seats.at(CookieKey(stranger))) == nullptr);
  }
  for (const std::string& cookie : hall.owners) {
    CHECK(hall.owner(cookie.substr(1)) == nullptr);
    CHECK(hall.owner(cookie.substr(0, cookie.size() - 1)) == nullptr);
    CHECK(hall.owner(cookie + "x") == nullptr);
    for (std::size_t i = 0; i < cookie.size(); ++i) {
      std::string other = cookie;
      other[i] = 'x';
      REQUIRE(hall.owner(other) == nullptr);
    }
  }
}

TEST_CASE("seats: who has no cookie finds none", "[lb][session]") {
  const Hall hall({"a"});
  CHECK(hall.seats.find(CookieKey(), nullptr) == nullptr);
  CHECK(CookieKey("") == CookieKey());
}

TEST_CASE("seats: a seat elsewhere says nothing here", "[lb][session]") {
  const Hall here(cookies(10));
  const Hall elsewhere(cookies(GENERATE(1, 10, 1'000)));
  for (const std::string& cookie : here.owners) {
    CHECK(here.owner(cookie, elsewhere.seats.at(CookieKey(cookie))) == &cookie);
    CHECK(elsewhere.owner(cookie, here.seats.at(CookieKey(cookie))) == elsewhere.owner(cookie));
  }
}

TEST_CASE("seats: where nobody sits, nobody is found", "[lb][session]") {
  const Seats none(0);
  const CookieKey key("a");
  CHECK(none.at(key) == nullptr);
  CHECK(none.find(key, nullptr) == nullptr);
  const Seats free(3);
  REQUIRE(free.at(key) != nullptr);
  CHECK(free.find(key, free.at(key)) == nullptr);
  free.at(key)->prefetch_marks();
}

TEST_CASE("seats: texts that differ in anything have different keys", "[lb][session]") {
  const std::string text = "MTAuMC4wLjE6ODA7YQ==";
  CHECK(CookieKey(text) == CookieKey(std::string(text)));
  for (std::size_t i = 0; i < text.size(); ++i) {
    CHECK_FALSE(CookieKey(text) == CookieKey(text.substr(0, i)));
    for (std::size_t j = 0; j < i; ++j) {
      std::string swapped = text;
      std::swap(swapped[i], swapped[j]);
      if (swapped != text) CHECK_FALSE(CookieKey(text) == CookieKey(swapped));
    }
  }
  // Every byte of a cookie counts: of a cookie shorter than a word, of whole words, and of a last
  // word that overlaps the word before it.
  for (std::size_t length = 0; length < 40; ++length) {
    const std::string one(length, 'a');
    for (std::size_t i = 0; i < length; ++i) {
      std::string other = one;
      other[i] = 'b';
      CHECK_FALSE(CookieKey(one) == CookieKey(other));
    }
    CHECK_FALSE(CookieKey(one) == CookieKey(one + "a"));
  }
  // Cookies of different sizes, where the overlapping last word repeats earlier bytes.
  for (std::size_t size = 9; size < 64; ++size) {
    for (std::size_t more = 1; size + more < 72; ++more) {
      std::string one(size, 'A');
      std::string other(size + more, 'A');
      other[0] = static_cast<char>(one[0] ^ static_cast<char>(size ^ (size + more)));
      CHECK_FALSE(CookieKey(one) == CookieKey(other));
    }
  }
  CHECK_FALSE(CookieKey("1AAAAAAAd") == CookieKey("2AAAAAAAAd"));
  CHECK_FALSE(CookieKey("") == CookieKey(std::string(1, '\0')));
  CHECK_FALSE(CookieKey(std::string(8, '\0')) == CookieKey(std::string(16, '\0')));
}

TEST_CASE("seats: texts made to collide in one half of the key differ in the other",
          "[lb][session]") {
  // One step of the first half, as in cookie_key.hpp. After it, the second word of `other` makes up
  // for the difference of the first words.
  const auto step = [](std::uint64_t half, std::uint64_t word) {
    half = (half ^ word) * 0x9e3779b97f4a7c15ULL;
    return half ^ half >> 32U;
  };
  const auto text_of = [](std::uint64_t first, std::uint64_t second) {
    std::string text(2 * sizeof(std::uint64_t), '\0');
    std::memcpy(text.data(), &first, sizeof(first));
    std::memcpy(text.data() + sizeof(first), &second, sizeof(second));
    return text;
  };
  constexpr std::size_t kBound = std::size_t{1} << 62U;
  for (std::uint64_t word = 1; word < 100; ++word) {
    const CookieKey one(text_of(word, 0));
    const CookieKey other(text_of(word + 1, step(16, word) ^ step(16, word + 1)));
    CHECK(one.below(kBound) == other.below(kBound));
    CHECK_FALSE(one == other);
  }
}

}  // namespace
}  // namespace signalbox::lb
