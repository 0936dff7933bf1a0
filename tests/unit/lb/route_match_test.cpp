// SPDX-License-Identifier: Apache-2.0
#include "lb/route/route_match.hpp"

#include <catch2/catch.hpp>

#include "lb/header_value.hpp"
#include "tests/support/route_fixture.hpp"

namespace signalbox::lb {
namespace {

using namespace signalbox::testing;

bool matches(const HeaderMatcher& matcher, const HeaderSource* headers) {
  return CompiledHeader(matcher).matches(HeaderValue(headers, matcher.name).get());
}

TEST_CASE("route_match: a path is compared as its matcher says", "[lb][route_match][A28]") {
  struct Row {
    const char* when;
    TextMatcher matcher;
    const char* path;
    bool matched;
  };

  const auto row = GENERATE(values<Row>({
      {"exact, the same", exact("/a.B/C"), "/a.B/C", true},
      {"exact, longer", exact("/a.B/C"), "/a.B/CD", false},
      {"exact, other case", exact("/a.B/C"), "/a.b/c", false},
      {"exact, other case allowed", in_any_case(exact("/a.B/C")), "/A.b/c", true},
      {"prefix, whole", prefix("/a.B/"), "/a.B/", true},
      {"prefix, longer", prefix("/a.B/"), "/a.B/C", true},
      {"prefix, shorter", prefix("/a.B/"), "/a.B", false},
      {"prefix, empty, matches all", prefix(""), "/a.B/C", true},
      {"prefix, other case", prefix("/a.B/"), "/A.B/C", false},
      {"prefix, other case allowed", in_any_case(prefix("/a.B/")), "/A.B/C", true},
      {"regex, whole path", regex("/a\\.B/[CD]"), "/a.B/D", true},
      {"regex, only a part", regex("a\\.B"), "/a.B/D", false},
      {"regex, ignore_case does nothing", in_any_case(regex("/a\\.B/C")), "/A.B/C", false},
      {"regex, broken", regex("/a(("), "/a((", false},
  }));
  DYNAMIC_SECTION(row.when) {
    CHECK(CompiledText(row.matcher).matches(row.path) == row.matched);
  }
}

TEST_CASE("route_match: a regular expression is held to its memory limit",
          "[lb][route_match][A28]") {
  CHECK_FALSE(CompiledText(regex("((a{1,100}){1,100}){1,100}")).matches("a"));
  CHECK_FALSE(CompiledText(regex("(\\pL{500}){500}")).matches("a"));
}

TEST_CASE("route_match: a pattern that a user's limit allowed is compiled",
          "[lb][route_match][limits]") {
  // A pattern of more than 1 MiB when compiled still works.
  CHECK(CompiledText(regex("\\pL{100}")).matches(std::string(100, 'a')));
}

TEST_CASE("route_match: a header is compared as its matcher says", "[lb][route_match][A28][A63]") {
  struct Row {
    const char* when;
    HeaderMatcher matcher;
    bool matched;
  };

  const auto row = GENERATE(values<Row>({
      {"exact", {"env", exact("canary"), false}, true},
      {"exact, other", {"env", exact("prod"), false}, false},
      {"exact, inverted", {"env", exact("prod"), true}, true},
      {"exact, in any case", {"env", in_any_case(exact("CANARY")), false}, true},
      {"prefix", {"env", prefix("can"), false}, true},
      {"suffix", {"env", suffix("ary"), false}, true},
      {"suffix, in any case", {"env", in_any_case(suffix("ARY")), false}, true},
      {"contains", {"env", containing("nar"), false}, true},
      {"contains, other case", {"env", containing("NAR"), false}, false},
      {"contains, in any case", {"env", in_any_case(containing("NAR")), false}, true},
      {"contains, in any case, other", {"env", in_any_case(containing("NAT")), false}, false},
      {"contains nothing, in an empty value", {"void", in_any_case(containing("")), false}, true},
      {"regex", {"env", regex("c.*y"), false}, true},
      {"regex, a part only", {"env", regex("nar"), false}, false},
      {"range, its start", {"shard", IntegerRange{7, 9}, false}, true},
      {"range, its end", {"shard", IntegerRange{5, 7}, false}, false},
      {"range, inverted", {"shard", IntegerRange{5, 7}, true}, true},
      {"range, negative", {"depth", IntegerRange{-5, 0}, false}, true},
      {"range, not a number", {"env", IntegerRange{0, 9}, false}, false},
      {"range, not a number, inverted", {"env", IntegerRange{0, 9}, true}, true},
      {"present", {"env", PresenceMatcher{true}, false}, true},
      {"present, inverted", {"env", PresenceMatcher{true}, true}, false},
      {"absent", {"nope", PresenceMatcher{false}, false}, true},
      {"absent, inverted", {"nope", PresenceMatcher{false}, true}, false},
      {"an absent header matches no text", {"nope", exact(""), false}, false},
      {"an absent header matches no text, inverted", {"nope", exact("x"), true}, false},
      {"an absent header matches no range, inverted", {"nope", IntegerRange{1, 2}, true}, false},
      {"absent is empty, exact", {"nope", exact(""), false, true}, true},
      {"absent is empty, exact, inverted", {"nope", exact("x"), true, true}, true},
      {"absent is empty, another text", {"nope", exact("x"), false, true}, false},
      {"absent is empty, prefix", {"nope", prefix(""), false, true}, true},
      {"absent is empty, regex", {"nope", regex("x*"), false, true}, true},
      {"absent is empty, range", {"nope", IntegerRange{0, 9}, false, true}, false},
      {"absent is empty, range, inverted", {"nope", IntegerRange{0, 9}, true, true}, true},
      {"absent is empty, and so present", {"nope", PresenceMatcher{true}, false, true}, true},
      {"absent is empty, and so not absent", {"nope", PresenceMatcher{false}, false, true}, false},
      {"a header that is there is itself", {"env", exact("canary"), false, true}, true},
      {"several values are joined", {"tag", exact("a,b,"), false}, true},
      {"several values are not looked at one by one", {"tag", exact("b"), false}, false},
      {"an empty first value is joined too", {"gap", exact(",b"), false}, true},
      {"a binary header is not there", {"id-bin", exact("x"), false}, false},
      {"a binary header is not there, inverted", {"id-bin", exact("y"), true}, false},
      {"a binary header is not present", {"id-bin", PresenceMatcher{true}, false}, false},
      {"content-type is assumed", {"content-type", exact("application/grpc"), false}, true},
  }));
  const TestHeaders headers{{"env", "canary"},
                            {"shard", "7"},
                            {"depth", "-3"},
                            {"tag", "a"},
                            {"tag", "b"},
                            {"tag", ""},
                            {"gap", ""},
                            {"gap", "b"},
                            {"void", ""},
                            {"id-bin", "x"},
                            {"content-type", "text/html"}};
  DYNAMIC_SECTION(row.when) {
    CHECK(matches(row.matcher, &headers) == row.matched);
  }
}

TEST_CASE("route_match: a call without headers has only its content-type",
          "[lb][route_match][A28]") {
  CHECK_FALSE(matches({"env", PresenceMatcher{true}, false}, nullptr));
  CHECK(matches({"content-type", exact("application/grpc"), false}, nullptr));
}

TEST_CASE("route_match: the first matching route wins, not the closest", "[lb][route_match][A28]") {
  VirtualHost host;
  host.routes = {route(exact("/s/Other"), to("a")),
                 route(prefix("/s/"), to("b")),
                 route(exact("/s/Method"), to("c"))};
  const RouteTable table(host);

  CHECK(table.find({"/s/Other"}) == 0);
  CHECK(table.find({"/s/Method"}) == 1);
  CHECK(table.find({"/t/Method"}) == std::nullopt);
}

TEST_CASE("route_match: all headers of a route must match", "[lb][route_match][A28]") {
  VirtualHost host;
  host.routes = {route(prefix(""), to("a")), route(prefix(""), to("b"))};
  host.routes[0].match.headers = {{"x", exact("1"), false}, {"y", exact("2"), false}};
  const RouteTable table(host);
  const TestHeaders both{{"x", "1"}, {"y", "2"}};
  const TestHeaders one{{"x", "1"}};

  CHECK(table.find({"/s/M", &both}) == 0);
  CHECK(table.find({"/s/M", &one}) == 1);
}

TEST_CASE("route_match: a fraction takes its share of calls, the same calls each time",
          "[lb][route_match][A28]") {
  VirtualHost host;
  host.routes = {
      route(prefix(""), to("a")), route(prefix(""), to("b")), route(prefix(""), to("c"))};
  host.routes[0].match.fraction_per_million = 250'000;
  host.routes[1].match.fraction_per_million = 250'000;
  const RouteTable table(host);

  constexpr int kCalls = 40'000;
  std::array<int, 3> taken{};
  for (std::uint64_t seed = 0; seed < kCalls; ++seed) {
    const PickArgs call{"/s/M", nullptr, nullptr, seed};
    const auto position = table.find(call);
    REQUIRE(position.has_value());
    REQUIRE(table.find(call) == position);
    ++taken[*position];
  }
  // The second draw is independent of the first: a quarter of the three quarters left.
  CHECK(taken[0] == Approx(kCalls * 0.25).epsilon(0.03));
  CHECK(taken[1] == Approx(kCalls * 0.1875).epsilon(0.03));
}

TEST_CASE("route_match: a fraction of nothing never matches and a whole one always",
          "[lb][route_match][A28]") {
  VirtualHost host;
  host.routes = {route(prefix(""), to("a")), route(prefix(""), to("b"))};
  host.routes[0].match.fraction_per_million = 0;
  host.routes[1].match.fraction_per_million = 1'000'000;
  const RouteTable table(host);
  for (std::uint64_t seed = 0; seed < 10'000; ++seed)
    REQUIRE(table.find({"/s/M", nullptr, nullptr, seed}) == 1);
}

}  // namespace
}  // namespace signalbox::lb
