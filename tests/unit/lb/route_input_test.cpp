// SPDX-License-Identifier: Apache-2.0
//
// Unusual input from calls and control planes: routing answers all of it. The work of routing grows
// with the size of the input, not with the number of ways to match it.
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/route/route_match.hpp"
#include "tests/support/route_fixture.hpp"

namespace signalbox::lb {
namespace {

using namespace signalbox::testing;
using Position = std::optional<std::size_t>;

constexpr std::size_t kMany = 10'000;
constexpr std::size_t kMebibyte = std::size_t{1} << 20U;

// Routes a call twice: among these routes alone, and among these and more routes that never match.
class Tables {
 public:
  explicit Tables(std::vector<Route> routes) : alone_(table_of(routes)), among_(among(routes)) {}

  Position find(const PickArgs& args) const {
    const Position found = alone_.find(args);
    CHECK(among_.find(args) == found);
    return found;
  }

 private:
  static RouteTable table_of(const std::vector<Route>& routes) {
    VirtualHost host;
    host.routes = routes;
    return RouteTable(host);
  }

  static RouteTable among(std::vector<Route> routes) {
    for (int i = 0; i < 20; ++i) {
      routes.push_back(route(prefix(""), to("a")));
      routes.back().match.fraction_per_million = 0;
    }
    return table_of(routes);
  }

  RouteTable alone_;
  RouteTable among_;
};

Route with_header(HeaderMatcher header) {
  Route made = route(prefix(""), to("a"));
  made.match.headers.push_back(std::move(header));
  return made;
}

// Headers that count how often they are looked up.
class CountingHeaders final : public HeaderSource {
 public:
  explicit CountingHeaders(TestHeaders headers) : headers_(std::move(headers)) {}

  void each(absl::string_view name,
            absl::FunctionRef<void(absl::string_view)> visit) const override {
    ++asked;
    headers_.each(name, visit);
  }

  mutable std::size_t asked = 0;

 private:
  TestHeaders headers_;
};

std::string refusal_of(const std::string& path) {
  const XdsConfig config = config_of({route(exact("/s/A"), to("a"))});
  const auto chosen = make_config_selector(config, refs_for(config))->select({path});
  const auto& status = std::get<absl::Status>(chosen);
  CHECK(absl::IsUnavailable(status));
  return std::string(status.message());
}

}  // namespace

TEST_CASE("routing: an empty path is a path", "[lb][route][A28]") {
  CHECK(Tables({route(exact("/"), to("a")), route(prefix(""), to("a"))}).find({""}) == Position(1));
  CHECK(Tables({route(prefix("/"), to("a")), route(exact(""), to("a"))}).find({""}) == Position(1));
  CHECK(Tables({route(regex(".+"), to("a")), route(regex(".*"), to("a"))}).find({""}) ==
        Position(1));
  CHECK(refusal_of("") == "no route for \"\" in virtual host \"orders.host\"");
}

TEST_CASE("routing: control characters are characters, and are not printed", "[lb][route][A28]") {
  const std::string odd("/s/\0\n\x7f", 6);
  const Tables table = Tables({route(regex("/s/.*"), to("a")),  // A dot matches no newline.
                               route(exact("/s/"), to("a")),
                               route(exact(odd), to("a"))});
  CHECK(table.find({odd}) == Position(2));
  CHECK(table.find({absl::string_view(odd).substr(0, 3)}) == Position(0));
  CHECK(refusal_of(odd) == "no route for \"/s/\\000\\n\\177\" in virtual host \"orders.host\"");

  const Tables headers = Tables({with_header({"env", exact("a"), false}),
                                 with_header({"env", containing("\r\n"), false}),
                                 with_header({"env", exact(std::string("a\0", 2)), false})});
  const TestHeaders zero{{"env", std::string("a\0", 2)}};
  const TestHeaders lines{{"env", "a"}, {"env", "\r\n"}};
  CHECK(headers.find({"/s/A", &zero}) == Position(2));
  CHECK(headers.find({"/s/A", &lines}) == Position(1));
}

TEST_CASE("routing: a header of ten thousand values is read once for ten thousand routes",
          "[lb][route][A28][limits]") {
  TestHeaders::List list;
  std::string joined;
  for (std::size_t i = 0; i < kMany; ++i) {
    list.emplace_back("many", absl::StrCat("v", i));
    absl::StrAppend(&joined, i == 0 ? "" : ",", "v", i);
  }
  std::vector<Route> routes;
  for (std::size_t i = 0; i + 1 < kMany; ++i)
    routes.push_back(with_header({"many", exact(absl::StrCat("v", i)), false}));
  routes.push_back(with_header({"many", exact(joined), false}));
  const Tables table(std::move(routes));

  const CountingHeaders headers{TestHeaders(std::move(list))};
  CHECK(table.find({"/s/A", &headers}) == Position(kMany - 1));
  CHECK(headers.asked == 2);  // Once for each table.
}

TEST_CASE("routing: each of many headers keeps its own value", "[lb][route][A28]") {
  std::vector<Route> routes;
  TestHeaders::List list;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    list.emplace_back(name, std::string("of-") + name);
    list.emplace_back(name, "2");
    routes.push_back(with_header({name, exact("other"), false}));
  }
  // These routes do not match either: each header has two values, for example "of-f,2".
  for (const char* name : {"f", "a", "e", "d"})
    routes.push_back(with_header({name, exact(std::string("of-") + name), false}));
  routes.push_back(with_header({"e", exact("of-e,2"), false}));
  Route both = with_header({"f", exact("of-f,2"), false});
  both.match.headers.push_back({"a", exact("of-a,2"), false});
  routes.insert(routes.end() - 1, both);
  const TestHeaders headers(std::move(list));
  CHECK(Tables(routes).find({"/s/A", &headers}) == Position(10));
  routes.erase(routes.begin() + 10);
  CHECK(Tables(routes).find({"/s/A", &headers}) == Position(10));
}

TEST_CASE("routing: a regular expression that elsewhere explodes does not", "[lb][route][limits]") {
  const std::string path(kMebibyte, 'a');
  CHECK(Tables({route(regex("(a*)*b"), to("a")),
                route(regex("(a|a|aa)*c"), to("a")),
                route(regex("(a+)+"), to("a"))})
            .find({path}) == Position(2));
}

TEST_CASE("routing: what is refused of a path of a mebibyte can be read", "[lb][route][limits]") {
  const std::string path = "/" + std::string(kMebibyte, 'a');
  CHECK(Tables({route(exact(path + "a"), to("a")),
                route(prefix("/ab"), to("a")),
                route(in_any_case(prefix("/A")), to("a"))})
            .find({path}) == Position(2));
  CHECK(refusal_of(path) == absl::StrCat("no route for \"/",
                                         std::string(255, 'a'),
                                         "\"… (1048577 bytes) in virtual host \"orders.host\""));
}

TEST_CASE("routing: more prefixes in one another than there is room for are exact, too",
          "[lb][route][A28]") {
  std::vector<Route> routes;
  for (std::size_t size = 0; size < 100; ++size) {
    Route made = route(prefix(std::string(99 - size, 'a')), to("a"));
    made.match.headers.push_back({"n", exact(absl::StrCat(size)), false});
    routes.push_back(std::move(made));
  }
  const Tables table(std::move(routes));
  for (const std::size_t n : {0U, 1U, 50U, 99U}) {
    const TestHeaders headers{{"n", absl::StrCat(n)}};
    CHECK(table.find({std::string(99, 'a'), &headers}) == Position(n));
    CHECK(table.find({std::string(50, 'a'), &headers}) == (n < 49 ? std::nullopt : Position(n)));
  }
}

TEST_CASE("routing: patterns that do not fit into one set are tried alone", "[lb][route][limits]") {
  std::vector<Route> routes;
  for (char first = 'a'; first < 'j'; ++first)
    routes.push_back(route(regex(std::string("(") + first + ")\\pL{30}"), to("a")));
  routes[3].match.fraction_per_million = 0;
  routes.push_back(route(regex("(d).*"), to("a")));
  const Tables table(std::move(routes));
  const std::string tail(30, 'z');
  CHECK(table.find({"a" + tail}) == Position(0));
  CHECK(table.find({"i" + tail}) == Position(8));
  CHECK(table.find({"d" + tail}) == Position(9));
  CHECK(table.find({"k" + tail}) == std::nullopt);
}

TEST_CASE("routing: of two sets of patterns the one with the earlier route wins",
          "[lb][route][A28]") {
  std::vector<Route> routes;
  for (int i = 0; i < 10; ++i) {
    routes.push_back(route(regex(absl::StrCat("(/a)b{", i, "}")), to("a")));
    routes.push_back(route(regex(absl::StrCat("/a[b]{", 9 - i, "}")), to("a")));
  }
  const Tables table(std::move(routes));
  CHECK(table.find({"/a" + std::string(3, 'b')}) == Position(6));
  CHECK(table.find({"/a" + std::string(7, 'b')}) == Position(5));
}

TEST_CASE("routing: a pattern that cannot be compiled hides none of the others",
          "[lb][route][limits]") {
  std::vector<Route> routes;
  for (int i = 0; i < 20; ++i)
    routes.push_back(route(regex(i % 2 == 0 ? "(" : absl::StrCat("(a{", i, "})")), to("a")));
  CHECK(Tables(std::move(routes)).find({std::string(15, 'a')}) == Position(15));
}

}  // namespace signalbox::lb
