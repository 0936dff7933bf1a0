// SPDX-License-Identifier: Apache-2.0
#include "lb/route/regex.hpp"

#include <catch2/catch.hpp>

namespace signalbox::lb {
namespace {

using Matched = std::vector<int>;

std::optional<Matched> matched(const RegexSet& set, absl::string_view text) {
  const auto found = set.match(text);
  if (!found) return std::nullopt;
  return Matched(found->begin(), found->end());
}

}  // namespace

TEST_CASE("literal_prefix: what every match begins with, as far as it is easily seen",
          "[lb][route][A28]") {
  struct Row {
    const char* pattern;
    const char* prefix;
  };

  const auto row = GENERATE(values<Row>({
      {"", ""},
      {"/s", "/s"},
      {"^/s", "/s"},
      {"/s$", "/s"},
      {"/s\\.A/.*", "/s.A/"},
      {"/s\\-\\\\t", "/s-\\t"},
      {"/s[AB]", "/s"},
      {"/s(A)", "/s"},
      {"/s.", "/s"},
      {"/st*", "/s"},
      {"/st+", "/s"},
      {"/st?", "/s"},
      {"/st{0}", "/s"},
      {"/s\\.*", "/s"},
      {"/s\\d", "/s"},
      {"/s\\b/t", "/s"},
      {"/s\\Q.*\\E", "/s"},
      {"/s\\x41", "/s"},
      {"/sé*", "/s"},
      {"/s|/t", ""},
      {"/s(A|B)", ""},
      {"(?i)/s", ""},
      {"(?:/s)", ""},
      {"[/]s", ""},
      {".*", ""},
      {"*", ""},
      {"^*/s", ""},
      {"\\A/s", ""},
      {"\\", ""},
  }));
  CAPTURE(row.pattern);
  CHECK(literal_prefix(row.pattern) == row.prefix);
}

TEST_CASE("literal_prefix: all that a pattern matches begins with it", "[lb][route][A28]") {
  const auto* const pattern =
      GENERATE("/st*", "/st?u", "/s\\.*", "^/s\\.t{0,2}u", "/s(t)", "(?i)/s");
  const auto regex = compile_regex(pattern);
  const std::string prefix = literal_prefix(pattern);
  int matches = 0;
  for (const char* text :
       {"/s", "/S", "/st", "/stt", "/su", "/stu", "/s.u", "/s.tu", "/s..", "/s."}) {
    if (!re2::RE2::FullMatch(text, *regex)) continue;
    ++matches;
    CHECK(absl::string_view(text).substr(0, prefix.size()) == prefix);
  }
  CHECK(matches > 0);
}

TEST_CASE("RegexPool: a text is compiled once, and shared", "[lb][route][limits]") {
  RegexPool pool(2);
  const RegexPtr one = pool.get("a+");
  CHECK(one == pool.get("a+"));
  CHECK(one != pool.get("a*"));
  CHECK_FALSE(pool.get("(")->ok());
}

TEST_CASE("RegexPool: many patterns have little memory each, unless a pattern needs more",
          "[lb][route][limits]") {
  CHECK(RegexPool(1).get("a")->options().max_mem() == 1 << 20);
  CHECK(RegexPool(256).get("a")->options().max_mem() == 256 << 10);
  RegexPool many(100'000);
  CHECK(many.get("a")->options().max_mem() == 64 << 10);
  const RegexPtr large = many.get("\\pL{100}");
  CHECK(large->ok());
  CHECK(large->options().max_mem() > 64 << 10);
  // With little memory a match is slower, and still correct.
  CHECK(re2::RE2::FullMatch(std::string(100, 'a'), *large));
}

TEST_CASE("RegexSet: sets that share the memory match as they do alone", "[lb][route][limits]") {
  CHECK(matched(RegexSet({"b.*", "a", ".*"}, 1000), "a") == Matched{1, 2});
}

TEST_CASE("RegexSet: tells which patterns match the whole text, in order", "[lb][route][A28]") {
  const RegexSet set({"b.*", "a", ".*", "[ab]+", "a|b", "\\C*a"});
  CHECK(matched(set, "a") == Matched{1, 2, 3, 4, 5});
  CHECK(matched(set, "ba") == Matched{0, 2, 3, 5});
  CHECK(matched(set, "") == Matched{2});
  CHECK(matched(set, "\n") == Matched{});
  CHECK(matched(set, "a\n") == Matched{});
  // Not UTF-8.
  CHECK(matched(set, "\xff") == Matched{});
  CHECK(matched(set,
                "\xff"
                "a") == Matched{5});
}

TEST_CASE("RegexSet: says so where all together do not fit into the memory",
          "[lb][route][limits]") {
  std::vector<std::string> patterns;
  for (char first = 'a'; first < 'j'; ++first)
    patterns.push_back(std::string("(") + first + ")\\pL{30}");
  CHECK(matched(RegexSet(patterns), "a" + std::string(30, 'z')) == std::nullopt);
}

}  // namespace signalbox::lb
