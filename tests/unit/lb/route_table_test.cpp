// SPDX-License-Identifier: Apache-2.0
//
// RouteTable as a whole chooses the same route as a slow and obvious model (A28, A63), for a
// hundred thousand calls, and whatever the number of routes.
#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/route/route_match.hpp"
#include "tests/support/property.hpp"
#include "tests/support/route_fixture.hpp"
#include "tests/support/route_model.hpp"

namespace signalbox::lb {
namespace {

using namespace signalbox::testing;
using signalbox::test::holds;
using Kind = TextMatcher::Kind;

struct Call {
  std::string path;
  TestHeaders::List headers;
  std::uint64_t seed = 0;
};

// --- random tables and calls: few letters, so that many texts match or nearly match -----------

rc::Gen<std::string> text_of(const std::string& letters) {
  return rc::gen::resize(5, rc::gen::container<std::string>(rc::gen::elementOf(letters)));
}

rc::Gen<std::string> any_pattern() {
  return rc::gen::map(text_of("abA/.*|"), [](const std::string& letters) {
    std::string pattern;
    for (const char letter : letters) {
      const bool after_letter = !pattern.empty() && pattern.back() != '*' && pattern.back() != '|';
      if (letter != '*' || after_letter) pattern += letter;
    }
    return pattern;
  });
}

rc::Gen<TextMatcher> any_matcher(std::vector<Kind> kinds) {
  return rc::gen::apply(
      [](Kind kind, std::string text, std::string pattern, bool ignore_case) {
        return TextMatcher{kind, kind == Kind::kRegex ? pattern : text, ignore_case};
      },
      rc::gen::elementOf(std::move(kinds)),
      text_of("abA/"),
      any_pattern(),
      rc::gen::arbitrary<bool>());
}

rc::Gen<std::string> any_name() {
  return rc::gen::element<std::string>("a", "a", "b", "content-type", "c-bin");
}

// In a container of a small size, all numbers of that size would be the lowest.
rc::Gen<std::int64_t> number_in(std::int64_t lowest, std::int64_t end) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange(lowest, end));
}

rc::Gen<decltype(HeaderMatcher::matcher)> any_value_matcher() {
  using Matcher = decltype(HeaderMatcher::matcher);
  return rc::gen::oneOf(
      rc::gen::map(
          any_matcher({Kind::kExact, Kind::kPrefix, Kind::kSuffix, Kind::kContains, Kind::kRegex}),
          [](const TextMatcher& text) { return Matcher(text); }),
      rc::gen::apply([](std::int64_t start,
                        std::int64_t size) { return Matcher(IntegerRange{start, start + size}); },
                     number_in(-2, 3),
                     number_in(0, 4)),
      rc::gen::map(rc::gen::arbitrary<bool>(),
                   [](bool present) { return Matcher(PresenceMatcher{present}); }));
}

rc::Gen<HeaderMatcher> any_header_matcher() {
  return rc::gen::apply(
      [](std::string name, decltype(HeaderMatcher::matcher) matcher, bool invert, bool missing) {
        return HeaderMatcher{std::move(name), std::move(matcher), invert, missing};
      },
      any_name(),
      any_value_matcher(),
      rc::gen::arbitrary<bool>(),
      rc::gen::arbitrary<bool>());
}

rc::Gen<Route> any_route(std::vector<Kind> kinds) {
  return rc::gen::apply(
      [](TextMatcher path, std::vector<HeaderMatcher> headers, std::uint32_t fraction) {
        Route route{"", {std::move(path), std::move(headers), std::nullopt}, to("a")};
        if (fraction <= 1'000'000) route.match.fraction_per_million = fraction;
        return route;
      },
      any_matcher(std::move(kinds)),
      rc::gen::resize(2, rc::gen::container<std::vector<HeaderMatcher>>(any_header_matcher())),
      rc::gen::weightedElement<std::uint32_t>(
          {{6, 2'000'000}, {2, 0}, {2, 500'000}, {1, 1'000'000}}));
}

rc::Gen<Call> any_call() {
  return rc::gen::apply(
      [](std::string path, TestHeaders::List headers, std::uint64_t seed) {
        return Call{std::move(path), std::move(headers), seed};
      },
      text_of("abA/"),
      rc::gen::resize(3,
                      rc::gen::container<TestHeaders::List>(rc::gen::pair(
                          any_name(),
                          rc::gen::element<std::string>(
                              "", "a", "A", "ab", "b,a", "1", "-1", "0", "9223372036854775808")))),
      rc::gen::arbitrary<std::uint64_t>());
}

// --- against the model ------------------------------------------------------------

// Counts each outcome of a call, to show that the property covers them.
struct Seen {
  int none = 0;
  int first = 0;
  int later = 0;
  int ranges = 0;  ///< Of integers, with more than one number.
};

int ranges_in(const std::vector<Route>& routes) {
  int ranges = 0;
  for (const Route& route : routes) {
    ranges += static_cast<int>(std::ranges::count_if(route.match.headers, [](const auto& header) {
      const auto* const range = std::get_if<IntegerRange>(&header.matcher);
      return range != nullptr && range->end > range->start + 1;
    }));
  }
  return ranges;
}

std::string text_of(const RouteMatch& match) {
  constexpr const char* kNames[] = {"exact", "prefix", "suffix", "contains", "regex"};
  return absl::StrCat(kNames[static_cast<int>(match.path.kind)],
                      match.path.ignore_case ? "(i) \"" : " \"",
                      match.path.text,
                      "\" + ",
                      match.headers.size(),
                      " headers; ");
}

void check_calls(const std::vector<Route>& routes, const std::vector<Call>& calls, Seen& seen) {
  VirtualHost host;
  host.routes = routes;
  const RouteTable table(host);
  const auto said = [](std::optional<std::size_t> position) {
    return position ? absl::StrCat(*position) : std::string("none");
  };
  for (const Call& call : calls) {
    const TestHeaders headers(call.headers);
    const auto expected = expected_route(host, call.path, headers, call.seed);
    const auto found = table.find({call.path, &headers, nullptr, call.seed});
    ++(!expected ? seen.none : *expected == 0 ? seen.first : seen.later);
    if (found == expected) continue;
    std::string all;
    for (const Route& route : routes)
      absl::StrAppend(&all, text_of(route.match));
    RC_FAIL(absl::StrCat(said(found), ", not ", said(expected), ", for ", call.path, " in ", all));
  }
}

}  // namespace
}  // namespace signalbox::lb

namespace rc {

// The text does not matter: check_calls reports a failing case.
inline void showValue(const signalbox::Route&, std::ostream& os) {
  os << "route";
}

}  // namespace rc

namespace signalbox::lb {

// RapidCheck makes the tables, and for each table the calls that it routes.
TEST_CASE("route_table: chooses the route that the rules choose",
          "[lb][route_match][property][A28][A63]") {
  constexpr int kTables = 1'500;
  constexpr int kCalls = 40;
  Seen seen;
  CHECK(holds("the first route that matches, among paths of every kind", kTables, [&seen] {
    const auto routes = *rc::gen::resize(
        16,
        rc::gen::container<std::vector<Route>>(
            any_route({Kind::kExact, Kind::kPrefix, Kind::kPrefix, Kind::kRegex})));
    seen.ranges += ranges_in(routes);
    check_calls(routes, *rc::gen::container<std::vector<Call>>(kCalls, any_call()), seen);
  }));
  CAPTURE(seen.none, seen.first, seen.later, seen.ranges);
  const int calls = seen.none + seen.first + seen.later;
  CHECK(seen.ranges > kTables / 10);
  CHECK(seen.none > calls / 4);
  CHECK(seen.first > calls / 30);
  CHECK(seen.later > calls / 5);
}

TEST_CASE("route_table: chooses the route that the rules choose, among many regular expressions",
          "[lb][route_match][property][A28]") {
  constexpr int kTables = 1'000;
  constexpr int kCalls = 40;
  Seen seen;
  CHECK(holds("the first route that matches, among regular expressions", kTables, [&seen] {
    const auto regexes = *rc::gen::container<std::vector<Route>>(12, any_route({Kind::kRegex}));
    auto routes = *rc::gen::resize(
        8, rc::gen::container<std::vector<Route>>(any_route({Kind::kExact, Kind::kPrefix})));
    routes.insert(routes.begin() + static_cast<std::ptrdiff_t>(routes.size() / 2),
                  regexes.begin(),
                  regexes.end());
    check_calls(routes, *rc::gen::container<std::vector<Call>>(kCalls, any_call()), seen);
  }));
  CAPTURE(seen.none, seen.first, seen.later);
  const int calls = seen.none + seen.first + seen.later;
  CHECK(seen.none > calls / 10);
  CHECK(seen.first > calls / 40);
  CHECK(seen.later > calls / 5);
}

}  // namespace signalbox::lb
