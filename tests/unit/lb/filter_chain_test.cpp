// SPDX-License-Identifier: Apache-2.0
#include "lb/route/filter_chain.hpp"

#include <deque>
#include <set>

#include <catch2/catch.hpp>

#include "tests/support/filter_fixture.hpp"
#include "tests/support/router_fixture.hpp"

namespace signalbox::lb {
namespace {

using namespace signalbox::testing;
using testing::percent;
using namespace std::chrono_literals;

const FilterOverrides kNone;

std::vector<HttpFilter> chain_of(std::vector<HttpFilter> filters) {
  return with_filters(config_of({}), std::move(filters)).listener->filters;
}

const HttpFilterConfig kOfChain = ending("chain");
const HttpFilterConfig kOfHost = ending("host");
const HttpFilterConfig kOfRoute = ending("route");
const HttpFilterConfig kOfCluster = ending("cluster");

// The text of the configuration of the chain's first filter: one of the four above, else "another".
// "": there is no chain.
std::string whose(const FilterChainPtr& chain) {
  if (chain == nullptr) return "";
  for (const HttpFilterConfig& config : {kOfChain, kOfHost, kOfRoute, kOfCluster}) {
    const auto& custom = std::get<CustomFilter>(config);
    if (chain->filters.front() == custom.filter) return custom.raw.text;
  }
  return "another";
}

TEST_CASE("filter_chain: the most specific configuration wins, and may be none", "[lb][A39]") {
  struct Row {
    const char* when;
    bool disabled;
    FilterOverrides cluster;
    FilterOverrides route;
    FilterOverrides host;
    const char* whose;
  };

  const FilterOverrides off{{"it", std::nullopt}};
  const auto row = GENERATE_COPY(values<Row>({
      {"nothing overrides it", false, {}, {}, {}, "chain"},
      {"the host does", false, {}, {}, {{"it", kOfHost}}, "host"},
      {"the route does", false, {}, {{"it", kOfRoute}}, {{"it", kOfHost}}, "route"},
      {"the cluster does",
       false,
       {{"it", kOfCluster}},
       {{"it", kOfRoute}},
       {{"it", kOfHost}},
       "cluster"},
      {"an override has another's name", false, {{"other", kOfCluster}}, {}, {}, "chain"},
      {"the host switches it off", false, {}, {}, off, ""},
      {"the host does, and the route has its own", false, {}, {{"it", kOfRoute}}, off, "route"},
      {"the route switches off what the host has", false, {}, off, {{"it", kOfHost}}, ""},
      {"the cluster switches it off", false, off, {{"it", kOfRoute}}, {}, ""},
      {"it is off", true, {}, {}, {}, ""},
      {"it is off, and the cluster has a configuration",
       true,
       {{"it", kOfCluster}},
       {},
       {},
       "cluster"},
  }));
  DYNAMIC_SECTION(row.when) {
    const auto filters = chain_of({filter("it", kOfChain, row.disabled)});
    FilterChains chains(filters, {});
    CHECK(whose(chains.with({&row.cluster, &row.route, &row.host})) == row.whose);
  }
}

TEST_CASE("filter_chain: filters stand in the listener's order, before the router", "[lb][A39]") {
  auto filters = chain_of({filter("one", kOfHost), filter("two", kOfRoute)});
  filters.push_back(filter("behind", kOfCluster));
  FilterChains chains(filters, {});
  const FilterChainPtr chain = chains.with({&kNone, &kNone, &kNone});
  REQUIRE(chain != nullptr);
  REQUIRE(chain->filters.size() == 2);
  CHECK(chain->filters[0] == std::get<CustomFilter>(kOfHost).filter);
  CHECK(chain->filters[1] == std::get<CustomFilter>(kOfRoute).filter);
}

TEST_CASE("filter_chain: of what has nothing to do nothing is left",
          "[lb][A39][A33][A55-8][A55-12]") {
  FaultFilter full = aborting(absl::StatusCode::kAborted);
  full.max_active_faults = 0;
  const auto config = GENERATE_COPY(values<HttpFilterConfig>({
      RouterFilter{},
      StatefulSessionFilter{},
      FaultFilter{},
      delaying(0s),
      delaying(1s, percent(0)),
      delaying(std::nullopt, percent(0)),
      aborting(absl::StatusCode::kAborted, percent(0)),
      full,
      CustomFilter{"com.example.Unread", {}, nullptr},
  }));
  const auto filters = chain_of({filter("it", config)});
  FilterChains chains(filters, {});
  CHECK(chains.with({&kNone, &kNone, &kNone}) == nullptr);
}

TEST_CASE("filter_chain: sessions alone are known as such, and the one name of their cookies",
          "[lb][A39][A55-6]") {
  const StatefulSessionFilter session{SessionCookie{"s", "", 0s}, false};
  const StatefulSessionFilter same_name{SessionCookie{"s", "/path", 1s}, true};
  const StatefulSessionFilter other_name{SessionCookie{"t", "", 0s}, false};
  const auto filters = chain_of({filter("it", session), filter("more", kOfChain, true)});
  FilterChains chains(filters, {});
  CHECK(chains.cookie().empty());

  const FilterChainPtr alone = chains.with({&kNone, &kNone, &kNone});
  REQUIRE(alone->only_session != nullptr);
  CHECK(alone->only_session == alone->filters.front().get());
  CHECK(alone->only_session->cookie().name() == "s");
  CHECK(chains.cookie() == "s");

  const FilterOverrides more{{"more", kOfChain}};
  CHECK(chains.with({&more, &kNone, &kNone})->only_session == nullptr);
  const FilterOverrides neither{{"it", std::nullopt}, {"more", kOfChain}};
  CHECK(chains.with({&neither, &kNone, &kNone})->only_session == nullptr);
  const FilterOverrides again{{"it", HttpFilterConfig(same_name)}};
  CHECK(chains.with({&again, &kNone, &kNone})->only_session->cookie().path() == "/path");
  CHECK(chains.cookie() == "s");

  const FilterOverrides other{{"it", HttpFilterConfig(other_name)}};
  CHECK(chains.with({&other, &kNone, &kNone})->only_session->cookie().name() == "t");
  CHECK(chains.cookie().empty());
}

TEST_CASE("filter_chain: equal chains are one", "[lb][A39]") {
  const auto filters = chain_of({filter("it", delaying(1s)), filter("more", kOfChain)});
  FilterChains chains(filters, {});

  FilterOverrides same{{"it", HttpFilterConfig(delaying(1s))}};
  FilterOverrides other{{"it", HttpFilterConfig(delaying(2s))}};
  const FilterChainPtr plain = chains.with({&kNone, &kNone, &kNone});
  CHECK(chains.with({&same, &kNone, &kNone}) == plain);
  CHECK(chains.with({&kNone, &other, &kNone}) != plain);
  CHECK(chains.with({&kNone, &other, &kNone}) == chains.with({&kNone, &kNone, &other}));
  CHECK(plain->filters.size() == 2);
}

TEST_CASE("filter_chain: chains that differ in one word of a configuration are two", "[lb][A39]") {
  const FaultFilter fault = both(delaying(1s), aborting(absl::StatusCode::kAborted));
  std::vector<FaultFilter> all(9, fault);
  all[1].delay->fixed = 2s;
  all[2].delay->fixed = std::nullopt;
  all[3].delay->share = {100, 1'000'000};
  all[4].abort->status = absl::StatusCode::kDataLoss;
  all[5].abort->status = std::nullopt;
  all[6].abort->share = {100, 10'000};
  all[7].max_active_faults = 0xffffffff;
  all[8].abort = std::nullopt;
  const auto filters = chain_of({filter("it", fault)});
  FilterChains chains(filters, {});
  std::deque<FilterOverrides> overrides;  // They live until the last chain is made.
  std::set<FilterChainPtr> made;
  for (const FaultFilter& one : all) {
    overrides.push_back({{"it", HttpFilterConfig(one)}});
    made.insert(chains.with({&kNone, &overrides.back(), &kNone}));
  }
  CHECK(made.size() == all.size());
}

TEST_CASE_METHOD(RouterFixture,
                 "filter_chain: an override by another filter's configuration fails the call",
                 "[lb][A39]") {
  Route wrong = route(prefix(""), to("a"));
  wrong.filter_overrides = {{"it", HttpFilterConfig(FaultFilter{})}};
  publish(with_filters(config_of({wrong}), {filter("it", kOfChain)}),
          answering([&](const PickArgs&) { return result(Complete{backend.get()}); }));
  const Pick pick = router.pick({.path = "/s/M"});
  CHECK(pick.outcome() == PickOutcome::kDrop);
  CHECK(pick.status() ==
        absl::UnavailableError(
            "cluster a: HTTP filter \"it\" is of type com.example.Scripted, and overridden "
            "by a configuration of fault"));
}

}  // namespace
}  // namespace signalbox::lb
