// SPDX-License-Identifier: Apache-2.0
#include "lb/route/route_actions.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "lb/route/filter_chain.hpp"
#include "tests/support/filter_fixture.hpp"

namespace signalbox::lb {
namespace {

using namespace signalbox::testing;
using namespace std::chrono_literals;

RouteActions compiled(const XdsConfig& config) {
  return {*config.virtual_host, *config.listener, refs_for(config), 7, {}};
}

ForwardAction with(void (*change)(ForwardAction&)) {
  ForwardAction action = to({{"a", 1}, {"b", 2}});
  change(action);
  return action;
}

// Route actions, each of which differs from the first one in one setting.
std::vector<ForwardAction> all_different() {
  const auto hashing = [](const char* header, bool terminal) {
    ForwardAction action = to({{"a", 1}, {"b", 2}});
    action.hash_policies.push_back({HeaderHash{header, {}}, terminal});
    return action;
  };
  const auto retrying = [](absl::StatusCode code) {
    ForwardAction action = to({{"a", 1}, {"b", 2}});
    action.retry = RetryPolicy{{code}};
    return action;
  };
  return {
      to({{"a", 1}, {"b", 2}}),
      to({{"a", 1}, {"c", 2}}),
      to({{"a", 2}, {"b", 2}}),
      to({{"a", 1}, {"b", 2}, {"c", 1}}),
      with([](ForwardAction& action) { action.max_stream_duration = 3s; }),
      with([](ForwardAction& action) { action.grpc_timeout_header_max = 4s; }),
      with([](ForwardAction& action) { action.auto_host_rewrite = true; }),
      retrying(absl::StatusCode::kUnavailable),
      retrying(absl::StatusCode::kInternal),
      hashing("user", false),
      hashing("user", true),
      hashing("tenant", false),
  };
}

}  // namespace

TEST_CASE("route_actions: equal actions are one, and others are not", "[lb][route]") {
  const std::vector<ForwardAction> actions = all_different();
  std::vector<Route> routes;
  for (int turn = 0; turn < 3; ++turn) {
    for (const ForwardAction& action : actions)
      routes.push_back(route(exact("/" + std::to_string(routes.size())), action));
  }
  const XdsConfig config = config_of(routes);
  const RouteActions made = compiled(config);
  REQUIRE(made.routes() == routes.size());
  std::set<const Action*> seen;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    CAPTURE(i);
    CHECK(&made.of(i) == &made.of(i % actions.size()));
    CHECK(seen.insert(&made.of(i)).second == (i < actions.size()));
  }
}

TEST_CASE("route_actions: each route does what it would alone", "[lb][route][A31-8][A31-22]") {
  const std::vector<ForwardAction> actions = all_different();
  std::vector<Route> routes;
  for (const ForwardAction& action : actions)
    routes.push_back(route(prefix("/"), action));
  const XdsConfig config = config_of(routes, 9s);
  const RouteActions made = compiled(config);
  const TestHeaders headers{{"user", "me"}, {"tenant", "us"}};
  for (std::size_t i = 0; i < actions.size(); ++i) {
    CAPTURE(i);
    const XdsConfig only = config_of({routes[i]}, 9s);
    const RouteActions alone = compiled(only);
    const auto& one = std::get<Forward>(made.of(i));
    const auto& other = std::get<Forward>(alone.of(0));
    CHECK(one.timeout == other.timeout);
    CHECK(one.hash.of(&headers) == other.hash.of(&headers));
    CHECK(one.retry == other.retry);
    CHECK(one.auto_host_rewrite == other.auto_host_rewrite);
    REQUIRE(one.shares.size() == other.shares.size());
    for (std::size_t share = 0; share < one.shares.size(); ++share) {
      CHECK(one.shares[share].end == other.shares[share].end);
      CHECK(one.shares[share].cluster->name() == other.shares[share].cluster->name());
    }
  }
}

TEST_CASE("route_actions: filters tell actions apart, and overrides that come to nothing do not",
          "[lb][route][A39]") {
  Route plain = route(prefix("/"), to("a"));
  Route own = plain;
  own.filter_overrides.emplace("fault", aborting(absl::StatusCode::kAborted));
  Route idle = plain;
  idle.filter_overrides.emplace("nobody", aborting(absl::StatusCode::kAborted));
  Route by_cluster = plain;
  std::get<ForwardAction>(by_cluster.action).clusters.front().filter_overrides =
      own.filter_overrides;
  const XdsConfig config = with_filters(config_of({plain, own, idle, by_cluster, own, plain}),
                                        {filter("fault", delaying(1s))});
  const RouteActions made = compiled(config);
  CHECK(&made.of(1) != &made.of(0));
  CHECK(&made.of(2) == &made.of(0));
  CHECK(&made.of(3) == &made.of(1));
  CHECK(&made.of(4) == &made.of(1));
  CHECK(&made.of(5) == &made.of(0));
}

TEST_CASE("route_actions: what is not supported names its own route", "[lb][route][A28]") {
  Route first = route(prefix("/"), UnsupportedAction{"redirect"});
  first.name = "first";
  Route second = first;
  second.name = "second";
  const XdsConfig config = config_of({first, second});
  const RouteActions made = compiled(config);
  const auto text = [&](std::size_t at) {
    return std::string(std::get<absl::Status>(made.of(at)).message());
  };
  CHECK_THAT(text(0), Catch::Contains("\"first\"") && Catch::Contains("redirect"));
  CHECK_THAT(text(1), Catch::Contains("\"second\""));
}

}  // namespace signalbox::lb
