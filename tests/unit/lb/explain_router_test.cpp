// SPDX-License-Identifier: Apache-2.0
//
// The router's explanation of a call: its route, its filters, its outcome. An explanation changes
// nothing.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/pick/pickers.hpp"
#include "lb/request_limit.hpp"
#include "tests/support/session_fixture.hpp"
#include "tests/support/step_log.hpp"

namespace signalbox {
namespace {

using namespace std::chrono_literals;
using testing::aborting;
using testing::all_to;
using testing::answering;
using testing::base64;
using testing::config_of;
using testing::delaying;
using testing::exact;
using testing::filter;
using testing::percent;
using testing::prefix;
using testing::regex;
using testing::result;
using testing::route;
using testing::RouterFixture;
using testing::session_by;
using testing::SessionFixture;
using testing::TestHeaders;
using testing::to;

using Lines = std::vector<std::string>;

Lines lines_of(const Explanation& told) {
  Lines lines;
  for (const PickStep& step : told.steps)
    lines.push_back(testing::to_line(step));
  return lines;
}

class ExplainFixture : public RouterFixture {
 public:
  PickerPtr to_backend() { return lb::make_connection_picker(backend); }

  Explanation explain(const char* path, std::uint64_t seed = 0) const {
    return router.explain({path, nullptr, seed}, Instant());
  }
};

// The counts of a cluster's uses, picks and sessions.
std::string counts_of(const lb::ClusterRef& ref) {
  std::string text = absl::StrCat(ref.use_counter().sum(), ";");
  for (std::size_t i = 0; i < kPickOutcomes; ++i)
    absl::StrAppend(&text, " ", ref.stats()->picks(static_cast<PickOutcome>(i)));
  for (std::size_t i = 0; i < kAffinityResults; ++i)
    absl::StrAppend(&text, " ", ref.stats()->affinity(static_cast<AffinityResult>(i)));
  return text;
}

}  // namespace

TEST_CASE_METHOD(ExplainFixture,
                 "explain: the virtual host, the route by its place and match, the cluster",
                 "[lb][router][explain]") {
  Route by_fraction = route(prefix("/shop."), to("a"));
  by_fraction.match.fraction_per_million = 0;
  Route by_header = route(prefix("/shop."), to("a"));
  by_header.match.headers.push_back({"x-user", exact("me"), false});
  Route chosen = route(prefix("/shop."), to({{"a", 1}, {"b", 3}}));
  chosen.name = "shop";
  XdsConfig config = config_of({by_fraction, by_header, route(exact("/other"), to("a")), chosen});
  auto routes = std::make_shared<RouteConfig>(*config.route_config);
  routes->name = "shop-routes";
  config.route_config = routes;
  config.virtual_host = &routes->virtual_hosts.front();
  publish(config, to_backend());

  const Explanation told = explain("/shop.Cart/Add", 5);
  CHECK(told.outcome == PickOutcome::kComplete);
  CHECK(told.address == "10.0.0.1:80");
  CHECK(told.status.ok());
  CHECK(told.delay == 0s);
  const Lines lines = lines_of(told);
  REQUIRE(lines.size() == 6);
  CHECK(lines[0] == "route: virtual host \"orders.host\"; its domains are *; RDS shop-routes");
  CHECK(absl::StartsWith(lines[1],
                         "route: not route 0; its path matches, but of a million calls it takes 0, "
                         "and this one drew "));
  CHECK(lines[2] ==
        "route: not route 1; its path matches, but header \"x-user\" does not; RDS shop-routes");
  CHECK(lines[3] ==
        "route: route 3 of 4, \"shop\"; the first that matches: path with prefix \"/shop.\"; RDS "
        "shop-routes");
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Explanation one = explain("/shop.Cart/Add", seed);
    const std::string line = lines_of(one).at(4);
    CHECK(absl::StartsWith(line, absl::StrCat("route: cluster ", one.cluster, "; drew ")));
    CHECK(absl::StrContains(
        line,
        one.cluster == "a" ? "of 4; its weight is 1, from 0" : "of 4; its weight is 3, from 1"));
  }

  routes->name.clear();  // Routes inside a listener need no name.
  publish(config, to_backend());
  CHECK(lines_of(explain("/shop.Cart/Add"))[0] ==
        "route: virtual host \"orders.host\"; its domains are *; LDS route_config");

  const Explanation nowhere = explain("/nowhere");
  CHECK(nowhere.outcome == PickOutcome::kDrop);
  CHECK(nowhere.cluster.empty());
  CHECK(nowhere.status.code() == absl::StatusCode::kUnavailable);
  CHECK(absl::StartsWith(lines_of(nowhere).back(),
                         "route: no cluster; no route for \"/nowhere\" in virtual host"));
}

TEST_CASE_METHOD(ExplainFixture,
                 "explain: a route's match is told as it is configured",
                 "[lb][router][explain]") {
  struct Row {
    TextMatcher path;
    std::vector<HeaderMatcher> headers;
    std::optional<std::uint32_t> fraction;
    const char* text;
  };

  const auto row = GENERATE(values<Row>({
      {exact("/s/M"), {}, {}, "path \"/s/M\""},
      {regex("/s/.*"), {}, {}, "path like \"/s/.*\""},
      {prefix("/s"), {}, 1'000'000, "path with prefix \"/s\", 1000000 of a million calls"},
      {prefix("/s"),
       {{"x", PresenceMatcher{true}, true}, {"y", PresenceMatcher{false}}},
       {},
       "path with prefix \"/s\", not header \"x\", header \"y\""},
  }));
  Route one = route(row.path, to("a"));
  one.match.headers = row.headers;
  one.match.fraction_per_million = row.fraction;
  XdsConfig config = config_of({one});
  publish(config, to_backend());
  Lines lines = lines_of(explain("/s/M"));
  REQUIRE(lines.size() >= 3);
  CHECK(lines[1] ==
        absl::StrCat(
            "route: route 0 of 1; the first that matches: ", row.text, "; LDS route_config"));
  CHECK(lines[2] == "route: cluster a; the only one of the route; LDS route_config");

  // A virtual host that is none of the route configuration's: only the selector knows its routes.
  const VirtualHost elsewhere = *config.virtual_host;
  config.virtual_host = &elsewhere;
  for (const auto& routes : {config.route_config, std::shared_ptr<const RouteConfig>()}) {
    config.route_config = routes;
    publish(config, to_backend());
    lines = lines_of(explain("/s/M"));
    REQUIRE(lines.size() >= 3);
    CHECK(lines[0] == "route: virtual host \"orders.host\"; LDS route_config");
    CHECK(lines[1] == "route: route 0 of 1; LDS route_config");
  }
}

TEST_CASE_METHOD(ExplainFixture,
                 "explain: among many routes the same is told",
                 "[lb][router][explain]") {
  std::vector<Route> routes;
  for (int i = 0; i < 20; ++i) {
    Route one = route(i % 2 == 0 ? prefix("/shop") : regex("/shop.*"), to("a"));
    one.match.headers.push_back({"x-user", exact("me"), false});
    routes.push_back(one);
  }
  routes.push_back(route(prefix("/"), to("b")));
  publish(config_of(routes), to_backend());
  const Lines lines = lines_of(explain("/shop"));
  for (std::size_t i = 0; i < 20; ++i) {
    const std::string passed = absl::StrCat("route: not route ", i, "; ");
    CHECK(std::ranges::any_of(lines,
                              [&](const auto& line) { return absl::StartsWith(line, passed); }));
  }
  CHECK(explain("/shop").cluster == "b");
}

TEST_CASE_METHOD(ExplainFixture,
                 "explain: without a configuration, and after the end",
                 "[lb][router][explain]") {
  CHECK(lines_of(explain("/a")) == Lines{"router: the call waits; there is no configuration yet"});
  CHECK(explain("/a").outcome == PickOutcome::kQueue);
  publish(std::nullopt, nullptr, absl::UnavailableError("no such listener"));
  CHECK(lines_of(explain("/a")) ==
        Lines{"router: the call fails, or waits if wait_for_ready; no such listener"});
  CHECK(explain("/a").outcome == PickOutcome::kFail);
  CHECK(explain("/a").status == router.pick({"/a"}).status());
  publish(all_to(to("a")), nullptr);
  CHECK(lines_of(explain("/a")).back() == "router: the call waits; there is no configuration yet");
}

TEST_CASE_METHOD(ExplainFixture,
                 "explain: faults are drawn as for the call, counted for none",
                 "[lb][router][explain][A33]") {
  faults.active = std::make_shared<const lb::RequestLimit>();
  faults.injected = std::make_shared<const FaultCount>();
  FaultFilter fault = testing::both(delaying(2s), aborting(absl::StatusCode::kAborted));
  fault.max_active_faults = 1;
  publish(testing::with_filters(all_to(to("a")), {filter("fault", fault)}), to_backend());
  // Explanations do not count as active faults, of which one is allowed.
  for (int i = 0; i < 3; ++i) {
    const Explanation told = explain("/a");
    CHECK(told.delay == 2s);
    CHECK(told.outcome == PickOutcome::kDrop);
    CHECK(absl::IsAborted(told.status));
    const Lines lines = lines_of(told);
    const std::string source = lb::kFilterSource;
    REQUIRE(lines.size() >= 5);
    CHECK(absl::StartsWith(lines[lines.size() - 4], "fault: delay; drew "));
    CHECK(absl::StartsWith(lines[lines.size() - 3], "fault: abort; drew "));
    CHECK(lines[lines.size() - 2] == "filter 0: the call waits for 2 s; " + source);
    CHECK(lines[lines.size() - 1] == "filter 0: ends the call: ABORTED: Fault injected; " + source);
  }
  CHECK(faults.active->in_flight() == 0);
  CHECK(faults.injected->sum(kDelayFault) == 0);
  CHECK(faults.injected->sum(kAbortFault) == 0);
  const lb::Pick delayed = router.pick({"/a"});
  CHECK(delayed.delay() == 2s);
  CHECK(explain("/a").delay == 0s);
  CHECK(explain("/a").outcome == PickOutcome::kComplete);
  CHECK(absl::StrContains(lines_of(explain("/a")).at(5), "max_active_faults are going on"));
}

TEST_CASE_METHOD(ExplainFixture,
                 "explain: what a filter adds is named, and its value is not told",
                 "[lb][router][explain][A39]") {
  const auto adds = testing::scripted("adds", [](FilterCall& call) {
    call.add_header("authorization", "secret");
    call.send_to("b");
  });
  publish(testing::with_filters(all_to(to({{"a", 1'000'000}, {"b", 1}})), {filter("f", adds)}),
          to_backend());
  const Explanation told = explain("/a");
  CHECK(told.cluster == "b");
  const Lines lines = lines_of(told);
  const std::string source = lb::kFilterSource;
  CHECK(lines.at(3) == "filter 0: to cluster b; " + source);
  CHECK(lines.at(4) == "filter 0: adds header \"authorization\"; " + source);
  for (const std::string& line : lines)
    CHECK_FALSE(absl::StrContains(line, "secret"));
}

TEST_CASE_METHOD(ExplainFixture,
                 "explain: of each filter its own delay and headers are told",
                 "[lb][router][explain][A39]") {
  const auto adds = [](const char* header, Duration delay) {
    return filter(header, testing::scripted(header, [header, delay](FilterCall& call) {
                    call.delay(delay);
                    call.add_header(header, "1");
                  }));
  };
  publish(testing::with_filters(all_to(to("a")), {adds("x-one", 1s), adds("x-two", 2s)}),
          to_backend());
  const Explanation told = explain("/a");
  CHECK(told.delay == 3s);
  Lines of_filters = lines_of(told);
  std::erase_if(of_filters,
                [](const std::string& line) { return !absl::StartsWith(line, "filter "); });
  const std::string source = absl::StrCat("; ", lb::kFilterSource);
  CHECK(of_filters == Lines{"filter 0: the call waits for 1 s" + source,
                            "filter 0: adds header \"x-one\"" + source,
                            "filter 1: the call waits for 2 s" + source,
                            "filter 1: adds header \"x-two\"" + source});
}

TEST_CASE("explain: why a call has no session, and what a new one is, is told",
          "[lb][router][explain][A55-14][A55-43]") {
  SessionFixture world;
  world.add("a", "10.0.0.1:80");
  world.configure_filters(
      all_to(to("a")),
      {filter("one", session_by("s", "/in", {}, true)), filter("two", session_by("t"))});
  const auto told = [&](const char* path) {
    Lines lines = lines_of(world.router.explain({path, nullptr, 0}, Instant()));
    std::erase_if(lines, [](const std::string& line) {
      return !absl::StartsWith(line, "stateful_session: ");
    });
    return lines;
  };
  const std::string source = absl::StrCat("; ", lb::kFilterSource);
  CHECK(told("/in/M") ==
        Lines{"stateful_session: cookie \"s\": no cookie; the session is strict" + source,
              "stateful_session: cookie \"t\": no session; an earlier filter has begun one" +
                  source});
  CHECK(
      told("/out") ==
      Lines{"stateful_session: cookie \"s\": no session; the path is none of the cookie's" + source,
            "stateful_session: cookie \"t\": no cookie; the session is not strict" + source});
}

TEST_CASE("explain: of a cookie only verdicts are told", "[lb][router][explain][A55]") {
  SessionFixture world;
  world.add("a", "10.0.0.1:80");
  world.configure(to("a"), session_by("s"));
  const auto told = [&](const std::string& cookie) {
    const TestHeaders headers({{"cookie", "s=" + cookie}});
    Lines lines = lines_of(world.router.explain({"/a", &headers, 0}, Instant()));
    for (const std::string& line : lines)
      CHECK_FALSE(absl::StrContains(line, cookie));
    return lines;
  };
  const auto has = [](const Lines& lines, const std::string& text) {
    return std::ranges::any_of(
        lines, [&](const std::string& line) { return absl::StrContains(line, text); });
  };
  CHECK(has(told(base64("10.0.0.1:80;a")),
            "stateful_session: cookie \"s\": its cookie names a host; the session is not strict"));
  CHECK(has(told(base64("10.0.0.1:80;a")), "to the cluster of its cookie; the route names it"));
  CHECK(has(told(base64("10.0.0.1:80;zz")), "not to the cluster of its cookie"));
  CHECK_FALSE(has(told(base64("10.0.0.1:80")), "the cluster of its cookie"));
  CHECK(has(told("!!!"), "its cookie is not used; it is not base64"));
  CHECK(world.warnings.empty());
  CHECK(world.counted("a", AffinityResult::kHit) == 0);
}

TEST_CASE_METHOD(ExplainFixture,
                 "explain: counts nothing, asks for nothing, holds nothing",
                 "[lb][router][explain]") {
  struct Tracker final : CallTracker {
    void begun() const noexcept override { ++calls; }

    void ended(const CallEnd& /*end*/) const noexcept override { ++calls; }

    mutable int calls = 0;
  };

  const Tracker tracker;
  const testing::AskLog asks;
  publish(all_to(to("a")), answering([&](const PickArgs&) {
            PickResult answer = result(Complete{backend.get()});
            answer.trackers.add(tracker);
            answer.ask = PickAsk{};
            answer.ask_target = &asks;
            return answer;
          }));
  const std::string before = counts_of(ref("a"));
  CHECK(explain("/a").address == "10.0.0.1:80");
  CHECK(counts_of(ref("a")) == before);
  CHECK(backend->use_counter().sum() == 0);
  CHECK(tracker.calls == 0);
  CHECK(asks.asks.empty());
  {
    const lb::Pick pick = router.pick({"/a"});
  }
  CHECK(counts_of(ref("a")) != before);
  CHECK(tracker.calls == 2);
  CHECK(asks.asks.size() == 1);
}

}  // namespace signalbox
