// SPDX-License-Identifier: Apache-2.0
#include "lb/route/path_index.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include <catch2/catch.hpp>

namespace signalbox::lb {
namespace {

using Found = std::vector<std::uint32_t>;

Found found_in(const PathIndex& index, absl::string_view path) {
  Candidates candidates;
  index.collect(path, candidates);
  Found found;
  for (const Positions& list : candidates) {
    CHECK(std::ranges::is_sorted(list));
    found.insert(found.end(), list.begin(), list.end());
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

TEST_CASE("path_index: finds exact paths and prefixes, and nothing else", "[lb][route][A28]") {
  const PathIndex index({{"/s.A/", false, 0},
                         {"/s.B/m", true, 1},
                         {"/s.A/", false, 2},
                         {"/s.B/m", false, 3},
                         {"", false, 4},
                         {"/s.B/m", true, 5}},
                        false);
  CHECK(found_in(index, "/s.A/x") == Found{0, 2, 4});
  CHECK(found_in(index, "/s.A/") == Found{0, 2, 4});
  CHECK(found_in(index, "/s.A") == Found{4});
  CHECK(found_in(index, "/s.B/m") == Found{1, 3, 4, 5});
  CHECK(found_in(index, "/s.B/mm") == Found{3, 4});
  CHECK(found_in(index, "/S.A/x") == Found{4});
  CHECK(found_in(index, "") == Found{4});
}

TEST_CASE("path_index: an exact path may be empty", "[lb][route][A28]") {
  const PathIndex index({{"", true, 0}, {"a", true, 1}}, false);
  CHECK(found_in(index, "") == Found{0});
  CHECK(found_in(index, "a") == Found{1});
  CHECK(found_in(index, "b").empty());
}

TEST_CASE("path_index: in any case it is ASCII's", "[lb][route][A28]") {
  const PathIndex index({{"/S.a/", false, 0}, {"/s.A/M", true, 1}, {"/Ä", false, 2}}, true);
  CHECK(found_in(index, "/s.A/m") == Found{0, 1});
  CHECK(found_in(index, "/S.A/M") == Found{0, 1});
  CHECK(found_in(index, "/Ä") == Found{2});
  CHECK(found_in(index, "/ä").empty());
}

TEST_CASE("path_index: bytes are bytes", "[lb][route][A28]") {
  const std::string zero("/\0a", 3);
  const PathIndex index({{zero, true, 0}, {"/\xff", false, 1}, {"/", true, 2}}, false);
  CHECK(found_in(index, zero) == Found{0});
  CHECK(found_in(index, "/\xff\xfe") == Found{1});
  CHECK(found_in(index, "/") == Found{2});
}

// The texts have every length modulo a machine word. They are so alike that neither hashes nor last
// bytes decide alone.
TEST_CASE("path_index: texts of every length, against a loop over all of them",
          "[lb][route][A28]") {
  const bool ignore_case = GENERATE(false, true);
  std::mt19937 dice(7);
  const auto text_like = [&dice](const std::string& whole) {
    std::string text = whole.substr(0, dice() % (whole.size() + 1));
    if (!text.empty() && dice() % 4 == 0) text[dice() % text.size()] = dice() % 2 == 0 ? 'b' : 'A';
    return text;
  };
  const std::string whole = "aaaaaaaaAa/aaaaaaa[aaaaaaaaaZ{aaaa/aaaa";
  std::vector<PathIndex::Entry> entries;
  for (std::uint32_t position = 0; position < 600; ++position)
    entries.push_back({text_like(whole), dice() % 2 == 0, position});
  const PathIndex index(entries, ignore_case);

  std::size_t matches = 0;
  for (int call = 0; call < 3'000; ++call) {
    const std::string path = dice() % 2 == 0 ? text_like(whole) : entries[dice() % 600].text;
    const auto fulfils = [&](const PathIndex::Entry& entry) {
      if (entry.is_exact && entry.text.size() != path.size()) return false;
      return ignore_case ? absl::StartsWithIgnoreCase(path, entry.text)
                         : absl::StartsWith(path, entry.text);
    };
    Found expected;
    for (const PathIndex::Entry& entry : entries) {
      if (fulfils(entry)) expected.push_back(entry.position);
    }
    matches += expected.size();
    CAPTURE(path, ignore_case);
    REQUIRE(found_in(index, path) == expected);
  }
  CHECK(matches > 30'000);
}

TEST_CASE("path_index: any number of texts leaves room to miss", "[lb][route]") {
  std::vector<PathIndex::Entry> entries;
  for (std::uint32_t count = 1; count <= 70; ++count) {
    entries.push_back({"/" + std::to_string(count), count % 2 == 0, count});
    const PathIndex index(entries, false);
    CHECK(found_in(index, "/x").empty());
    CHECK(found_in(index, "/" + std::to_string(count)).back() == count);
  }
}

TEST_CASE("path_index: nothing is in an empty one", "[lb][route][A28]") {
  CHECK(found_in({}, "").empty());
  CHECK(found_in(PathIndex({}, true), "/a").empty());
}

TEST_CASE("path_index: ten thousand prefixes in one another", "[lb][route][limits]") {
  constexpr std::uint32_t kDepth = 10'000;
  std::vector<PathIndex::Entry> entries;
  for (std::uint32_t size = 0; size < kDepth; ++size)
    entries.push_back({std::string(size, 'a'), false, size});
  const PathIndex index(std::move(entries), false);
  CHECK(found_in(index, "").size() == 1);
  CHECK(found_in(index, std::string(99, 'a')).size() == 100);
  CHECK(found_in(index, std::string(std::size_t{1} << 20U, 'a')).size() == kDepth);
}

}  // namespace signalbox::lb
