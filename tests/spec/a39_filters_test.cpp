// SPDX-License-Identifier: Apache-2.0
//
// gRFC A39, "Proposal" and "xDS API Fields": the filters of a call, in the document's order.
// tests/unit/xds/parse_http_filter_test and parse_listener_test have the configurations that are
// refused.

#include <string>

#include <catch2/catch.hpp>

#include "tests/support/filter_fixture.hpp"
#include "tests/support/router_fixture.hpp"

namespace signalbox::lb::a39_filters_test {
namespace {

using namespace signalbox::testing;

// A channel with a picker that completes every pick. `trace` gets the name of each traced() filter
// that runs, and "pick" for each pick.
struct Channel : RouterFixture {
  void configure(const XdsConfig& config) {
    publish(config, answering([this](const PickArgs&) {
              trace += "pick ";
              return result(Complete{backend.get()});
            }));
  }

  HttpFilter traced(const std::string& name) {
    return filter(name, scripted(name, [this, name](FilterCall&) { trace += name + " "; }));
  }

  std::string end_of(const char* path, std::uint64_t seed = 7) const {
    return std::string(router.pick({.path = path, .seed = seed}).status().message());
  }

  std::string trace;
};

SCENARIO("A39: filters run in between name resolution and load balancing", "[spec][A39]") {
  GIVEN("a listener with two filters before the router") {
    Channel channel;
    channel.configure(
        with_filters(all_to(to("a")), {channel.traced("one"), channel.traced("two")}));
    WHEN("a call is made") {
      Pick pick = channel.router.pick({.path = "/s/M"});
      THEN("they run in the order of the list, and then it is picked") {
        CHECK(channel.trace == "one two pick ");
        AND_WHEN("it is picked again") {
          channel.router.repick(pick, {.path = "/s/M"});
          THEN("they do not run again") {
            CHECK(channel.trace == "one two pick pick ");
          }
        }
      }
    }
    WHEN("a call has no configuration yet, and it comes later") {
      Channel late;
      Pick pick = late.router.pick({.path = "/s/M"});
      late.configure(with_filters(all_to(to("a")), {late.traced("one")}));
      late.router.repick(pick, {.path = "/s/M"});
      THEN("they run once it has its route") {
        CHECK(late.trace == "one pick ");
      }
    }
  }
}

SCENARIO("A39: several instances of one filter have a name and a configuration each",
         "[spec][A39]") {
  GIVEN("a filter of one type twice, of which the route overrides one") {
    Route overridden = route(exact("/s/Over"), to("a"));
    overridden.filter_overrides = {
        {"two", scripted("override", [](FilterCall& call) { call.end(absl::AbortedError("x")); })}};
    Channel channel;
    channel.configure(with_filters(config_of({overridden, route(prefix(""), to("a"))}),
                                   {channel.traced("one"), channel.traced("two")}));
    WHEN("a call takes the route") {
      CHECK(channel.end_of("/s/Over") == "cluster a: x");
      THEN("only the one of that name is another") {
        CHECK(channel.trace == "one ");
      }
    }
    WHEN("a call takes another route") {
      CHECK(channel.end_of("/s/M").empty());
      THEN("both are the listener's") {
        CHECK(channel.trace == "one two pick ");
      }
    }
  }
}

SCENARIO("A39: overrides of virtual host, route and weighted cluster: the most specific wins",
         "[spec][A39]") {
  GIVEN("an override at each level, each below a call of its own") {
    Route by_route = route(exact("/s/Route"), to("a"));
    by_route.filter_overrides = {{"it", ending("route")}};
    ForwardAction action = to("a");
    action.clusters[0].filter_overrides = {{"it", ending("cluster")}};
    Route by_cluster = route(exact("/s/Cluster"), action);
    by_cluster.filter_overrides = {{"it", ending("route")}};
    Route off = route(exact("/s/Off"), to("a"));
    off.filter_overrides = {{"it", std::nullopt}};
    XdsConfig config = config_of({by_route, by_cluster, off, route(prefix(""), to("a"))});
    auto routes = std::make_shared<RouteConfig>(*config.route_config);
    routes->virtual_hosts[0].filter_overrides = {{"it", ending("host")}, {"nobody", ending("?")}};
    config.route_config = routes;
    config.virtual_host = &routes->virtual_hosts[0];
    Channel channel;
    channel.configure(with_filters(config, {filter("it", ending("chain"))}));
    THEN("each call meets its own, and an override that names no filter means nothing") {
      CHECK(channel.end_of("/s/Route") == "cluster a: route");
      CHECK(channel.end_of("/s/Cluster") == "cluster a: cluster");
      CHECK(channel.end_of("/s/Off").empty());
      CHECK(channel.end_of("/s/M") == "cluster a: host");
    }
  }
  GIVEN("two weighted clusters, of which one has an override") {
    ForwardAction action = to({{"a", 1}, {"b", 1}});
    action.clusters[1].filter_overrides = {{"it", ending("b's")}};
    Channel channel;
    channel.configure(
        with_filters(config_of({route(prefix(""), action)}), {filter("it", ending("chain"))}));
    THEN("it is for the calls to that one alone") {
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const Pick pick = channel.router.pick({.path = "/s/M", .seed = seed});
        CHECK(pick.status().message() ==
              (pick.cluster() == &channel.ref("b") ? "cluster b: b's" : "cluster a: chain"));
      }
    }
  }
}

SCENARIO("A39: the router is the pick itself, and ends the list", "[spec][A39]") {
  GIVEN("a filter behind the router") {
    Channel channel;
    XdsConfig config = with_filters(all_to(to("a")), {});
    auto listener = std::make_shared<Listener>(*config.listener);
    listener->filters.push_back(filter("behind", ending("behind")));
    config.listener = listener;
    channel.configure(config);
    THEN("it is not used") {
      CHECK(channel.end_of("/s/M").empty());
    }
  }
}

}  // namespace
}  // namespace signalbox::lb::a39_filters_test
